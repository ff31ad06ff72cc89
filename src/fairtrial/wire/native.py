"""Running a native subcommand of the agent's binary at a place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypedDict, Unpack

from pydantic import ValidationError

from fairtrial.errors import PlaceError
from fairtrial.protocol.progress import PROGRESS, ProgressLine
from fairtrial.protocol.subcommands import I, O, Subcommand, failure
from fairtrial.wire.agent import Agent
from fairtrial.wire.messages import SAME_VERSION
from fairtrial.wire.process import Process, how

ERROR_LINES: Final = 20
MARK: Final = '{"progress"'  # how a line of progress begins

OnProgress = Callable[[ProgressLine], None]


class NativeOptions(TypedDict, total=False):
    """Who hears of progress (in the stream's thread; must not call the agent) and of the process, and how it runs."""

    on_progress: OnProgress | None
    on_start: Callable[[Process], None] | None
    environment: Mapping[str, str] | None
    user: str | None
    processors: Sequence[int] | None
    groups: Sequence[str]


def run_native(
    agent: Agent, subcommand: Subcommand[I, O], parameters: I, *, timeout_s: float, **options: Unpack[NativeOptions]
) -> O:
    """Runs a subcommand to its end, and returns its result.

    Raises:
        PlaceError: it failed, in its own words and with its own hint; or it ran longer than `timeout_s`; or what it
            gave is not its result.
    """
    listener = _Listener(options.get("on_progress"))
    process = agent.spawn(
        name=subcommand.name,
        argv=subcommand.argv,
        stdin=subcommand.document(parameters),
        environment=options.get("environment") or {},
        user=options.get("user"),
        processors=options.get("processors"),
        groups=options.get("groups", ()),
        on_line=listener,
    )
    if (on_start := options.get("on_start")) is not None:
        on_start(process)
    try:
        exited = process.wait(timeout_s)
    except TimeoutError:
        process.stop(agent.limits.stop_s)
        raise PlaceError(
            f"`{subcommand.name}` ran longer than {timeout_s:g} s and was stopped",
            hint="check whether the place is overloaded, and whether the system answers",
        ) from None
    if exited.code != 0:
        raise listener.failure(subcommand.name, how(exited))
    try:
        return subcommand.result(listener.result)
    except ValidationError as error:
        raise PlaceError(
            f"`{subcommand.name}` gave the wrong result: {error}",
            hint=SAME_VERSION,
        ) from error


class _Listener:
    """Sorts a subcommand's lines into progress, result and error."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.result: str | None = None
        self._on_progress = on_progress
        self._errors: list[str] = []

    def __call__(self, stream: str, line: str) -> None:
        if stream == "stdout" and line.startswith(MARK):
            self._tell(line)
        else:
            self._errors.append(line)
            if stream == "stdout" and line.startswith("{"):
                self.result = line

    def _tell(self, line: str) -> None:
        if self._on_progress is None:
            return
        try:
            progress = PROGRESS.validate_json(line)
        except ValidationError:
            self._errors.append(line)
        else:
            self._on_progress(progress)

    def failure(self, subcommand: str, ended: str) -> PlaceError:
        fault = failure(self._errors)
        if fault is not None:
            return PlaceError(f"{subcommand}: {fault.error}", hint=fault.hint)
        said = "\n".join(self._errors[-ERROR_LINES:])
        return PlaceError(f"`{subcommand}` ended with {ended}:\n{said}", hint="see its output above")
