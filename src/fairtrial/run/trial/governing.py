"""A governor's life beside a server: recorded for undoing before it starts, told to end, cleaned up after a kill.

Owns the process and its way back. It must not know how purge is governed (`crates/govern`).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Final

from pydantic import ValidationError

from fairtrial.errors import PlaceError, StreamLostError, StuckError, SystemStartError
from fairtrial.protocol.endpoints import Database
from fairtrial.protocol.generated import Decision, ExecuteAction, ExecuteInverse, Governed, GovernPurge, Step
from fairtrial.protocol.subcommands import GOVERN_PURGE, Failure, failure
from fairtrial.record.models import EffectiveSetting
from fairtrial.settings.steps.purge import PurgeGovernor
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import how

NAME: Final = "purge_governor"
RESTORE: Final = ("fairtrial-agent", "govern-restore")
UNREACHABLE: Final = "cannot govern: "  # as the governor says that there is no server to ask
BESIDE: Final = {"duration_s", "endpoint", "originals", "output_directory"}  # what does not say how purge is governed
POLL_S: Final = 0.02
MOST_MISSED: Final = 0.9  # of its looks; below, `governor_period_s` says how often it really looked

OnDecision = Callable[[Decision], None]


class Governor:
    """A governor at work, once the server has answered it.

    Attributes:
        effective: what was asked for, what the server had before, and by what it lets itself be governed.
        governed: its last word; None before it ended, and where it was killed.
    """

    def __init__(
        self,
        place: OpenPlace,
        request: GovernPurge,
        *,
        originals: PurePosixPath,
        processors: Sequence[int] | None = None,
        on_decision: OnDecision | None = None,
    ) -> None:
        """Starts it, and returns when it governs.

        Args:
            place: where the server is; with its lock, unless `request` is a `dry_run`.
            request: how it is governed, but for `originals`.
            originals: a file that does not exist, in a directory that does.
            processors: that it may use.
            on_decision: hears of decisions that go to no file; in the stream's thread.

        Raises:
            PlaceError: the server cannot be governed, or refuses.
            SystemStartError: it does not answer, or the governor was killed.
        """
        self.governed: Governed | None = None
        self._place = place
        self._originals = originals
        self._on_decision = on_decision
        self._said: list[str] = []
        self._started: Decision | None = None
        self._heard = threading.Event()
        self.changes = not request.dry_run
        if self.changes:
            self._remember()
        self._process = place.agent.spawn(
            name="governor",
            argv=GOVERN_PURGE.argv,
            stdin=GOVERN_PURGE.document(request.model_copy(update={"originals": str(originals)})),
            processors=processors,
            on_line=self._hear,
        )
        self.effective = self._wait(request)

    def _remember(self) -> None:
        """The way back is in the undo journal before anything can change; nothing is left to restore until then."""
        argv = [*RESTORE, str(self._originals)]
        step = Step(name=NAME, action=ExecuteAction(argv=argv), inverse=ExecuteInverse(argv=argv))
        self._place.agent.change(step)

    def _hear(self, stream: str, line: str) -> None:
        """The stream's thread: decisions, in the end what it all came to; errors on the other stream."""
        if stream == "stdout" and '"decision"' in line:
            decision = Decision.model_validate_json(line)
            if decision.decision == "started":
                self._started = decision
                self._heard.set()
            if self._on_decision is not None:
                self._on_decision(decision)
            return
        self._said.append(line)

    def _wait(self, request: GovernPurge) -> EffectiveSetting:
        deadline = time.monotonic() + self._place.limits.short_s
        while not self._heard.is_set() and not self.wait(POLL_S) and time.monotonic() < deadline:
            pass
        if self._started is None:
            exited = self._process.stop(self._place.limits.stop_s)
            self.restore()
            said = failure(self._said) or Failure(error=f"it ended ({how(exited)})", hint="look at the server")
            message = f"the purge governor does not start: {said.error}"
            # A server that is gone, or a governor that was killed, may be one trial's; what a server refuses is all's.
            if exited.code is None or said.error.startswith(UNREACHABLE):
                raise SystemStartError(message, hint=said.hint)
            raise PlaceError(message, hint=said.hint)
        started = self._started
        return EffectiveSetting(
            name=NAME,
            asked=json.dumps(request.model_dump(mode="json", exclude=BESIDE)),
            before=f"innodb_purge_threads={started.threads} innodb_purge_batch_size={started.batch_size}",
            read_back=started.reason if self.changes else f"nothing is set: {started.reason}",
        )

    def wait(self, limit_s: float) -> bool:
        """Waits for its end so long at most; whether it has ended, asked or not.

        Raises:
            StreamLostError: the stream to the place ended, and the governor with it.
        """
        try:
            self._process.wait(limit_s)
        except TimeoutError:
            return False
        return True

    @property
    def said(self) -> str:
        """All that it said beside its decisions."""
        return "\n".join(self._said)

    def stop(self) -> str:
        """Ends it; returns why it did not govern as asked, empty if it did. The server has its own values afterwards.

        Raises:
            PlaceError: they could not be restored.
        """
        exited = self._process.stop(self._place.limits.stop_s)
        self.governed = _last_word(self._said)
        if exited.code != 0:
            self.restore()
            said = failure(self._said)
            return f"the purge governor failed ({how(exited)})" + (f": {said.error}" if said else "")
        if self.governed is None:
            return "the purge governor said nothing of what it did; is the agent an older one?"
        if self.governed.refused:
            return f"the server refused {self.governed.refused} of the purge governor's values"
        due = self.governed.missed_looks + self.governed.looks
        if self.governed.missed_looks > MOST_MISSED * due:
            return f"the purge governor missed {self.governed.missed_looks} of {due} looks: lengthen its period"
        return "" if self.governed.restored else "somebody else has set purge while it was governed"

    def restore(self) -> None:
        """Restores what a governor that is no more has left.

        Raises:
            PlaceError: it cannot be; the undo journal still knows of it.
        """
        if self.changes:
            argv = [*RESTORE, str(self._originals)]
            self._place.require(argv, hint="set innodb_purge_threads and innodb_purge_batch_size by hand")


def _last_word(lines: Sequence[str]) -> Governed | None:
    for line in reversed(lines):
        try:
            return Governed.model_validate_json(line)
        except ValidationError:
            continue
    return None


def ended(governor: Governor) -> str:
    """As `Governor.stop`, for a server that ends with its trial, and all that was set with it: never an error.

    Raises:
        StreamLostError: the stream to the place ended.
        StuckError: the governor does not end.
    """
    try:
        return governor.stop()
    except (StreamLostError, StuckError):
        raise
    except PlaceError as error:
        return str(error)


def beside(
    place: OpenPlace,
    directory: PurePosixPath,
    purge: PurgeGovernor,
    *,
    endpoint: Database | None,
    processors: Sequence[int] | None,
) -> Governor:
    """A governor of a trial's server, with its files among the trial's raw ones.

    Args:
        place: the system's.
        directory: of the trial there, with an `out` in it.
        purge: how it is governed.
        endpoint: how the server's own counters are reached.
        processors: of the load.

    Raises:
        PlaceError: as `Governor`.
    """
    if endpoint is None:
        raise PlaceError("settings.purge_governor needs a server, and this system has none", hint="leave it out")
    request = purge.governing(endpoint, output_directory=str(directory / "out"))
    return Governor(place, request, originals=directory / "governor-originals.json", processors=processors)
