"""A place over SSH, on a real sshd on loopback with keys and known hosts of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.command_line import Desk, eventually

from fairtrial.errors import AgentError, PlaceError, StreamLostError
from fairtrial.places import open_place
from fairtrial.wire import Agent
from fairtrial.wire.generated import Step

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
PRIVILEGE_SEPARATION = Path("/run/sshd")  # where sshd insists on it when it runs as root
WAIT_S = 60.0

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(SSHD is None, reason="no sshd: install openssh-server"),
]


@dataclass
class Host:
    """A host `far` in an ssh configuration of its own."""

    directory: Path
    port: int
    daemon: subprocess.Popen[bytes]

    @property
    def config(self) -> Path:
        return self.directory / "config"

    def open(self, here: Desk, *, holder: str = "this test", **parameters: object) -> Agent:
        given = {"host": "far", "config": str(self.config), "state_directory": str(here.state), **parameters}
        return open_place("ssh", given, holder=holder)

    def sessions(self) -> list[int]:
        """sshd's processes for connections."""
        found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.split(
            "\n"
        )
        parents = {int(line.split()[0]): int(line.split()[1]) for line in found if line.strip()}
        return [pid for pid, parent in parents.items() if parent == self.daemon.pid]


def make_key(path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path.with_suffix(".pub").read_text().strip()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def far(here: Desk) -> Iterator[Host]:
    directory = here.directory / "ssh"
    directory.mkdir(mode=0o700)
    host_key, user_key, port = make_key(directory / "host"), make_key(directory / "user"), free_port()
    (directory / "authorized_keys").write_text(user_key + "\n")
    (directory / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key}\n")
    (directory / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {directory}/host\nPidFile none\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {directory}/authorized_keys\nPasswordAuthentication no\nPermitRootLogin yes\n"
        f"KbdInteractiveAuthentication no\nSetEnv XDG_CACHE_HOME={directory}/cache\n"
    )
    (directory / "config").write_text(
        f"Host far\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n  IdentityFile {directory}/user\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {directory}/known_hosts\n  GlobalKnownHostsFile none\n"
        "  StrictHostKeyChecking yes\n"
    )
    if os.geteuid() == 0:
        PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    assert SSHD is not None
    argv = [SSHD, "-D", "-f", str(directory / "sshd_config"), "-E", str(directory / "log")]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as daemon:
        try:
            eventually(lambda: answers(port) or daemon.poll() is not None, "sshd does not answer")
            assert daemon.poll() is None, (directory / "log").read_text()
            yield Host(directory, port, daemon)
        finally:
            daemon.terminate()


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
    for session in far.sessions():
        os.kill(session, signal.SIGKILL)
    waiting.join(WAIT_S)
    assert "ended the stream" in str(lost[0])
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
