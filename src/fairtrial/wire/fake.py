"""An agent in memory, for tests of whatever talks to one: files in a dictionary, programs as Python functions.

fake = FakeTransport(run=lambda spawn: FakeProgram(code=0, stdout=["hello"]))
with Agent(fake, holder="a test", lock=True) as agent:
    agent.spawn("it", ["anything"]).wait()
"""

from __future__ import annotations

import itertools
import json
import queue
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fairtrial.protocol import generated as wire
from fairtrial.wire.messages import CHUNK_BYTES, REQUEST, VERSION, Event, Request, chunk_frame

USAGE = wire.Usage(
    user_s=0.0,
    system_s=0.0,
    max_resident_bytes=0,
    minor_faults=0,
    major_faults=0,
    blocks_in=0,
    blocks_out=0,
    voluntary_switches=0,
    involuntary_switches=0,
)


@dataclass(frozen=True)
class FakeProgram:
    """What a fake program does: its lines and its end. `code` of None: it goes on until it gets a signal."""

    code: int | None = 0
    stdout: Sequence[str] = ()
    stderr: Sequence[str] = ()


@dataclass
class FakeTransport:
    """A stream to an agent in memory.

    Attributes:
        run: what a spawned program does.
        files: the place's files by path; `put` adds to them.
        requests: every request that came, in order.
        steps: steps applied and not undone.
        left_running: programs that a sweep finds, once.
    """

    run: Callable[[wire.Spawn], FakeProgram] = lambda _spawn: FakeProgram()
    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    steps: list[wire.Step] = field(default_factory=list)
    left_running: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._processes = itertools.count()
        self._puts: dict[int, wire.Put] = {}
        self._cut = False

    def read(self) -> bytes:
        """Waits for what the agent says."""
        return self._waiting.get()

    def write(self, data: bytes) -> None:
        """Takes one frame, as the control plane writes them, and answers it.

        Raises:
            OSError: the stream was cut or closed.
        """
        if self._cut:
            raise BrokenPipeError("the stream was cut")
        line, _, content = data.partition(b"\n")
        message = json.loads(line)
        if "chunk" in message:
            self._take(message["id"], content)
        else:
            request = REQUEST.validate_python(message)
            self.requests.append(request)
            self._answer(request)

    def close(self) -> None:
        """Ends the stream."""
        self.cut()

    def said(self) -> str:
        """Nothing: there is no program."""
        return ""

    def cut(self) -> None:
        """Loses the stream, as a killed agent would."""
        self._cut = True
        self._waiting.put(b"")

    def say(self, *events: Event) -> None:
        """Lets the agent say something."""
        for event in events:
            self._waiting.put(event.model_dump_json().encode() + b"\n")

    def end(self, process: int, *, code: int | None = None, signal: int | None = None) -> None:
        """Ends a fake process."""
        now = time.monotonic_ns()
        self.say(wire.Exited(process=process, code=code, signal=signal, time_ns=now, usage=USAGE))

    def _answer(self, request: Request) -> None:
        number = request.id
        match request:
            case wire.Hello():
                self.say(self._welcome(number))
            case wire.Put():
                self._puts[number] = request
                self.files[request.path] = b""
                self._take(number, b"")
            case wire.Get():
                self._send(request)
            case wire.Spawn():
                self._spawn(request)
            case wire.Signal():
                self.say(wire.Done(id=number))
                self.end(request.process, signal=request.signal)
            case wire.Sweep():
                self.say(wire.Swept(id=number, programs=self.left_running, killed=len(self.left_running), left=0))
                self.left_running = []
            case wire.Change() | wire.Undo():
                self._step(request)
            case wire.Ping():
                self.say(wire.Pong(id=number, clock=_clock()))
            case wire.Bye():
                self.steps.clear()
                self.say(wire.Farewell(id=number, failed=[]))

    def _step(self, request: wire.Change | wire.Undo) -> None:
        if isinstance(request, wire.Change):
            self.steps.append(request.step)
            expect = request.step.check.expect if request.step.check else None
            self.say(wire.Changed(id=request.id, before=None, read_back=expect, applied=len(self.steps)))
        else:
            undone = max(0, len(self.steps) - request.keep)
            del self.steps[request.keep :]
            self.say(wire.Undone(id=request.id, steps=undone, failed=[], disturbed=[]))

    def _welcome(self, number: int) -> wire.Welcome:
        return wire.Welcome(
            id=number,
            version=VERSION,
            agent_sha256="0" * 64,
            clock=_clock(),
            state_directory="/var/lib/fairtrial",
            user="root",
            leftovers=wire.Leftovers(undone=0, killed=0, failed=[], overwritten=[]),
        )

    def _take(self, number: int, content: bytes) -> None:
        put = self._puts[number]
        self.files[put.path] += content
        if len(self.files[put.path]) == put.bytes:
            self.say(wire.Done(id=number))

    def _send(self, request: wire.Get) -> None:
        content = self.files.get(request.path)
        if content is None:
            self.say(wire.Failed(id=request.id, code="not_found", message=f"{request.path} does not exist", hint=None))
            return
        self.say(wire.File(id=request.id, bytes=len(content)))
        for start in range(0, len(content), CHUNK_BYTES):
            self._waiting.put(chunk_frame(request.id, content[start : start + CHUNK_BYTES]))

    def _spawn(self, request: wire.Spawn) -> None:
        process = next(self._processes)
        self.say(wire.Spawned(id=request.id, process=process, pid=1000 + process, time_ns=time.monotonic_ns()))
        ran = self.run(request)
        self.say(*(wire.OutputLine(process=process, stream="stdout", line=line) for line in ran.stdout))
        self.say(*(wire.OutputLine(process=process, stream="stderr", line=line) for line in ran.stderr))
        if ran.code is not None:
            self.end(process, code=ran.code)


def _clock() -> wire.Reading:
    return wire.Reading(monotonic_ns=time.monotonic_ns(), realtime_ns=time.time_ns())
