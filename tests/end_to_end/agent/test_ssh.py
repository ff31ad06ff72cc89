"""A place over SSH, on a real sshd on loopback with keys and known hosts of its own."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Desk, eventually
from support.machines.ssh_host import SSHD, Host, free_port, host, make_key

from fairtrial.errors import AgentError, PlaceError, StreamLostError
from fairtrial.protocol.generated import Step

WAIT_S = 60.0

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(SSHD is None, reason="no sshd: install openssh-server"),
]


@pytest.fixture
def far(here: Desk) -> Iterator[Host]:
    with host(here) as found:
        yield found


def test_an_agent_is_brought_there_once_and_works(far: Host, here: Desk) -> None:
    with far.open(here) as agent:
        (brought,) = (far.directory / "cache/fairtrial/agents").glob("*/fairtrial-agent")
        first = brought.stat()
        assert agent.hello.agent_sha256 == brought.parent.name
        assert agent.hello.state_directory == str(here.state)
        lines = [line for _, line in agent.spawn("it", ["sh", "-c", "echo over there"]).lines()]
        assert lines == ["over there"]
        content = os.urandom(1_000_000)
        agent.put(str(here.state / "file"), content)
        assert agent.get(str(here.state / "file")) == content
    with far.open(here):
        assert brought.stat().st_mtime_ns == first.st_mtime_ns


def test_a_damaged_agent_there_is_brought_again(far: Host, here: Desk) -> None:
    with far.open(here) as agent:
        digest = agent.hello.agent_sha256
    (brought,) = (far.directory / "cache/fairtrial/agents").glob("*/fairtrial-agent")
    brought.write_bytes(b"#!/bin/sh\necho not an agent\n")
    with far.open(here) as agent:
        assert agent.hello.agent_sha256 == digest


def test_a_busy_host_is_refused_with_the_name_of_the_other(far: Host, here: Desk) -> None:
    with far.open(here, holder="run A by ann on bench1"), pytest.raises(AgentError, match="run A by ann on bench1"):
        far.open(here, holder="run B")


def test_a_connection_cut_in_the_middle_is_told_at_once_and_undone_there(far: Host, here: Desk, tmp_path: Path) -> None:
    setting = tmp_path / "setting"
    setting.write_text("before")
    step = {
        "name": "setting",
        "action": {"kind": "write", "path": str(setting), "value": "after"},
        "inverse": {"kind": "restore"},
    }
    agent = far.open(here)
    agent.change(Step.model_validate(step))
    process = agent.spawn("it", ["sh", "-c", "setsid sleep 1000 & exec sleep 1000"])
    lost: list[StreamLostError] = []

    def wait() -> None:
        try:
            process.wait()
        except StreamLostError as error:
            lost.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    far.cut()
    waiting.join(WAIT_S)
    assert re.search("ended the stream|no longer accepts requests", str(lost[0])), "as a read or a ping finds it first"
    agent.close()
    eventually(lambda: not here.processes(), "processes stayed there")
    assert setting.read_text() == "before"
    with far.open(here) as again:
        assert again.hello.leftovers.undone == 0, "the far agent did it itself"


def test_a_changed_host_key_is_refused_in_sshs_own_words(far: Host, here: Desk) -> None:
    other = make_key(far.directory / "other")
    (far.directory / "known_hosts").write_text(f"[127.0.0.1]:{far.port} {other}\n")
    with pytest.raises(PlaceError, match="REMOTE HOST IDENTIFICATION HAS CHANGED") as refused:
        far.open(here)
    assert "ssh-keygen -R" in refused.value.hint


def test_an_unknown_host_is_refused(far: Host, here: Desk) -> None:
    (far.directory / "known_hosts").write_text("")
    with pytest.raises(PlaceError, match="Host key verification failed") as refused:
        far.open(here)
    assert "by hand" in refused.value.hint


def test_a_key_that_is_not_accepted_is_told(far: Host, here: Desk) -> None:
    (far.directory / "authorized_keys").write_text("")
    with pytest.raises(PlaceError, match="Permission denied") as refused:
        far.open(here)
    assert "without asking" in refused.value.hint


def test_a_host_that_does_not_listen_is_told(far: Host, here: Desk) -> None:
    with pytest.raises(PlaceError, match="Connection refused") as refused:
        far.open(here, port=free_port())
    assert "port" in refused.value.hint


def test_a_host_that_has_no_room_or_rights_is_told(far: Host, here: Desk) -> None:
    (far.directory / "cache").write_text("in the way of a directory")
    with pytest.raises(PlaceError, match="cannot take the agent"):
        far.open(here)
