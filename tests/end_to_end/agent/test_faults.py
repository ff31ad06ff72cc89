"""Whatever dies, however: no process stays, and every setting is as it was, at the latest at the next agent's start."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Desk, eventually
from support.machines.machine import alone_with

from fairtrial.errors import AgentError, PlaceError, StreamLostError
from fairtrial.places import open_place
from fairtrial.places.local import Local, LocalParameters
from fairtrial.protocol.generated import NullOutput, Step
from fairtrial.wire import Agent, Limits, PipeTransport, find_agent
from fairtrial.wire import agent as agent_module

WAIT_S = 60.0
SWAPPINESS = Path("/proc/sys/vm/swappiness")

# A child in a session of its own whose parent is gone, one that ignores SIGTERM, and one that writes without end.
STUBBORN = """
    setsid sh -c 'sleep 1000 & exec sleep 1000' &
    sh -c 'trap "" TERM; while :; do sleep 1; done' &
    exec yes
"""
STARTED = 5  # two sleeps, the deaf shell and its sleep, yes

# What an agent is told that listens to a controller which may be stopped for a while: only the other side is impatient.
PATIENT = {"FAIRTRIAL_LIMITS": "silence_s=600,grace_s=0.5"}


@pytest.fixture(autouse=True)
def _little_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ignores SIGTERM is killed soon; for a place that a dead session still holds there is time."""
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "grace_s=0.5,lock_s=60")


def step(path: Path, value: str) -> dict[str, object]:
    return {
        "name": path.name,
        "action": {"kind": "write", "path": str(path), "value": value},
        "check": {"read": {"kind": "file", "path": str(path)}, "expect": value},
        "inverse": {"kind": "restore"},
    }


class Changed:
    """Settings that a test changes: a file, and as root a harmless kernel setting."""

    def __init__(self, directory: Path) -> None:
        file = directory / "setting"
        file.write_text("before\n")
        self.before = {file: "before\n"}
        if os.geteuid() == 0:
            self.before[SWAPPINESS] = SWAPPINESS.read_text()

    @property
    def steps(self) -> list[dict[str, object]]:
        return [step(path, "37" if before.strip() != "37" else "38") for path, before in self.before.items()]

    def changed(self) -> bool:
        return all(path.read_text() != before for path, before in self.before.items())

    def restored(self) -> bool:
        return all(path.read_text() == before for path, before in self.before.items())


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Changed]:
    with alone_with("swappiness"):
        yield Changed(tmp_path)


def open_here(here: Desk, *, holder: str = "this test") -> Agent:
    return open_place("local", {"state_directory": str(here.state)}, holder=holder)


def busy(here: Desk, agent: Agent, settings: Changed) -> None:
    """Changes settings and starts processes that do not want to go; all of them are there."""
    already = len(here.processes())
    for wanted in settings.steps:
        agent.change(Step.model_validate(wanted))
    agent.spawn("stubborn", ["sh", "-c", STUBBORN], stdout=NullOutput())
    eventually(lambda: len(here.processes()) >= already + STARTED, "not all was started")


def test_the_controller_is_killed(here: Desk, settings: Changed) -> None:
    program = f"""
        import time
        from fairtrial.places import open_place
        from fairtrial.protocol.generated import Step
        agent = open_place("local", {{}}, holder="a controller that will be killed")
        for step in {settings.steps!r}:
            agent.change(Step.model_validate(step))
        agent.spawn("stubborn", ["sh", "-c", {STUBBORN!r}])
        print("ready", flush=True)
        time.sleep(1000)
    """
    argv = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(argv, env=here.environment, stdout=subprocess.PIPE, start_new_session=True) as controller:
        try:
            assert controller.stdout is not None
            assert controller.stdout.readline() == b"ready\n"
            assert settings.changed()
            eventually(lambda: len(here.processes()) >= STARTED + 2, "not all was started")  # it, its agent
        finally:
            controller.kill()
    eventually(lambda: not here.processes(), "processes stayed")
    assert settings.restored()


def test_the_next_session_waits_for_one_that_is_ending(here: Desk, settings: Changed) -> None:
    first = open_here(here)
    busy(here, first, settings)
    transport = first._stream._transport
    ending = threading.Thread(target=transport.close)  # as the kernel would for a controller that died
    ending.start()
    with open_here(here, holder="the next") as following:
        assert settings.restored()
        assert following.hello.leftovers.undone == 0, "the first session did it itself"
    ending.join()


def test_the_agent_is_killed(here: Desk, settings: Changed) -> None:
    agent = open_here(here)
    busy(here, agent, settings)
    process = agent.spawn("sleep", ["sleep", "1000"])
    lost: list[StreamLostError] = []

    def wait() -> None:
        try:
            process.wait()
        except StreamLostError as error:
            lost.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    os.kill(here.agent_pid(), signal.SIGKILL)
    waiting.join(WAIT_S)
    assert re.search("ended the stream|no longer accepts requests", str(lost[0])), "as a read or a ping finds it first"
    with pytest.raises(StreamLostError):
        agent.get("/proc/version")
    agent.close()
    assert settings.changed()

    with open_here(here) as following:
        assert following.hello.leftovers.undone == len(settings.before)
        assert following.hello.leftovers.killed >= 1, "the parent-death signal reaches children, not theirs"
        assert following.hello.leftovers.failed == []
        assert settings.restored()
        assert set(here.processes()) == {here.agent_pid()}
    with open_here(here) as third:
        assert third.hello.leftovers.undone == third.hello.leftovers.killed == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_agent_is_told_to_end(here: Desk, settings: Changed, number: signal.Signals) -> None:
    agent = open_here(here)
    busy(here, agent, settings)
    os.kill(here.agent_pid(), number)
    eventually(lambda: not here.processes(), "processes stayed")
    assert settings.restored()
    with pytest.raises(StreamLostError):
        agent.undo()
    agent.close()


def test_the_controller_falls_silent_with_its_pipe_full(here: Desk, settings: Changed) -> None:
    environment = {"FAIRTRIAL_STATE_DIRECTORY": str(here.state), "FAIRTRIAL_LIMITS": "silence_s=6,grace_s=0.5"}
    transport = PipeTransport([str(find_agent()), "serve"], environment=environment)
    output = {"kind": "stream"}
    requests = [
        {"request": "hello", "version": agent_module.VERSION, "holder": "a controller that freezes", "lock": True},
        *({"request": "change", "step": wanted} for wanted in settings.steps),
        {"request": "spawn", "name": "it", "argv": ["sh", "-c", STUBBORN], "stdout": output, "stderr": output},
    ]
    for number, request in enumerate(requests):
        transport.write(json.dumps({"id": number, **request}).encode() + b"\n")
    silent = threading.Event()

    def ping() -> None:
        while not silent.wait(0.5):
            transport.write(b'{"id":100,"request":"ping"}\n')

    pinging = threading.Thread(target=ping)  # until all is changed, however slow the disk
    pinging.start()
    told = b""
    while told.count(b'"event":"changed"') < len(settings.steps):  # the last that is read
        read = transport.read()
        assert read, told
        told += read
    silent.set()
    pinging.join()
    eventually(lambda: not here.processes(), "the agent did not notice")
    assert settings.restored()
    transport.close()


def test_the_agent_falls_silent(here: Desk, settings: Changed) -> None:
    environment = {"FAIRTRIAL_STATE_DIRECTORY": str(here.state), **PATIENT}
    transport = PipeTransport([str(find_agent()), "serve"], environment=environment)
    agent = Agent(transport, holder="this test", lock=True, limits=Limits(silence_s=1.5))
    busy(here, agent, settings)
    frozen = here.agent_pid()
    os.kill(frozen, signal.SIGSTOP)
    with pytest.raises(StreamLostError, match="silent"):
        agent.get("/proc/version")
    os.kill(frozen, signal.SIGCONT)
    agent.close()
    eventually(lambda: not here.processes(), "processes stayed")
    assert settings.restored()


def test_a_step_that_hangs_is_given_up_when_the_stream_ends(here: Desk, tmp_path: Path) -> None:
    agent = open_here(here)
    hanging = {"kind": "execute", "argv": ["sleep", "1000"]}
    inverse = {"kind": "execute", "argv": ["touch", str(tmp_path / "undone")]}
    wanted = Step.model_validate({"name": "hanging", "action": hanging, "inverse": inverse})
    errors: list[Exception] = []

    def change() -> None:
        try:
            agent.change(wanted)
        except (AgentError, StreamLostError) as error:
            errors.append(error)

    waiting = threading.Thread(target=change)
    waiting.start()
    eventually(lambda: any("sleep 1000" in command for command in here.processes().values()), "it did not start")
    agent.close()
    waiting.join(WAIT_S)
    assert len(errors) == 1
    assert (tmp_path / "undone").exists(), "what a step may have done is undone"


def test_a_way_back_that_takes_long_is_waited_for_and_answers_meanwhile(here: Desk, tmp_path: Path) -> None:
    """As `swapoff` does, which reads everything back."""
    agent = open_here(here)
    slow = {"kind": "execute", "argv": ["sh", "-c", f"sleep 4; touch {tmp_path}/undone"]}
    agent.change(
        Step.model_validate({"name": "slow", "action": {"kind": "execute", "argv": ["true"]}, "inverse": slow})
    )
    os.kill(here.agent_pid(), signal.SIGKILL)
    eventually(lambda: not here.processes(), "processes stayed")
    with pytest.raises(StreamLostError):
        agent.close()
    environment = {"FAIRTRIAL_STATE_DIRECTORY": str(here.state), **PATIENT}
    transport = PipeTransport([str(find_agent()), "serve"], environment=environment)
    with Agent(transport, holder="the next", lock=True, limits=Limits(silence_s=1.5)) as following:
        assert following.hello.leftovers.undone == 1
    assert (tmp_path / "undone").exists()


def test_an_agent_goes_on_undoing_when_its_controller_no_longer_waits(here: Desk, tmp_path: Path) -> None:
    """As after Ctrl-C, twice, while `swapoff` reads everything back."""
    transport = Local(LocalParameters(state_directory=str(here.state))).connect(Limits(end_s=0.05))
    agent = Agent(transport, holder="this test", lock=True, limits=Limits(bye_s=0.05))
    slow = ["sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.05; done; touch {tmp_path}/undone"]
    wanted = {"name": "slow", "action": {"kind": "execute", "argv": ["true"]}}
    agent.change(Step.model_validate({**wanted, "inverse": {"kind": "execute", "argv": slow}}))
    with pytest.raises(StreamLostError, match="did not confirm that the place is restored"):
        agent.close()
    (tmp_path / "go").touch()
    eventually(lambda: not here.processes(), "the agent stayed")
    assert (tmp_path / "undone").exists()
    assert (here.state / "undo.jsonl").read_bytes() == b""
    transport._program.wait()


def test_a_setting_that_cannot_be_restored_is_told_and_tried_again(here: Desk, tmp_path: Path) -> None:
    directory = tmp_path / "gone"
    directory.mkdir()
    (directory / "setting").write_text("before")
    agent = open_here(here)
    agent.change(Step.model_validate(step(directory / "setting", "after")))
    (directory / "setting").rename(tmp_path / "setting")
    with pytest.raises(PlaceError, match=r"the agent could not restore: setting: .*does not exist"):
        agent.close()
    (tmp_path / "setting").rename(directory / "setting")
    with open_here(here) as following:
        assert following.hello.leftovers.undone == 1
    assert (directory / "setting").read_text() == "before"


def test_a_busy_place_is_refused_with_the_name_of_the_other(here: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "lock_s=1")
    with open_here(here, holder="run A by ann on bench1"):
        with pytest.raises(AgentError, match="run A by ann on bench1") as refused:
            open_here(here, holder="run B")
        assert refused.value.code == "busy"
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "lock_s=60")
    with open_here(here, holder="run B"):
        pass


def test_another_version_is_refused_by_both_names(here: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = agent_module.VERSION
    monkeypatch.setattr(agent_module, "VERSION", "0.9")
    with pytest.raises(AgentError, match=rf"speaks protocol version 0\.9, this agent speaks {ours}") as refused:
        open_here(here)
    assert refused.value.code == "version"
    assert "same version" in refused.value.hint
    eventually(lambda: not here.processes(), "the refusing agent stayed")


@pytest.mark.parametrize(
    "line", [b"SSH-2.0-OpenSSH_9.2\n", b'{"request":"later","id":1}\n', b'{"id":1,"chunk":70000}\n']
)
def test_what_is_not_the_protocol_ends_the_stream_with_a_word(here: Desk, line: bytes) -> None:
    environment = {"FAIRTRIAL_STATE_DIRECTORY": str(here.state)}
    transport = PipeTransport([str(find_agent()), "serve"], environment=environment)
    transport.write(line)
    answer = json.loads(transport.read())
    assert (answer["event"], answer["code"], answer["id"]) == ("failed", "invalid", None)
    assert transport.read() == b""
    transport.close()


def test_nothing_is_done_before_hello(here: Desk, tmp_path: Path) -> None:
    environment = {"FAIRTRIAL_STATE_DIRECTORY": str(here.state)}
    transport = PipeTransport([str(find_agent()), "serve"], environment=environment)
    request = {"request": "put", "id": 1, "path": str(tmp_path / "file"), "bytes": 0, "mode": 0o644}
    transport.write(json.dumps(request).encode() + b"\n")
    assert json.loads(transport.read())["code"] == "refused"
    assert transport.read() == b""
    transport.close()
    assert not (tmp_path / "file").exists()


def test_orphans_leave_no_zombies(here: Desk) -> None:
    with open_here(here) as agent:
        agent.spawn("it", ["sh", "-c", "for i in 1 2 3 4 5; do (sleep 0.05 &); done"]).wait(WAIT_S)
        own = here.agent_pid()

        def children() -> list[str]:
            found: list[str] = []
            for task in Path(f"/proc/{own}/task").iterdir():
                with contextlib.suppress(OSError):  # a thread that has ended meanwhile has none
                    found += (task / "children").read_text().split()
            return found

        eventually(lambda: not children(), "orphans were not collected")
