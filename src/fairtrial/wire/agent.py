"""An agent: the only way in which fairtrial touches a place."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self, TypedDict, TypeVar, Unpack

from fairtrial.errors import NOT_FOUND, AgentError, PlaceError, StreamLostError
from fairtrial.protocol import generated as wire
from fairtrial.wire import arriving
from fairtrial.wire.facts import BootFacts, ContainerFacts, GuestFacts
from fairtrial.wire.limits import Limits
from fairtrial.wire.messages import CHUNK_BYTES, SAME_VERSION, VERSION, Answer, Request, chunk_frame
from fairtrial.wire.process import OnLine, Process
from fairtrial.wire.stream import HINT, TRIED_AGAIN, PendingAnswers, Stream
from fairtrial.wire.transport import Transport

__all__ = ["Agent", "Process", "SpawnOptions"]

Output = wire.FileOutput | wire.NullOutput | wire.StreamOutput
STREAM = wire.StreamOutput()

Expected = TypeVar("Expected", bound=Answer | bytes)


class SpawnOptions(TypedDict, total=False):
    """How a process is started, beyond its name and arguments; see `protocol.generated.Spawn`.

    `stdout` and `stderr` are streamed unless they say otherwise: to `on_line` (called in the stream's thread as
    (`stdout` or `stderr`, text); it must not call the agent), else to `Process.lines`.
    """

    environment: Mapping[str, str]
    directory: str | None
    user: str | None
    processors: Sequence[int] | None
    groups: Sequence[str]
    stdout: Output
    stderr: Output
    stdin: str | None
    of_trial: bool
    on_line: OnLine | None


class Agent:
    """A stream to an agent that was greeted. Leaving its context ends the stream; the agent then undoes everything.

    Attributes:
        hello: what the agent said of itself and of what it cleaned up.
        limits: how long it and who uses it wait.
        boot: how the place was booted, if it is a host that boots.
        guest: how the place is run, if it was booted for this stream.
        container: how it is run, if it is a container.
        carrier: the agent of the machine that a guest or container runs on; it ends with the stream.
    """

    hello: wire.Welcome
    carrier: Agent | None = None
    boot: BootFacts | None = None
    container: ContainerFacts | None = None

    def __init__(
        self,
        transport: Transport,
        *,
        holder: str,
        lock: bool,
        limits: Limits | None = None,
        guest: GuestFacts | None = None,
    ) -> None:
        self.guest = guest
        self.limits = limits or Limits.from_environment()
        self._stream = Stream(transport, limits=self.limits)
        self._closed = False
        try:
            hello = wire.Hello(id=self._stream.number(), version=VERSION, holder=holder, lock=lock)
            self.hello = self._ask(hello, wire.Welcome, timeout_s=self.limits.hello_s)
        except TimeoutError:
            self._stream.close()
            raise PlaceError(
                f"the agent runs but did not greet within {self.limits.hello_s / 60:g} minutes",
                hint="it may still be undoing what an earlier run left: look at undo.jsonl at the place, and try again",
            ) from None
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except PlaceError:
            if error is None:  # else what already went wrong is the news
                raise

    def put(self, path: str, data: bytes | Path, *, mode: int = 0o644) -> None:
        """Writes a file at the place, atomically, creating its parents. `data`: the bytes, or a local file.

        Raises:
            AgentError: it cannot be written there.
            PlaceError: the local file shrank meanwhile.
        """
        if isinstance(data, Path):
            with data.open("rb") as file:
                self._put(path, file, size=data.stat().st_size, mode=mode)
        else:
            self._put(path, data, size=len(data), mode=mode)

    def _put(self, path: str, source: bytes | IO[bytes], *, size: int, mode: int) -> None:
        request = wire.Put(id=self._stream.number(), path=path, bytes=size, mode=mode)
        pending = self._stream.ask(request)
        missing = 0
        try:
            for start in range(0, size, CHUNK_BYTES):
                want = min(CHUNK_BYTES, size - start)
                content = source[start : start + want] if isinstance(source, bytes) else source.read(want)
                # A local file that shrinks meanwhile is filled up, so that the stream stays whole.
                self._stream.send(chunk_frame(request.id, content.ljust(want, b"\0")))
                missing += want - len(content)
            _expect(pending.take(), wire.Done)
        finally:
            self._stream.forget(request)
        if missing:
            raise PlaceError(
                f"the local file for {path} became {missing} bytes shorter while it was copied to the place",
                hint="stop the program that writes to the file, and start again",
            )

    def get(self, path: str, *, most_bytes: int = arriving.READ_BYTES) -> bytes:
        """Reads a file of the place.

        Raises:
            AgentError: code `not_found`, or `system` with the reason.
            PlaceError: it is larger than `most_bytes`.
        """
        return b"".join(self._get(path, most_bytes=most_bytes))

    def get_to(self, path: str, local: Path, *, most_bytes: int = arriving.FILE_BYTES) -> int:
        """Copies a file of the place to a local one, which must not be a link, and returns its bytes.

        Raises:
            AgentError: as `get`.
            PlaceError: it is larger than `most_bytes`.
        """
        with contextlib.closing(self._get(path, most_bytes=most_bytes)) as chunks:
            return arriving.write(local, chunks)

    def _get(self, path: str, *, most_bytes: int) -> Generator[bytes]:
        request = wire.Get(id=self._stream.number(), path=path)
        pending = self._stream.ask(request)
        try:
            missing = _expect(pending.take(), wire.File).bytes
            arriving.require_bytes(path, missing, most=most_bytes)
            while missing > 0:
                content = _expect(pending.take(), bytes)
                missing -= len(content)
                yield content
        finally:
            self._stream.forget(request)

    def spawn(self, name: str, argv: Sequence[str], **options: Unpack[SpawnOptions]) -> Process:
        """Starts a process; it is stopped when the stream ends, at the latest.

        Raises:
            AgentError: code `not_found` if there is no such program or user.
        """
        on_line = options.pop("on_line", None)
        streams = {"stdout": STREAM, "stderr": STREAM, **options}
        request = wire.Spawn.model_validate({"id": self._stream.number(), "name": name, "argv": list(argv), **streams})
        process = Process(name, on_line, send_signal=self.signal, kill_s=self.limits.kill_s)
        pending = self._stream.ask(request, follower=process)
        try:
            _expect(pending.take(), wire.Spawned)
        except AgentError as error:
            if error.code != NOT_FOUND or not str(error).startswith(argv[0]):
                raise
            raise AgentError(  # as execve(2) puts it: ENOENT is either
                f"{argv[0]} cannot be started: it is not there, or the C library or interpreter that it names is not",
                code=NOT_FOUND,
                hint="install what is missing at the place, or give the program's full path; `ldd` says what it names",
            ) from error
        finally:
            self._stream.forget(request)
        return process

    def signal(self, process: int, number: int, *, group: bool = False) -> None:
        """Sends a signal to a process by the agent's number for it."""
        self._ask(wire.Signal(id=self._stream.number(), process=process, signal=number, group=group), wire.Done)

    def sweep(self, grace_s: float) -> wire.Swept:
        """Ends what processes `of_trial` have left running; what has not ended after the grace is killed."""
        return self._ask(wire.Sweep(id=self._stream.number(), grace_ms=round(1000 * grace_s)), wire.Swept)

    def change(self, step: wire.Step) -> wire.Changed:
        """Applies a step; it is undone when the stream ends, at the latest.

        Raises:
            AgentError: code `check` if it does not read back (it is undone then).
        """
        return self._ask(wire.Change(id=self._stream.number(), step=step), wire.Changed)

    def undo(self, keep: int = 0) -> wire.Undone:
        """Undoes steps, newest first, until `keep` are left."""
        return self._ask(wire.Undo(id=self._stream.number(), keep=keep), wire.Undone)

    def clock(self) -> wire.Reading:
        """The place's clocks, read while this waits."""
        return self._ask(wire.Ping(id=self._stream.number()), wire.Pong).clock

    def close(self) -> None:
        """Ends the stream in order; when it returns, processes are gone and settings are restored.

        Raises:
            PlaceError: some could not be; the message names them.
            StreamLostError: the agent ended, or took too long, before it said so, and no call was told yet.
        """
        if self._closed:
            return
        self._closed = True
        if self._stream.reported:
            self._stream.close()  # the next agent there restores what this one could not
            return
        try:
            failed = self._ask(wire.Bye(id=self._stream.number()), wire.Farewell, timeout_s=self.limits.bye_s).failed
        except TimeoutError as error:
            raise StreamLostError(f"the agent did not confirm that the place is restored: {error}", hint=HINT) from None
        finally:
            self._stream.close()
        if failed:
            raise PlaceError("the agent could not restore: " + "; ".join(failed), hint=TRIED_AGAIN)

    def _ask(self, request: Request, answer: type[Expected], *, timeout_s: float | None = None) -> Expected:
        pending: PendingAnswers = self._stream.ask(request)
        try:
            return _expect(pending.take(timeout_s), answer)
        finally:
            self._stream.forget(request)


def _expect(answer: object, expected: type[Expected]) -> Expected:
    if isinstance(answer, expected):
        return answer
    raise AgentError(
        f"the agent sent the wrong answer: expected {expected.__name__}, found {type(answer).__name__}",
        code="protocol",
        hint=SAME_VERSION,
    )
