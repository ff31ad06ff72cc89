"""Files to a place and back: at the edges of chunks, while a file changes, and when the far side refuses."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.errors import AgentError, PlaceError, StreamLostError
from fairtrial.protocol import generated as wire
from fairtrial.wire import Agent
from fairtrial.wire.fake import FakeTransport
from fairtrial.wire.messages import CHUNK_BYTES

EDGES = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES - 1, 2 * CHUNK_BYTES, 2 * CHUNK_BYTES + 1]


def connect(fake: FakeTransport) -> Agent:
    return Agent(fake, holder="a test", lock=True)


class Counting(FakeTransport):
    """Keeps the length of every chunk that was put."""

    def __init__(self) -> None:
        super().__init__()
        self.chunks: list[int] = []

    def write(self, data: bytes) -> None:
        header, _, content = data.partition(b"\n")
        if b'"chunk"' in header:
            self.chunks.append(len(content))
        super().write(data)


@pytest.mark.parametrize("size", EDGES)
@pytest.mark.parametrize("local", [False, True], ids=["bytes", "file"])
def test_a_file_arrives_whole_at_every_edge_of_a_chunk(tmp_path: Path, size: int, *, local: bool) -> None:
    content = bytes(index % 251 for index in range(size))
    fake = Counting()
    source = tmp_path / "source"
    source.write_bytes(content)
    with connect(fake) as agent:
        agent.put("/there", source if local else content)
        assert fake.files["/there"] == content
        assert agent.get("/there") == content
        agent.get_to("/there", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content
    assert sum(fake.chunks) == size
    assert fake.chunks == [CHUNK_BYTES] * (size // CHUNK_BYTES) + [size % CHUNK_BYTES] * bool(size % CHUNK_BYTES)


@given(st.binary(max_size=400))
@settings(deadline=None, max_examples=30)
def test_whatever_a_file_holds_comes_back(content: bytes) -> None:
    with connect(FakeTransport()) as agent:
        agent.put("/there", content)
        assert agent.get("/there") == content


@pytest.mark.parametrize("left", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 10])
def test_a_file_that_shrinks_on_the_way_is_an_error_and_the_stream_stays_whole(tmp_path: Path, left: int) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * (2 * CHUNK_BYTES))
    fake = FakeTransport()

    class Shrinking(FakeTransport):
        def write(self, data: bytes) -> None:
            if b'"put"' in data.partition(b"\n")[0]:  # announced with its length, not yet sent
                with source.open("r+b") as file:
                    file.truncate(left)
            super().write(data)

    fake = Shrinking()
    with connect(fake) as agent:
        with pytest.raises(PlaceError, match=f"/there became {2 * CHUNK_BYTES - left} bytes shorter") as failure:
            agent.put("/there", source)
        assert "start again" in failure.value.hint
        agent.put("/after", b"still in step")
        assert agent.get("/after") == b"still in step"


def test_a_file_that_grows_on_the_way_arrives_as_long_as_it_was(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"old")

    class Growing(FakeTransport):
        def write(self, data: bytes) -> None:
            if b'"put"' in data.partition(b"\n")[0]:
                source.write_bytes(b"old and new")
            super().write(data)

    fake = Growing()
    with connect(fake) as agent:
        agent.put("/there", source)
        assert fake.files["/there"] == b"old"


def test_a_local_file_that_is_not_there_asks_the_place_for_nothing(tmp_path: Path) -> None:
    fake = FakeTransport()
    with connect(fake) as agent:
        with pytest.raises(FileNotFoundError):
            agent.put("/there", tmp_path / "none")
        assert [type(request).__name__ for request in fake.requests if not isinstance(request, wire.Ping)] == ["Hello"]


def test_a_refused_file_is_an_error_with_the_places_reason(tmp_path: Path) -> None:
    class Full(FakeTransport):
        def _take(self, number: int, content: bytes) -> None:
            if content:
                self.say(wire.Failed(id=number, code="system", message="No space left on device", hint="free some"))

    with connect(Full()) as agent:
        with pytest.raises(AgentError, match="No space left") as failure:
            agent.put("/there", b"content")
        assert (failure.value.code, failure.value.hint) == ("system", "free some")
        with pytest.raises(AgentError, match="does not exist"):
            agent.get_to("/nowhere", tmp_path / "here")


def test_a_stream_lost_inside_a_file_is_told_not_taken_for_its_end(tmp_path: Path) -> None:
    class Cut(FakeTransport):
        def _send(self, request: wire.Get) -> None:
            self.say(wire.File(id=request.id, bytes=1000))
            self.cut()

    agent = connect(Cut())
    with pytest.raises(StreamLostError):
        agent.get_to("/there", tmp_path / "here")
    agent.close()


def test_two_files_at_once_do_not_mix() -> None:
    contents = {f"/{name}": name.encode() * 100_000 for name in "abcd"}
    fake = FakeTransport()
    with connect(fake) as agent:
        threads = [threading.Thread(target=agent.put, args=item) for item in contents.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {path: fake.files[path] for path in contents} == contents
        assert {path: agent.get(path) for path in contents} == contents
