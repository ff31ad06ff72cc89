"""`fairtrial govern`: governors beside a server of one's own, without a study."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Self

from fairtrial.errors import InputError, PlaceError, Problem
from fairtrial.study.tree.paths import expanded

if TYPE_CHECKING:
    from types import FrameType

    from fairtrial.protocol.generated import Decision, MysqlEndpoint
    from fairtrial.run.trial.governing import Governor, OnDecision
    from fairtrial.settings.steps.purge import PurgeGovernor
    from fairtrial.wire.open_place import OpenPlace

HOLDER: Final = "fairtrial govern purge"
DIRECTORY: Final = "govern"  # in the state directory: original values, while a server is governed
SCHEMA: Final = "information_schema"  # every user may use it
POLL_S: Final = 0.1
HINT: Final = "see `fairtrial govern purge --help`"
NANOSECONDS_PER_MILLISECOND: Final = 1e6


@dataclass(frozen=True)
class Server:
    """How a server is reached."""

    socket: Path
    user: str
    password_file: Path | None

    def endpoint(self) -> MysqlEndpoint:
        """As the agent has it.

        Raises:
            InputError: the password's file cannot be read.
        """
        from fairtrial.protocol.generated import MysqlEndpoint

        password = ""
        if self.password_file is not None:
            try:
                password = self.password_file.read_text(encoding="utf-8").rstrip("\n")
            except (OSError, UnicodeDecodeError) as error:
                raise _wrong("--password-file", f"cannot read {self.password_file}: {error}") from error
        try:
            socket = str(expanded(self.socket).absolute())
        except ValueError as error:
            raise _wrong("--socket", str(error)) from error
        return MysqlEndpoint(socket=socket, user=self.user, password=password, database=SCHEMA)


@dataclass(frozen=True)
class GovernOptions:
    """How it is governed: values as a study's `purge_governor` has them, by option; those not given are left out."""

    values: Mapping[str, object]
    seconds: float | None = None
    as_json: bool = False

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be set."""
        return bool(self.values.get("dry_run"))

    def purge(self) -> PurgeGovernor:
        """How purge is governed.

        Raises:
            InputError: a value is wrong, with its option.
        """
        from pydantic import ValidationError

        from fairtrial.settings.steps.purge import PurgeGovernor

        groups: dict[str, dict[str, object]] = defaultdict(dict)
        for path, value in self.values.items():
            parent, _, name = path.rpartition(".")
            groups[parent][name] = value
        try:
            return PurgeGovernor.model_validate({**groups.pop("", {}), **groups})
        except ValidationError as error:
            raise InputError(
                [
                    Problem(each["msg"].removeprefix("Value error, "), _option(each["loc"]))
                    for each in error.errors(include_url=False)
                ],
                hint=HINT,
            ) from error


def _option(location: tuple[int | str, ...]) -> str:
    path = ".".join(str(part) for part in location)
    return next((option for option, name in OPTIONS.items() if name == path), f"--{path}" if path else "govern purge")


# By option: the key of the setting that it is.
OPTIONS: Final[Mapping[str, str]] = {
    "--period": "period",
    "--answer-limit": "answer_limit",
    "--min-threads": "threads.min",
    "--max-threads": "threads.max",
    "--min-batch": "batch_size.min",
    "--max-batch": "batch_size.max",
    "--low-water": "low_water",
    "--stop-at": "stop",
    "--hysteresis": "hysteresis",
    "--dry-run": "dry_run",
}


def _wrong(option: str, message: str) -> InputError:
    return InputError([Problem(message, option)], hint=HINT)


@dataclass
class StopSignal:
    """Whether a signal has told this to end; the governor restores then."""

    by: int | None = None
    _before: dict[int, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        self.by = number


def purge(server: Server, options: GovernOptions) -> None:
    """Governs until it is told to end, or its time is over; prints what it decides.

    Raises:
        InputError: an option is wrong.
        PlaceError: the server cannot be governed, or its values could not be restored.
        KeyboardInterrupt: Ctrl-C; all is restored by then.
    """
    from fairtrial.run.trial.governing import Governor

    request = options.purge().governing(server.endpoint(), duration_s=options.seconds)
    with StopSignal() as stop, _place(changes=not options.dry_run) as (place, originals):
        governor = Governor(place, request, originals=originals, on_decision=_printer(stop, as_json=options.as_json))
        while stop.by is None and not governor.wait(POLL_S):
            pass
        doubt = governor.stop()
        if stop.by != signal.SIGPIPE:
            _conclude(governor, as_json=options.as_json)
    if doubt:
        raise PlaceError(doubt, hint="the server's original values are restored, unless the lines above say otherwise")
    if stop.by == signal.SIGPIPE:
        raise BrokenPipeError
    if stop.by == signal.SIGINT:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _place(*, changes: bool) -> Iterator[tuple[OpenPlace, PurePosixPath]]:
    """This machine, with its lock where something is changed: a measurement that runs here must not be disturbed."""
    from fairtrial.places import open_place
    from fairtrial.wire.open_place import OpenPlace

    with open_place("local", None, holder=f"{HOLDER}, process {os.getpid()}", lock=changes) as agent:
        place = OpenPlace(agent=agent)
        for failed in agent.hello.leftovers.failed:
            print(f"cannot restore what an earlier run left behind: {failed}", file=sys.stderr)
        directory = place.state_directory / DIRECTORY
        if changes:
            place.require(["install", "-d", "-m", "700", str(directory)], hint="check the state directory")
        yield place, directory / f"originals-{os.getpid()}-{time.time_ns()}.json"


def _printer(stop: StopSignal, *, as_json: bool) -> OnDecision:
    begun: list[int] = []

    def show(decision: Decision) -> None:
        begun.append(decision.time_ns)
        try:
            print(decision.model_dump_json() if as_json else _line(decision, since_ns=begun[0]), flush=True)
        except BrokenPipeError:
            stop.by = signal.SIGPIPE  # this is the stream's thread: who reads no further ends the command elsewhere

    return show


def _line(decision: Decision, *, since_ns: int) -> str:
    """`   1.250 s  fewer         threads 3  batch 300  age  27 %  history 120034  age 27 % has reached 26 %`."""
    seconds = (decision.time_ns - since_ns) / NANOSECONDS_PER_MILLISECOND / 1000
    parts = [
        f"threads {decision.threads}" if decision.threads is not None else "",
        f"batch {decision.batch_size}" if decision.batch_size is not None else "",
        f"history {decision.history_list_length}" if decision.history_list_length is not None else "",
    ]
    return f"{seconds:9.3f} s  {decision.decision:12}  {'  '.join(filter(None, [*parts, decision.reason]))}"


def _conclude(governor: Governor, *, as_json: bool) -> None:
    done = governor.governed
    if done is None:
        print(governor.said, file=sys.stderr)
    elif as_json:
        print(json.dumps(done.model_dump(mode="json")))
    else:
        cpu_ms = done.cpu_ns / NANOSECONDS_PER_MILLISECOND
        print(
            f"{done.looks} polls, {done.missed_looks} missed; {done.decisions} decisions, {done.sets} values set, "
            f"{done.refused} refused; {cpu_ms:.1f} ms of CPU time"
        )
