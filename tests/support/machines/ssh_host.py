"""A host over SSH for tests: a real sshd on loopback, with keys, configuration and known hosts of its own."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairtrial.places import open_place, ssh
from fairtrial.wire import Agent
from support.command_line import Desk, eventually
from support.machines.machine import number_of_process

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
PRIVILEGE_SEPARATION = Path("/run/sshd")  # where sshd insists on it when it runs as root


@dataclass
class Host:
    """A host in an ssh configuration of its own."""

    name: str
    directory: Path
    address: str
    port: int
    daemon: subprocess.Popen[bytes]

    @property
    def config(self) -> Path:
        return self.directory / "config"

    def open(self, here: Desk, *, holder: str = "this test", **parameters: object) -> Agent:
        given = {"host": self.name, "config": str(self.config), "state_directory": str(here.state), **parameters}
        return open_place("ssh", given, holder=holder)

    def sessions(self) -> list[int]:
        """sshd's processes for connections."""
        found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout.split(
            "\n"
        )
        parents = {int(line.split()[0]): int(line.split()[1]) for line in found if line.strip()}
        return [pid for pid, parent in parents.items() if parent == self.daemon.pid]

    def cut(self) -> None:
        """Ends every connection, as a wire does."""
        for session in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(session, signal.SIGKILL)


def loads(here: Desk) -> int:
    """How many load generators of a test's are under way, at whichever hosts: all are this machine's processes."""
    found = 0
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            found += b"oltp-drive" in words and str(here.directory).encode() in (entry / "environ").read_bytes()
        except OSError:
            continue
    return found


def make_key(path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path.with_suffix(".pub").read_text().strip()


def free_port() -> int:
    """One that no connection gets by itself: below Linux's ephemeral ports, others for each process of tests."""
    first = 22_000 + number_of_process("ports", below=100) * 100
    for port in range(first, first + 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"no port is free from {first} on")


def answers(address: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((address, port)) == 0


@contextmanager
def host(here: Desk, *, name: str = "far", address: str = "127.0.0.1", within: Sequence[str] = ()) -> Iterator[Host]:
    """Starts an sshd for one test: on loopback, or `within` a namespace (a command's first words) at its address."""
    directory = here.directory / f"ssh-{name}"
    directory.mkdir(mode=0o700)
    host_key, user_key, port = make_key(directory / "host"), make_key(directory / "user"), free_port()
    (directory / "authorized_keys").write_text(user_key + "\n")
    (directory / "known_hosts").write_text(f"[{address}]:{port} {host_key}\n")
    (directory / "sshd_config").write_text(
        f"Port {port}\nListenAddress {address}\nHostKey {directory}/host\nPidFile none\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {directory}/authorized_keys\nPasswordAuthentication no\nPermitRootLogin yes\n"
        f"KbdInteractiveAuthentication no\nSetEnv XDG_CACHE_HOME={directory}/cache "
        f"FAIRTRIAL_MACHINE_DIRECTORY={directory}/machine\n"
    )
    (directory / "config").write_text(
        f"Host {name}\n  HostName {address}\n  Port {port}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {directory}/user\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {directory}/known_hosts\n  GlobalKnownHostsFile none\n"
        "  StrictHostKeyChecking yes\n"
    )
    ssh.allow_configuration(directory / "config")
    if os.geteuid() == 0:
        PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    assert SSHD is not None
    argv = [*within, SSHD, "-D", "-f", str(directory / "sshd_config"), "-E", str(directory / "log")]
    # In a session of its own: who stops the tests for a while stops no host.
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True) as daemon:
        try:
            eventually(lambda: answers(address, port) or daemon.poll() is not None, "sshd does not answer")
            assert daemon.poll() is None, (directory / "log").read_text()
            yield Host(name, directory, address, port, daemon)
        finally:
            daemon.terminate()
