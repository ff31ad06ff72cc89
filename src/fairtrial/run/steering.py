"""What a person makes a run do while it goes on: requests that it reads between trials, never inside a window.

They come from the same user alone, through a file in memory beside the run's feed. To stop at once is a signal, as
Ctrl-C is: no request could reach into a trial. Every act stands in the journal, done or refused.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import Field, ValidationError

from fairtrial import plan as planning
from fairtrial.errors import PlaceError
from fairtrial.record.events import Act, Event, Steered
from fairtrial.record.live import MEMORY, controller, requests_path
from fairtrial.record.models import Extended, RecordModel
from fairtrial.run.progress import Progress
from fairtrial.run.schedule import Schedule
from fairtrial.study.file_model import MAXIMUM_BLOCKS
from fairtrial.words import counted

PRIVATE: Final = 0o600
POLL_S: Final = 0.2  # a pause is over as soon as a person who ended it looks
MOST_BYTES: Final = 1 << 20  # of requests: whoever writes more than that is no person
PAUSED: Final = "paused between trials: settings are undone; the place stays open and locked"
NO_TRIAL_LEFT: Final = "no trial is left to run: the run ends by itself"
# Why a design may not grow once it runs.
NOT_EXTENDED: Final[Mapping[str, str]] = {
    "fixed": "p values and intervals of a fixed design hold for the number of blocks planned beforehand; adding blocks "
    "after looking at results raises the error rate above its level",
    "sequential": "a group-sequential design spends its whole error by the planned maximum; looks beyond it would "
    "test with error that is already spent",
    "precision": "the coverage of the interval and the error spent over looks are computed for the planned maximum; "
    "neither holds for blocks beyond it",
}


class Request(RecordModel):
    """One line of the file. `blocks`: how many more, of `extend`."""

    act: Act
    blocks: int = Field(default=0, ge=0, le=MAXIMUM_BLOCKS)


def ask(directory: Path, request: Request) -> None:
    """Asks a run that goes on for something; the journal says what it did.

    Raises:
        PlaceError: nobody runs it, or this machine has no memory of the user's own to write to.
    """
    process = _running(directory)
    path = requests_path(directory, process=process)
    if path is None:
        home = MEMORY / f"fairtrial-{os.geteuid()}"
        raise PlaceError(
            f"the request cannot reach the run: {home} is not a directory that only you can use",
            hint="if it exists, remove it or restrict its permissions; or stop the run by Ctrl-C",
        )
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, PRIVATE)
        with os.fdopen(descriptor, "ab", buffering=0) as file:
            file.write(request.model_dump_json().encode() + b"\n")
    except OSError as error:
        raise PlaceError(f"the request cannot be written: {error}", hint="free memory in /dev/shm") from error
    if request.act == "stop_now":
        _interrupt(directory, process)


def _running(directory: Path) -> int:
    process = controller(directory)
    if process is None:
        raise PlaceError(f"no process runs {directory}", hint=f"resume it with: fairtrial run {directory} --resume")
    return process


def _interrupt(directory: Path, process: int) -> None:
    """Sends Ctrl-C's signal to the process that runs a record: the descriptor keeps its number from another's use."""
    try:
        descriptor = os.pidfd_open(process)
    except OSError as error:
        raise PlaceError(f"process {process} cannot be stopped: {error}", hint="it may have just ended") from error
    try:
        if controller(directory) != process:
            raise PlaceError(f"process {process} no longer runs {directory}", hint="look at the run again")
        signal.pidfd_send_signal(descriptor, signal.SIGTERM if _ignores_ctrl_c(process) else signal.SIGINT)
    except OSError as error:
        raise PlaceError(f"process {process} cannot be stopped: {error}", hint="stop it as its own user") from error
    finally:
        os.close(descriptor)


def _ignores_ctrl_c(process: int) -> bool:
    """Whether it was started in the background by a shell that cut it off from the keyboard; SIGTERM does the same."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    ignored = re.search(r"^SigIgn:\s*([0-9a-f]+)", status, re.MULTILINE)
    return ignored is not None and bool(int(ignored[1], 16) >> (signal.SIGINT - 1) & 1)


class Mailbox:
    """The requests to this process about one run, read once each."""

    def __init__(self, directory: Path) -> None:
        self._path = requests_path(directory, process=os.getpid())
        self._offset = 0

    def clear(self) -> None:
        """Throws away what was asked too late."""
        self._offset = 0
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()

    def requests(self) -> list[Request]:
        """What came since the last call; lines that are none are left out."""
        if self._path is None:
            return []
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                file.seek(self._offset)
                data = file.read(MOST_BYTES)
        except OSError:
            return []
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        found = []
        for line in data[:whole].splitlines():
            with contextlib.suppress(ValidationError):
                found.append(Request.model_validate_json(line))
        return found


def more(schedule: Schedule, blocks: int) -> Extended:
    """Further rounds after all others, of one block for every cell that is open."""
    number, round_, position = (
        1 + max(getattr(trial, name) for trial in schedule.queue) for name in ("block", "round", "position")
    )
    trials = planning.extension(
        schedule.plan,
        cells=[cell.name for cell in schedule.plan.cells if cell.name not in schedule.decided],
        blocks=range(number, number + blocks),
        round_=round_,
        position=position,
    )
    return Extended(round=schedule.looked_at, blocks=blocks, trials=trials)


@dataclass
class Steering:
    """Does between trials what was asked meanwhile.

    Attributes:
        mailbox: where requests arrive.
        schedule: of the run.
        append: journals an event.
        progress: who is told.
        paused: what a pause is, in words.
    """

    mailbox: Mailbox
    schedule: Schedule
    append: Callable[[Event], None]
    progress: Progress
    paused: str = PAUSED
    _paused: bool = field(default=False, init=False)
    _stopped: bool = field(default=False, init=False)

    def between_trials(self) -> None:
        """Returns when the next trial may begin.

        Raises:
            KeyboardInterrupt: the run shall stop here.
        """
        while self.waits():
            time.sleep(POLL_S)

    def waits(self) -> bool:
        """Does what was asked; whether the run is paused.

        Raises:
            KeyboardInterrupt: the run shall stop here.
        """
        for request in self.mailbox.requests():
            self._obey(request)
        return self._paused

    def interrupted(self) -> None:
        """Journals who interrupted the run, if it was a request."""
        self._stopped |= any(request.act == "stop_now" for request in self.mailbox.requests())
        if self._stopped:
            self.append(Steered(act="stop_now", obeyed=True))

    def _obey(self, request: Request) -> None:
        if request.act == "stop_now":
            self._stopped = True  # the signal is on its way
            return
        refused = self._refusal(request)
        extended = more(self.schedule, request.blocks) if request.act == "extend" and not refused else None
        if extended is not None:
            self.append(extended)
        self.append(Steered(act=request.act, blocks=request.blocks, obeyed=not refused, reason=refused))
        if refused:
            self.progress.note(f"refused to {request.act.replace('_', ' ')}: {refused}")
        elif request.act == "stop_after_trial":
            raise KeyboardInterrupt
        elif extended is not None:
            self.progress.note(f"up to {counted(extended.blocks, 'block')} more in every open cell")
        else:
            self._pause(waits=request.act == "pause")

    def _pause(self, *, waits: bool) -> None:
        self._paused = waits
        self.progress.paused(waits=waits)
        self.progress.note(self.paused if waits else "resumed")

    def _refusal(self, request: Request) -> str:
        """Why not, in a sentence; empty if it can be done."""
        if request.act == "extend":
            return self._no_extension(request.blocks)
        if request.act == "resume":
            return "" if self._paused else "the run is not paused"
        if self.schedule.next_trial() is None:
            return NO_TRIAL_LEFT
        return "the run is paused already" if request.act == "pause" and self._paused else ""

    def _no_extension(self, blocks: int) -> str:
        design = self.schedule.plan.design
        if design.stop in NOT_EXTENDED:
            return NOT_EXTENDED[design.stop]
        if self.schedule.stopped:
            return "the stopping rule has ended the run, and its decisions are final"
        if not blocks:
            return "expected at least 1 more block, found 0"
        if self.schedule.blocks + blocks > MAXIMUM_BLOCKS:
            return f"expected at most {MAXIMUM_BLOCKS} blocks in all, found {self.schedule.blocks + blocks}"
        return ""
