"""Opening a place for a run: stream, lock, facts, leftovers of killed runs removed."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from fairtrial.errors import PlaceError
from fairtrial.places import PASSING, Disk, open_place
from fairtrial.run.progress import Progress
from fairtrial.run.trial import workspace
from fairtrial.study.resolved import Section
from fairtrial.wire import Agent
from fairtrial.wire.open_place import OpenPlace

ROOT = 0
# The first that exists; servers refuse to run as root. Not those of a machine's own servers, which read their data.
SERVER_USERS = ("fairtrial", "nobody")
IMAGE_USERS = ("fairtrial", "mysql", "postgres", "nobody")  # what an image has is the trial's own


def holder(directory: Path) -> str:
    """Who holds a place, in words that help whom it refuses."""
    return f"run {directory.name} by {getpass.getuser()} on {socket.gethostname()}, process {os.getpid()}"


@contextlib.contextmanager
def opened(place: Section, *, directory: Path, progress: Progress, disk: Disk = PASSING) -> Iterator[OpenPlace]:
    """A place with its lock held, cleaned of what a killed run left.

    Args:
        place: of a resolved trial.
        directory: the run's.
        progress: is told what was cleaned.
        disk: of a place that boots: which disk it gets, and whether what is written there stays for later trials.

    Raises:
        PlaceError: unreachable, busy, of another protocol version, or changed by an earlier run for good.
    """
    with (
        open_place(place.kind, place.parameters, holder=holder(directory), disk=disk) as agent,
        _ended_in_words(agent, progress),
    ):
        opened_place = placed(agent)
        leftovers = agent.hello.leftovers
        if leftovers.undone or leftovers.killed:
            progress.note(
                f"cleaned up after an earlier run: {leftovers.undone} settings restored, "
                f"{leftovers.killed} processes ended"
            )
        for file in leftovers.overwritten:
            progress.note(f"restored although it had been changed since an earlier run: {file}")
        for each in (agent, agent.carrier):  # what is left on a machine is in its guests and containers, too
            if each is not None:
                _require_restored(each, progress)
        # What is left may be needed to restore what could not be undone; a guest whose disk passes has nothing left.
        if not leftovers.failed and (agent.guest is None or disk.keep):
            workspace.remove(opened_place, opened_place.state_directory / "work")
        yield opened_place


def _require_restored(agent: Agent, progress: Progress) -> None:
    failed = agent.hello.leftovers.failed
    for each in failed:
        progress.note(f"left by an earlier run and not restorable: {each}")
    # Options of a server that was there already hold nobody up: the agent does not try those again.
    if failed and (failed_again := agent.undo().failed):
        raise PlaceError(
            f"settings that an earlier run left cannot be restored: {'; '.join(failed_again)}",
            hint="end what keeps them (who uses a mount, what fills swap) or restore them by hand, and start again",
        )


@contextlib.contextmanager
def _ended_in_words(agent: Agent, progress: Progress) -> Iterator[None]:
    """Ends the stream of a run that is interrupted or fails, and says so where its changes may still be there."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            progress.note("stopping: what the run has changed at the place is being restored")
        try:
            agent.close()
        except (PlaceError, KeyboardInterrupt) as failure:
            why = str(failure) or "interrupted"
            left = "the next run or `fairtrial doctor` there restores what is left"  # no doctor boots a host
            progress.note(f"the place may not be restored ({why}): {left}")
            if isinstance(failure, KeyboardInterrupt):
                raise
        raise


def placed(agent: Agent) -> OpenPlace:
    """The place of an agent, with the user that servers run as.

    Raises:
        PlaceError: its agent is root, and there is no such user.
    """
    opened_place = OpenPlace(agent=agent, carrier=None if agent.carrier is None else placed(agent.carrier))
    if opened_place.facts.user_id == ROOT:
        opened_place.server_user = _server_user(opened_place.root)
    return opened_place


def _server_user(place: OpenPlace) -> str:
    container = place.agent.container
    users = SERVER_USERS if container is None else IMAGE_USERS
    for user in users:
        if place.execute(["id", "-u", user]).code == 0:
            return user
    where = "the place" if container is None else f"/etc/passwd of the image {container.image}"
    raise PlaceError(
        f"{where} has none of the users {', '.join(users)} to run servers as, and they refuse to be root",
        hint="create one there"
        + (" (`useradd --system fairtrial`), or reach the place as another user" if container is None else ""),
        field="" if container is None else "place.container.image",
    )
