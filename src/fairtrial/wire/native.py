"""Running a native subcommand of the agent's binary at a place."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from fairtrial.errors import PlaceError
from fairtrial.wire.agent import Agent
from fairtrial.wire.process import how

ERROR_LINES = 20

OnProgress = Callable[[Mapping[str, Any]], None]


class NativeOptions(TypedDict, total=False):
    """Who hears of progress (in the stream's thread; must not call the agent), and how the process runs."""

    on_progress: OnProgress | None
    environment: Mapping[str, str] | None
    user: str | None
    processors: Sequence[int] | None
    groups: Sequence[str]


def run_native(
    agent: Agent,
    subcommand: str,
    parameters: Mapping[str, Any],
    *,
    timeout_s: float,
    **options: Unpack[NativeOptions],
) -> dict[str, Any] | None:
    """Runs a subcommand to its end; returns its result (its last line without `progress`), None if it has none.

    Raises:
        PlaceError: it failed, in its own words and with its own hint; or it ran longer than `timeout_s`.
    """
    listener = _Listener(options.get("on_progress"))
    processors = options.get("processors")
    process = agent.spawn(
        name=subcommand,
        argv=["fairtrial-agent", subcommand],
        stdin=json.dumps(parameters),
        environment=dict(options.get("environment") or {}),
        user=options.get("user"),
        processors=list(processors) if processors is not None else None,
        groups=options.get("groups", ()),
        on_line=listener,
    )
    try:
        exited = process.wait(timeout_s)
    except TimeoutError:
        process.stop(agent.limits.stop_s)
        raise PlaceError(
            f"`{subcommand}` ran longer than {timeout_s:g} s and was stopped",
            hint="check whether the place is overloaded, and whether the system answers",
        ) from None
    if exited.code != 0:
        raise listener.failure(subcommand, how(exited))
    return listener.result


class _Listener:
    """Sorts a subcommand's lines into progress, result and error."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.result: dict[str, Any] | None = None
        self._on_progress = on_progress
        self._errors: list[str] = []

    def __call__(self, stream: str, line: str) -> None:
        if stream == "stderr":
            self._errors.append(line)
            return
        found = _json_object(line)
        if found is None:
            self._errors.append(line)
        elif "progress" not in found:
            self.result = found
        elif self._on_progress is not None:
            self._on_progress(found)

    def failure(self, subcommand: str, ended: str) -> PlaceError:
        for line in reversed(self._errors):
            found = _json_object(line)
            if found is not None and "error" in found:
                return PlaceError(f"{subcommand}: {found['error']}", hint=found.get("hint") or "see the message above")
        said = "\n".join(self._errors[-ERROR_LINES:])
        return PlaceError(f"`{subcommand}` ended with {ended}:\n{said}", hint="see its output above")


def _json_object(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
