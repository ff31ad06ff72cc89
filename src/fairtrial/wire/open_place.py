"""A place with a stream to its agent: what systems, workloads and the run hold while they work there."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import TypedDict, Unpack

from fairtrial.errors import PlaceError
from fairtrial.protocol.subcommands import FACTS, I, O, Subcommand
from fairtrial.wire.agent import Agent
from fairtrial.wire.facts import Facts
from fairtrial.wire.limits import Limits
from fairtrial.wire.native import NativeOptions, run_native

STOP_S = 10.0
OUTPUT_LINES = 200  # of a failed program's output kept for its error


@dataclass(frozen=True)
class ProgramResult:
    """A program that ended: its exit code and what it printed (both streams, in order of arrival; standard output)."""

    code: int | None
    output: str
    stdout: str = ""


class ProgramOptions(TypedDict, total=False):
    """How a program runs.

    `timeout_s`: how long it may, seconds; `Limits.short_s` if not given. `user`: who runs it; the agent's own user if
    not given. `environment`: variables beyond those that every process gets.
    """

    timeout_s: float | None
    user: str | None
    environment: Mapping[str, str] | None


@dataclass
class OpenPlace:
    """A place that answers.

    Attributes:
        agent: the stream.
        server_user: user that servers run as where the agent is root; None: the agent's own user.
        carrier: the machine that a guest or container runs on; None for any other place.
    """

    agent: Agent
    server_user: str | None = None
    carrier: OpenPlace | None = None

    @cached_property
    def facts(self) -> Facts:
        """The place's facts, as its agent tells them when they are first asked for."""
        facts = self.native(FACTS, None).model_dump()
        if self.agent.container is not None and self.agent.container.memory_bytes is not None:
            facts["memory_bytes"] = min(facts["memory_bytes"], self.agent.container.memory_bytes)
        agent = self.agent
        return Facts.model_validate({**facts, "boot": agent.boot, "guest": agent.guest, "container": agent.container})

    @property
    def root(self) -> OpenPlace:
        """Where this place's files and users are: a guest's are its machine's."""
        return self if self.carrier is None or self.agent.container is not None else self.carrier

    @property
    def kernel(self) -> OpenPlace:
        """Where this place's kernel obeys: a container's is its machine's, and gives the container no say."""
        return self.carrier if self.carrier is not None and self.agent.container is not None else self

    @property
    def limits(self) -> Limits:
        """How long is waited for what the place does."""
        return self.agent.limits

    @property
    def state_directory(self) -> PurePosixPath:
        """Where the agent keeps prepared data and work directories."""
        return PurePosixPath(self.agent.hello.state_directory)

    def execute(self, argv: Sequence[str], **options: Unpack[ProgramOptions]) -> ProgramResult:
        """Runs a program to its end and returns its code and output.

        Raises:
            PlaceError: it ran longer than it may, and was stopped.
        """
        limit_s = self.limits.short_s if (given := options.get("timeout_s")) is None else given
        lines: list[tuple[str, str]] = []
        process = self.agent.spawn(
            name=PurePosixPath(argv[0]).name,
            argv=list(argv),
            user=options.get("user"),
            environment=options.get("environment") or {},
            on_line=lambda stream, line: lines.append((stream, line)),
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
        output = "\n".join(line for _, line in lines[-OUTPUT_LINES:])
        stdout = "\n".join([line for stream, line in lines if stream == "stdout"][-OUTPUT_LINES:])
        return ProgramResult(code=exited.code, output=output, stdout=stdout)

    def require(self, argv: Sequence[str], *, hint: str, **options: Unpack[ProgramOptions]) -> str:
        """Runs a program that must succeed and returns its output.

        Raises:
            PlaceError: it failed; the message holds its output.
        """
        return self.succeeded(argv, hint=hint, **options).output

    def succeeded(self, argv: Sequence[str], *, hint: str, **options: Unpack[ProgramOptions]) -> ProgramResult:
        """As `require`, with the streams apart."""
        finished = self.execute(argv, **options)
        if finished.code != 0:
            raise PlaceError(f"`{' '.join(argv)}` failed ({finished.code}):\n{finished.output}", hint=hint)
        return finished

    def native(
        self,
        subcommand: Subcommand[I, O],
        parameters: I,
        *,
        timeout_s: float | None = None,
        **options: Unpack[NativeOptions],
    ) -> O:
        """Runs a native subcommand, for `Limits.short_s` unless a limit is given, and returns its result.

        Raises:
            PlaceError: it failed, in its own words.
        """
        limit_s = self.limits.short_s if timeout_s is None else timeout_s
        return run_native(self.agent, subcommand, parameters, timeout_s=limit_s, **options)
