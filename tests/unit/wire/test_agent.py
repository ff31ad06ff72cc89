"""The control plane's side of a stream, against an agent in memory."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import eventually

from fairtrial.errors import AgentError, PlaceError, StreamLostError, StuckError
from fairtrial.protocol import generated as wire
from fairtrial.protocol.subcommands import FILE_LOAD, RESTORE
from fairtrial.wire import Agent, Limits, run_native
from fairtrial.wire.fake import USAGE, FakeProgram, FakeTransport
from fairtrial.wire.messages import CHUNK_BYTES
from fairtrial.wire.process import Process
from fairtrial.wire.stream import ANSWERS_KEPT

WAIT_S = 60.0
FILES = wire.FileLoad(directory="/d", files=1, bytes=4096, seed=1)


def connect(fake: FakeTransport, limits: Limits | None = None) -> Agent:
    return Agent(fake, holder="a test", lock=True, limits=limits)


def test_the_first_request_is_hello_and_the_last_is_bye() -> None:
    fake = FakeTransport()
    with connect(fake) as agent:
        assert agent.hello.state_directory == "/var/lib/fairtrial"
    assert isinstance(fake.requests[0], wire.Hello)
    assert fake.requests[0].holder == "a test"
    assert isinstance(fake.requests[-1], wire.Bye)
    agent.close()  # once is enough, twice is harmless


def test_files_travel_in_chunks(tmp_path: Path) -> None:
    fake = FakeTransport()
    content = bytes(range(256)) * 1000
    with connect(fake) as agent:
        agent.put("/there", content)
        assert fake.files["/there"] == content
        agent.get_to("/there", tmp_path / "here")
        assert (tmp_path / "here").read_bytes() == content
        agent.put("/again", tmp_path / "here")
        assert agent.get("/again") == content
        agent.put("/empty", b"")
        assert agent.get("/empty") == b""


def test_a_file_comes_no_faster_than_it_is_taken_and_whoever_gives_up_stops_nobody_else() -> None:
    fake = FakeTransport(files={"/large": bytes(200 * CHUNK_BYTES), "/small": b"small"})
    with connect(fake) as agent:
        chunks = agent._get("/large", most_bytes=1 << 30)
        assert len(next(chunks)) == CHUNK_BYTES
        left = 200 - 1 - ANSWERS_KEPT
        eventually(lambda: fake._waiting.qsize() <= left, "chunks are read ahead")
        assert fake._waiting.qsize() >= left - 2
        chunks.close()
        assert agent.get("/small") == b"small"


def test_lines_that_nobody_takes_are_kept_up_to_a_size() -> None:
    process = Process("it", None, send_signal=lambda *_arguments, **_options: None, kill_s=1.0)
    for number in range(20):
        process.wrote(wire.OutputLine(process=1, stream="stdout", line=str(number).ljust(1 << 20)))
    process.ended(wire.Exited(process=1, code=0, signal=None, time_ns=1, usage=USAGE))
    assert [line.strip() for _, line in process.lines()] == [str(number) for number in range(4, 20)]


def test_a_failure_carries_its_code_and_a_hint() -> None:
    with connect(FakeTransport()) as agent, pytest.raises(AgentError, match="/nowhere does not exist") as failure:
        agent.get("/nowhere")
    assert failure.value.code == "not_found"
    assert failure.value.hint


def test_a_process_is_followed_to_its_end() -> None:
    fake = FakeTransport(run=lambda spawn: FakeProgram(code=3, stdout=[spawn.argv[1]], stderr=["oh"]))
    with connect(fake) as agent:
        process = agent.spawn("it", ["echo", "hello"])
        assert sorted(process.lines()) == [("stderr", "oh"), ("stdout", "hello")]
        assert process.wait(WAIT_S).code == 3
        assert process.pid == 1000


def test_who_listens_to_a_process_that_writes_without_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairtrial.wire.process.CHARACTERS_HEARD", 1000)
    heard: list[str] = []
    with connect(FakeTransport(run=lambda _spawn: FakeProgram(stdout=["x" * 100] * 20))) as agent:
        process = agent.spawn("loud", ["loud"], on_line=lambda _stream, line: heard.append(line))
        with pytest.raises(StreamLostError, match="loud wrote more than 1,000 characters"):
            process.wait(WAIT_S)
    assert len(heard) == 6


def test_waiting_for_a_process_has_a_limit_and_stopping_it_does_not_hang() -> None:
    fake = FakeTransport(run=lambda _spawn: FakeProgram(code=None))
    with connect(fake) as agent:
        process = agent.spawn("it", ["sleep", "1000"])
        with pytest.raises(TimeoutError, match="it is still running"):
            process.wait(0.01)
        assert process.stop(WAIT_S).signal == signal.SIGTERM
        assert process.stop(WAIT_S).signal == signal.SIGTERM, "it is stopped already"


@pytest.mark.parametrize("group", [False, True])
def test_a_process_or_its_group_is_asked_to_end_once_and_killed_when_it_does_not(*, group: bool) -> None:
    """Some take a second SIGTERM for "now", and lose what they would have written."""
    sent: list[tuple[int, bool]] = []

    def send(_process: int, number: int, /, *, group: bool = False) -> None:
        sent.append((number, group))

    with pytest.raises(StuckError):
        Process("store", None, send_signal=send, kill_s=0.01).stop(0.01, group=group)
    assert sent == [(signal.SIGTERM, group), (signal.SIGKILL, True)]


def test_a_process_that_not_even_a_kill_ends_is_the_places_trouble_and_no_bug_of_ours() -> None:
    sent: list[int] = []
    process = Process("fio", None, send_signal=lambda _process, number, **_group: sent.append(number), kill_s=0.01)
    with pytest.raises(StuckError, match=r"fio \(process 0\) has not ended .* after it was killed") as stuck:
        process.stop(0.01)
    assert (sent, stuck.value.exit_code) == ([signal.SIGTERM, signal.SIGKILL], 3)
    assert isinstance(stuck.value, TimeoutError), "for who goes on without its end"
    assert "disks" in stuck.value.hint


def test_a_lost_stream_is_told_to_every_waiting_call_at_once() -> None:
    fake = FakeTransport(run=lambda _spawn: FakeProgram(code=None))
    agent = connect(fake)
    first, second = agent.spawn("first", ["x"]), agent.spawn("second", ["x"])
    lost: list[str] = []

    def wait_for(what: Callable[[], object]) -> None:
        try:
            what()
        except StreamLostError as error:
            lost.append(str(error))

    never = threading.Event()
    calls: list[Callable[[], object]] = [
        first.wait,
        second.wait,
        lambda: list(first.lines()),
        lambda: second.wait_until(never),
    ]
    threads = [threading.Thread(target=wait_for, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    fake.cut()
    for thread in threads:
        thread.join(WAIT_S)
    assert lost == ["the agent ended the stream"] * 4
    with pytest.raises(StreamLostError):
        agent.undo()
    agent.close()


def test_silence_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTransport()
    with connect(fake, Limits(silence_s=0.3)) as agent:
        monkeypatch.setattr(fake, "say", lambda *_events: None)
        with pytest.raises(StreamLostError, match="silent"):
            agent.get("/anything")


def unanswered(number: int) -> wire.Pong:
    """To a ping that nobody waits for."""
    return wire.Pong(id=number + 1000, clock=wire.Reading(monotonic_ns=1, realtime_ns=1))


def test_an_agent_that_answers_and_never_greets_is_no_bug_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTransport()
    monkeypatch.setattr(fake, "_welcome", unanswered)
    with pytest.raises(PlaceError, match="did not greet within") as refused:
        connect(fake, Limits(hello_s=0.05))
    assert "undo.jsonl" in refused.value.hint


@pytest.mark.parametrize(
    "said", [b"Welcome to Debian!\n", b'{"event":"later","id":1}\n', b'{"event":"done"}\n', b'{"event":"done","id":7}']
)
def test_an_agent_that_speaks_otherwise_is_not_listened_to(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    fake = FakeTransport()
    answers = iter([said])
    monkeypatch.setattr(fake, "read", lambda: next(answers, b""))
    with pytest.raises(StreamLostError):
        connect(fake)


def test_an_answer_of_another_kind_is_an_error() -> None:
    fake = FakeTransport()
    with connect(fake) as agent:
        fake._answer = lambda request: fake.say(wire.Done(id=request.id))  # type: ignore[method-assign]
        with pytest.raises(AgentError, match="expected Undone, found Done"):
            agent.undo()
        del fake._answer


class EndsAtOnce(FakeTransport):
    """Its agent is gone, and its end is read, before the write of the farewell's request returns."""

    ended = False

    def said(self) -> str:
        self.ended = True  # asked as the loss is noticed
        return super().said()

    def write(self, data: bytes) -> None:
        super().write(data)
        if isinstance(self.requests[-1], wire.Bye):
            self.cut()
            eventually(lambda: self.ended, "the reader took no notice")


def test_a_farewell_is_heard_of_an_agent_that_ends_before_the_request_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = EndsAtOnce()
    agent = connect(fake)
    monkeypatch.setattr(fake, "_answer", lambda request: fake.say(wire.Farewell(id=request.id, failed=["swappiness"])))
    with pytest.raises(PlaceError, match="the agent could not restore: swappiness"):
        agent.close()


def test_a_ping_that_cannot_be_written_takes_no_answer_away(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTransport()
    agent = connect(fake, Limits(ping_s=0.01))
    held: list[wire.Undo] = []
    pinged = threading.Event()

    def write(data: bytes) -> None:
        if b'"ping"' in data:
            pinged.set()
            raise BrokenPipeError("the agent has ended")
        held.append(wire.Undo.model_validate_json(data))
        assert pinged.wait(WAIT_S)
        fake.say(wire.Undone(id=held[0].id, steps=7, failed=[], disturbed=[]))

    monkeypatch.setattr(fake, "write", write)
    assert agent.undo().steps == 7
    monkeypatch.undo()
    agent.close()


def test_an_agent_that_is_gone_before_its_farewell_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTransport()
    agent = connect(fake)
    monkeypatch.setattr(fake, "_answer", lambda _request: fake.cut())
    with pytest.raises(StreamLostError, match="the agent ended the stream"):
        agent.close()
    silent = FakeTransport()
    agent = connect(silent, Limits(bye_s=0.01))
    monkeypatch.setattr(silent, "_answer", lambda _request: None)
    with pytest.raises(StreamLostError, match="did not confirm that the place is restored"):
        agent.close()


def test_settings_that_stay_behind_are_told_when_leaving(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeTransport()
    answer = fake._answer

    def stuck(request: wire.Bye) -> None:
        if isinstance(request, wire.Bye):
            fake.say(wire.Farewell(id=request.id, failed=["vm.swappiness: denied"]))
        else:
            answer(request)

    monkeypatch.setattr(fake, "_answer", stuck)
    with pytest.raises(PlaceError, match=r"the agent could not restore: vm\.swappiness: denied"), connect(fake):
        pass


def test_a_native_subcommand_gives_progress_then_a_result() -> None:
    loading = wire.LoadingProgress(done=1, total=2, rows=5, rows_per_s=2.5)
    loaded = wire.Loaded(content_sha256="c" * 64, rows={"item": 100_000})
    told = '{"progress":"loading","done":1.0,"total":2.0,"rows":5,"rows_per_s":2.5}'
    lines = ['{"progress":"of a later version"}', told, loaded.model_dump_json()]
    fake = FakeTransport(run=lambda _spawn: FakeProgram(stdout=lines))
    progress: list[object] = []
    with connect(fake) as agent:
        result = run_native(agent, FILE_LOAD, FILES, timeout_s=WAIT_S, on_progress=progress.append, processors=(0,))
    assert result == loaded
    assert progress == [loading]
    (spawned,) = [request for request in fake.requests if isinstance(request, wire.Spawn)]
    assert (spawned.argv, spawned.processors) == (["fairtrial-agent", "file-load"], [0])
    assert wire.FileLoad.model_validate_json(spawned.stdin or "") == FILES


@pytest.mark.parametrize("lines", [[], ['{"rows":{}}'], ['{"progress":"measuring","time_ns":1}']])
def test_a_native_subcommand_that_gives_another_result_is_of_another_version(lines: list[str]) -> None:
    with (
        connect(FakeTransport(run=lambda _spawn: FakeProgram(stdout=lines))) as agent,
        pytest.raises(PlaceError, match="`file-load` gave the wrong result") as failure,
    ):
        run_native(agent, FILE_LOAD, FILES, timeout_s=WAIT_S)
    assert "same version" in failure.value.hint


def test_parameters_whose_names_python_keeps_for_itself_arrive_under_their_own() -> None:
    restore = wire.Restore.model_validate({"from": "/a", "to": "/b"})
    assert json.loads(RESTORE.document(restore)) == {"from": "/a", "to": "/b", "user": None}


@pytest.mark.parametrize(
    ("ran", "message", "hint"),
    [
        (FakeProgram(code=1, stderr=["note", '{"error":"no disk","hint":"buy one"}']), "file-load: no disk", "buy one"),
        (FakeProgram(code=1, stderr=['{"error":"no disk","hint":null}']), "file-load: no disk", "message above"),
        (FakeProgram(code=101, stderr=["thread panicked"]), "exit code 101:\nthread panicked", "output above"),
        (
            FakeProgram(code=1, stdout=["{broken json, panicked"]),
            "exit code 1:\n{broken json, panicked",
            "output above",
        ),
    ],
)
def test_a_native_subcommand_that_fails_is_told_in_its_own_words(ran: FakeProgram, message: str, hint: str) -> None:
    with connect(FakeTransport(run=lambda _spawn: ran)) as agent:
        with pytest.raises(PlaceError, match=message) as failure:
            run_native(agent, FILE_LOAD, FILES, timeout_s=WAIT_S)
        assert hint in failure.value.hint


def test_a_native_subcommand_that_hangs_is_stopped() -> None:
    fake = FakeTransport(run=lambda _spawn: FakeProgram(code=None))
    with connect(fake) as agent, pytest.raises(PlaceError, match="ran longer than"):
        run_native(agent, FILE_LOAD, FILES, timeout_s=0.01)
    assert any(isinstance(request, wire.Signal) for request in fake.requests)
