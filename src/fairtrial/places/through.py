"""Through any command line that runs another one elsewhere: `kubectl exec -i`, `podman exec -i`, `nsenter`, `sudo`.

The command does all that has to do with trust; it must pass the standard streams on as they are.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fairtrial.errors import PlaceError
from fairtrial.places import bringing, running
from fairtrial.places.place import ReachedPlace
from fairtrial.programs import Act
from fairtrial.study.tree.quantities import CommandLine
from fairtrial.wire import Limits, PipeTransport

# Words that arrive as they were sent print themselves; a shell on the way, as behind ssh, splits them.
PROBE: Final = ("printf", "%s.", "one two")
WHOLE: Final = b"one two."
SPLIT: Final = b"one.two."
# Bytes that a terminal would change, end at, or send back, and that need standard input at all.
ECHO: Final = b"\0\r\n\x04\x11\xff echo\n"


class ThroughParameters(BaseModel):
    """A place that a command line reaches."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: CommandLine = Field(
        description="Command line that runs the words behind it elsewhere and passes standard input and output on "
        "unchanged, such as `kubectl exec -i bench-0 --`. It is split as a shell would but run without one."
    )
    state_directory: str | None = Field(
        None, pattern="^/", description="Where the agent keeps its state there, as for a local place."
    )


class Through(ReachedPlace[ThroughParameters]):
    """Where a command line runs others."""

    name = "through"
    summary = "Wherever a command line such as `kubectl exec -i POD --` or `sudo -u USER` runs others."
    model = ThroughParameters
    example = MappingProxyType({"command": "kubectl exec -i bench-0 --"})

    @property
    def title(self) -> str:
        """With the command."""
        return f"{self.name} `{self.parameters.command}`"

    @property
    def need(self) -> str:
        """The way there."""
        return f"`{self.parameters.command}` to run commands"

    @property
    def agent_user(self) -> str:
        """Nobody knows before."""
        return f"whoever `{self.parameters.command}` runs commands as"

    def acts(self) -> Iterator[Act]:
        """The command line, and what it runs there."""
        yield Act("runs", f"{self.parameters.command} sh -c {{script}}", "as long as the run", here=True)
        yield from bringing.acts(self.parameters.state_directory)

    def connect(self, limits: Limits) -> PipeTransport:
        """Brings the agent there unless it is there already, and starts it.

        Raises:
            PlaceError: the command fails, in its own words, or changes what passes through it.
        """
        argv = shlex.split(self.parameters.command)
        printed = self._run([*argv, *PROBE], b"", limit_s=limits.connect_s)
        splits = printed == SPLIT
        if not splits:
            self._require_same(WHOLE, printed)
        self._require_same(ECHO, self._run([*argv, "cat"], ECHO, limit_s=limits.connect_s))

        def in_sh(script: str) -> list[str]:
            return [*argv, bringing.in_any_shell(script)] if splits else [*argv, "sh", "-c", script]

        def run(script: str, data: bytes, *, limit_s: float) -> str:
            printed = self._run(in_sh(script), data, limit_s=limit_s).decode(errors="replace")
            return printed.strip().rpartition("\n")[2]

        state = self.parameters.state_directory
        cache = f"{state}/agents" if state else None  # a user that a command makes may have no home
        script = bringing.serving(run, limits=limits, state_directory=state, cache=cache)
        return PipeTransport(in_sh(script), limits=limits, is_agent=True)

    def _require_same(self, sent: bytes, arrived: bytes) -> None:
        if arrived == sent:
            return
        hint = "let it print nothing of its own and make no terminal (no -t)"
        if not arrived:
            hint = "let it pass standard input on (`-i` of podman, docker and kubectl)"
        raise PlaceError(
            f"`{self.parameters.command}` changes what passes through it: {sent!r} arrived as {arrived!r:.200}",
            hint=hint,
        )

    def _run(self, argv: list[str], data: bytes, *, limit_s: float) -> bytes:
        command = self.parameters.command
        by_hand = f"try `{command} true` by hand; {bringing.NEEDS}"
        try:
            finished = running.finished(argv, data, limit_s=limit_s)
        except OSError as error:
            raise PlaceError(f"`{command}` cannot be run: {error}", hint="is its program on this PATH?") from error
        except subprocess.TimeoutExpired as error:
            raise PlaceError(f"`{command}` did not answer within {limit_s:g} s", hint=by_hand) from error
        if finished.returncode != 0:
            said = finished.stderr.decode(errors="replace").strip() or f"exit code {finished.returncode}"
            raise PlaceError(f"`{command}` failed: {said}", hint=by_hand)
        return finished.stdout
