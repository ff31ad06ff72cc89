"""The messages as unions, and their two forms on the stream: a JSON line, or a chunk of raw bytes behind a header."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from fairtrial.protocol import generated as wire
from fairtrial.wire.transport import Transport

VERSION = "9"  # compared with the agent's at hello; a test compares it with crates/protocol
SAME_VERSION = "install the same version of fairtrial on both sides"  # a hint, where answers are not understood
CHUNK_BYTES = 64 * 1024
LINE_BYTES = 4 << 20  # an agent's longest line is an output line of 64 KiB, escaped; beyond this it is no agent

Request = (
    wire.Hello
    | wire.Put
    | wire.Get
    | wire.Spawn
    | wire.Signal
    | wire.Sweep
    | wire.Change
    | wire.Undo
    | wire.Ping
    | wire.Bye
)
Answer = (
    wire.Welcome
    | wire.Done
    | wire.File
    | wire.Spawned
    | wire.Swept
    | wire.Changed
    | wire.Undone
    | wire.Pong
    | wire.Farewell
    | wire.Failed
)
Event = Answer | wire.OutputLine | wire.Exited

REQUEST: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="request")])
EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="event")])


class FrameError(Exception):
    """What came is not this protocol."""


class Frames:
    """Cuts a transport's bytes into events and chunks."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._buffer = bytearray()

    def __iter__(self) -> Iterator[Event | tuple[int, bytes]]:
        """Events, and chunks as (number of their request, bytes), until the stream ends.

        Raises:
            FrameError: what came is not this protocol.
        """
        while (line := self._line()) is not None:
            try:
                if b'"event":' not in line:  # every event names itself, a header never does
                    header = wire.ChunkHeader.model_validate_json(line)
                    if header.chunk > CHUNK_BYTES:
                        raise FrameError(f"a chunk is longer than {CHUNK_BYTES} bytes")
                    content = self._exactly(header.chunk)
                    if content is None:
                        return
                    yield header.id, content
                else:
                    yield EVENT.validate_json(line)
            except ValidationError as error:
                raise FrameError(f"not a message of this protocol: {line[:200].decode(errors='replace')}") from error

    def _line(self) -> bytes | None:
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > LINE_BYTES:
                raise FrameError(f"a line is longer than {LINE_BYTES} bytes")
            if not self._more():
                return None
        return self._cut(end + 1)

    def _exactly(self, count: int) -> bytes | None:
        while len(self._buffer) < count:
            if not self._more():
                return None
        return self._cut(count)

    def _more(self) -> bool:
        data = self._transport.read()
        self._buffer += data
        return bool(data)

    def _cut(self, count: int) -> bytes:
        cut = bytes(self._buffer[:count])
        del self._buffer[:count]
        return cut


def request_frame(request: Request) -> bytes:
    """A request as bytes."""
    return request.model_dump_json().encode() + b"\n"


def chunk_frame(number: int, content: bytes) -> bytes:
    """A chunk of a `put` as bytes, header included."""
    return wire.ChunkHeader(id=number, chunk=len(content)).model_dump_json().encode() + b"\n" + content
