"""A place with a stream to its agent: what systems, workloads and the run hold while they work there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from fairtrial.errors import PlaceError
from fairtrial.wire.agent import Agent
from fairtrial.wire.limits import Limits
from fairtrial.wire.native import run_native

STOP_S = 10.0
OUTPUT_LINES = 200  # of a failed program's output kept for its error


@dataclass(frozen=True)
class Finished:
    """A program that ended: its exit code and what it printed (both streams, in order of arrival)."""

    code: int | None
    output: str


@dataclass
class OpenPlace:
    """A place that answers.

    Attributes:
        agent: the stream.
        facts: the place's facts (`crates/protocol/src/state.rs`, `Facts`), as JSON values.
        server_user: user that servers run as where the agent is root; None: the agent's own user.
        carrier: the machine that a guest runs on, whose root is the guest's; None for any other place.
    """

    agent: Agent
    facts: Mapping[str, Any]
    server_user: str | None = None
    carrier: OpenPlace | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def limits(self) -> Limits:
        """How long is waited for what the place does."""
        return self.agent.limits

    @property
    def state_directory(self) -> PurePosixPath:
        """Where the agent keeps prepared data and work directories."""
        return PurePosixPath(self.agent.hello.state_directory)

    def execute(self, argv: Sequence[str], *, timeout_s: float | None = None, user: str | None = None) -> Finished:
        """Runs a program to its end and returns its code and output.

        Args:
            argv: the program and its arguments.
            timeout_s: how long it may run, seconds; `Limits.short_s` if not given.
            user: runs it; the agent's own user if not given.

        Raises:
            PlaceError: it ran longer than `timeout_s`, and was stopped.
        """
        limit_s = self.limits.short_s if timeout_s is None else timeout_s
        lines: list[str] = []
        process = self.agent.spawn(
            name=PurePosixPath(argv[0]).name,
            argv=list(argv),
            user=user,
            on_line=lambda _stream, line: lines.append(line),
        )
        try:
            exited = process.wait(limit_s)
        except TimeoutError:
            with contextlib.suppress(TimeoutError):  # what waits for a disk that is gone does not end when killed
                process.stop(STOP_S)
            raise PlaceError(
                f"`{' '.join(argv)}` did not end within {limit_s:g} s and was stopped",
                hint="check the load and the disks of the place",
            ) from None
        return Finished(code=exited.code, output="\n".join(lines[-OUTPUT_LINES:]))

    def require(
        self, argv: Sequence[str], *, hint: str, timeout_s: float | None = None, user: str | None = None
    ) -> str:
        """Runs a program that must succeed and returns its output.

        Raises:
            PlaceError: it failed; the message holds its output.
        """
        finished = self.execute(argv, timeout_s=timeout_s, user=user)
        if finished.code != 0:
            raise PlaceError(f"`{' '.join(argv)}` failed ({finished.code}):\n{finished.output}", hint=hint)
        return finished.output

    def native(  # noqa: PLR0913 - one call spans everything a native subcommand can need
        self,
        subcommand: str,
        parameters: Mapping[str, Any],
        *,
        timeout_s: float | None = None,
        on_progress: Callable[[Mapping[str, Any]], None] | None = None,
        environment: Mapping[str, str] | None = None,
        processors: Sequence[int] | None = None,
        groups: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Runs a native subcommand, for `Limits.short_s` unless a limit is given, and returns its result.

        Raises:
            PlaceError: it failed, in its own words.
        """
        result = run_native(
            self.agent,
            subcommand,
            parameters,
            timeout_s=self.limits.short_s if timeout_s is None else timeout_s,
            on_progress=on_progress,
            environment=environment,
            processors=processors,
            groups=groups,
        )
        return result or {}
