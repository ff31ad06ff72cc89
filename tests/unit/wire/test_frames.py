"""Bytes to events and chunks: however the stream cuts them, and whatever comes that is no frame."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.protocol import generated as wire
from fairtrial.wire import messages
from fairtrial.wire.messages import CHUNK_BYTES, Event, FrameError, Frames, chunk_frame, request_frame

Frame = Event | tuple[int, bytes]


class Pieces:
    """A transport that gives its bytes in the pieces it was told, then ends."""

    def __init__(self, data: bytes, cuts: list[int]) -> None:
        edges = [0, *sorted(cut for cut in cuts if 0 < cut < len(data)), len(data)]
        self._pieces: Iterator[bytes] = iter([data[start:end] for start, end in pairwise(edges) if end > start])

    def read(self) -> bytes:
        return next(self._pieces, b"")

    def write(self, data: bytes) -> None:
        raise AssertionError(data)

    def close(self) -> None:
        """Nothing to close."""

    def said(self) -> str:
        return ""


def read(data: bytes, *, cuts: list[int] | None = None) -> list[Frame]:
    return list(Frames(Pieces(data, cuts or [])))


def as_bytes(frame: Frame) -> bytes:
    if isinstance(frame, tuple):
        return chunk_frame(*frame)
    return frame.model_dump_json().encode() + b"\n"


NUMBERS = st.integers(0, 2**63 - 1)
TEXT = st.text(max_size=40)
EVENTS = st.one_of(
    st.builds(wire.Done, id=NUMBERS),
    st.builds(wire.File, id=NUMBERS, bytes=NUMBERS),
    st.builds(wire.OutputLine, process=NUMBERS, stream=st.sampled_from(["stdout", "stderr"]), line=TEXT),
    st.builds(wire.Failed, id=NUMBERS, code=st.just("system"), message=TEXT, hint=st.none() | TEXT),
)
CHUNKS = st.tuples(NUMBERS, st.binary(max_size=300))


@given(st.lists(EVENTS | CHUNKS, max_size=12), st.lists(st.integers(0, 4000), max_size=30))
@settings(deadline=None)
def test_frames_come_out_as_they_went_in_however_the_stream_was_cut(frames: list[Frame], cuts: list[int]) -> None:
    assert read(b"".join(map(as_bytes, frames)), cuts=cuts) == frames


@given(st.binary(max_size=60))
@settings(deadline=None)
def test_a_chunk_may_hold_anything_even_what_looks_like_a_message(content: bytes) -> None:
    hidden = content + b'\n{"event":"done","id":1}\n{"chunk":5,"id":2}\n' + content
    after = wire.Done(id=9)
    assert read(chunk_frame(7, hidden) + as_bytes(after)) == [(7, hidden), after]


def test_a_line_of_output_that_looks_like_a_message_stays_a_line() -> None:
    for text in ('{"event":"done","id":1}', '{"id":1,"chunk":5}', "\\u0000\t\r\u2028"):
        line = wire.OutputLine(process=1, stream="stdout", line=text)
        assert read(as_bytes(line)) == [line]


@given(st.lists(EVENTS | CHUNKS, min_size=1, max_size=5), st.data())
@settings(deadline=None)
def test_a_stream_that_ends_inside_a_frame_gives_the_frames_before_it(frames: list[Frame], data: st.DataObject) -> None:
    *whole, last = [as_bytes(frame) for frame in frames]
    torn = data.draw(st.integers(0, len(last) - 1))
    assert read(b"".join(whole) + last[:torn]) == frames[:-1]


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES])
def test_a_chunk_is_its_header_and_exactly_that_many_bytes(size: int) -> None:
    content = bytes(index % 251 for index in range(size))
    assert read(chunk_frame(3, content) * 2) == [(3, content)] * 2


@pytest.mark.parametrize(
    "said",
    [
        b"\n",
        b"hello\n",
        b"[]\n",
        b'{"event":"later","id":1}\n',
        b'{"event":"done"}\n',
        b'{"event":"done","id":"one"}\n',
        b'{"event":"done","id":1,"more":2}\n',
        b'{"event":"done","id":-1}\n',
        b'{"id":1,"chunk":-1}\n',
        b'{"id":1,"chunk":1,"more":1}\n',
        b"\xff\xfe\n",
    ],
)
def test_what_is_no_frame_is_refused_with_its_beginning(said: bytes) -> None:
    with pytest.raises(FrameError, match="not a message of this protocol"):
        read(as_bytes(wire.Done(id=1)) + said)


def test_a_line_without_end_is_refused_before_it_fills_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "LINE_BYTES", 1000)
    with pytest.raises(FrameError, match="longer than 1000 bytes"):
        read(b"x" * 3000, cuts=list(range(0, 3000, 100)))
    long = wire.OutputLine(process=1, stream="stdout", line="x" * 900)
    assert read(as_bytes(long)) == [long]


def test_a_chunk_is_refused_by_its_length_before_it_comes() -> None:
    said = b'{"id":1,"chunk":%d}\n'
    assert read(said % CHUNK_BYTES + b"x" * CHUNK_BYTES) == [(1, b"x" * CHUNK_BYTES)]
    with pytest.raises(FrameError, match="a chunk is longer than 65536 bytes"):
        read(said % (CHUNK_BYTES + 1))


def test_a_request_is_one_line_whatever_it_holds() -> None:
    hello = wire.Hello(id=1, version="1", holder="two\nlines", lock=True)
    frame = request_frame(hello)
    assert frame.count(b"\n") == 1
    assert messages.REQUEST.validate_json(frame) == hello
