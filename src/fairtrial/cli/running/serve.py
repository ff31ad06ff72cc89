"""`fairtrial serve`: the live page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.cli.terminal import Console
from fairtrial.errors import InputError, PlaceError, Problem

if TYPE_CHECKING:
    from fairtrial.serve.steering import Control, Planned


@dataclass(frozen=True)
class Permissions:
    """What the page may do beyond showing: steer runs, and start the studies of a folder."""

    control: bool = False
    studies: Path | None = None


def serve(runs: Path, *, port: int, names: Sequence[str], browser: bool, permissions: Permissions) -> None:
    """Shows runs in a browser until it is interrupted.

    Args:
        runs: a directory of runs, or one run.
        port: 0 for a free one.
        names: host names that the page answers to beside those of loopback.
        browser: whether to open one.
        permissions: what the page may do.

    Raises:
        InputError: a folder of studies is named, but the page may do nothing.
        PlaceError: the page's packages are not installed, or the port is in use.
    """
    try:
        from fairtrial.serve.server import Listening, open_browser
    except ImportError as error:
        raise PlaceError(
            f"the page needs the package {error.name}", hint="install it with: pip install 'fairtrial[page]'"
        ) from error
    one = (runs / "plan.json").exists()
    directory = runs.resolve().parent if one else runs
    listening = Listening(directory, port=port, names=names, control=_control(permissions))
    address = listening.address(f"/runs/{runs.resolve().name}" if one else "/")
    console = Console()
    console.print(f"page: {address}", markup=False, soft_wrap=True, highlight=False)
    redirect = open_browser(address) if browser else None
    try:
        listening.serve()
    finally:
        if redirect is not None:
            redirect.unlink(missing_ok=True)


def _control(permissions: Permissions) -> Control | None:
    if not permissions.control:
        if permissions.studies is not None:
            raise InputError(
                [Problem("has no effect without --control", file="--studies")], hint="add --control, or leave it out"
            )
        return None
    from fairtrial.serve.steering import Control

    if permissions.studies is not None and not permissions.studies.is_dir():
        raise InputError(
            [Problem(f"{permissions.studies} is not a directory", file="--studies")], hint="name a folder of studies"
        )
    return Control(studies=permissions.studies, planned=_plan)


def _plan(study: Path) -> Planned:
    from fairtrial.cli.running import plan
    from fairtrial.serve.steering import Planned

    printed, merged = plan.text(study)
    return Planned(printed, merged)
