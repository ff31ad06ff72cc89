"""`fairtrial serve`: the live page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from fairtrial.errors import PlaceError


def serve(runs: Path, *, port: int, names: Sequence[str], browser: bool) -> None:
    """Shows runs in a browser until it is interrupted.

    Args:
        runs: a directory of runs, or one run.
        port: 0 for a free one.
        names: host names that the page answers to beside those of loopback.
        browser: whether to open one.

    Raises:
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
    listening = Listening(directory, port=port, names=names)
    address = listening.address(f"/runs/{runs.resolve().name}" if one else "/")
    console = Console()
    console.print(f"page: {address}", markup=False, soft_wrap=True, highlight=False)
    redirect = open_browser(address) if browser else None
    try:
        listening.serve()
    finally:
        if redirect is not None:
            redirect.unlink(missing_ok=True)
