"""A private MariaDB for the benches: its own directory and socket, everything in the buffer pool."""

from __future__ import annotations

import getpass
import shutil
import socket as sockets
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

START_LIMIT_S = 60.0
DATABASE = "sbtest"


def found(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")


def free_port() -> int:
    with sockets.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def private_mariadb(port: int | None = None) -> Iterator[Path]:
    """Gives the socket of a server with an empty database; ends the server and removes its files afterwards.

    With `port` it listens on the loopback interface too.
    """
    server, install = found("mariadbd"), found("mariadb-install-db")
    if not server or not install:
        message = "mariadbd and mariadb-install-db are needed (apt install mariadb-server)"
        raise SystemExit(message)
    with TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        # In a shared directory every start removes the temporary tables of the other servers of its user.
        identity = [f"--datadir={directory / 'data'}", f"--tmpdir={directory}", f"--user={getpass.getuser()}"]
        first = [install, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", *identity]
        subprocess.run(first, check=True, capture_output=True)
        socket = directory / "socket"
        network = ["--bind-address=127.0.0.1", f"--port={port}"] if port else ["--skip-networking"]
        process = subprocess.Popen(
            [
                server,
                "--no-defaults",
                *identity,
                f"--socket={socket}",
                *network,
                "--innodb-buffer-pool-size=2G",
                "--innodb-flush-log-at-trx-commit=0",
                "--max-connections=2000",
                f"--log-error={directory / 'log'}",
            ]
        )
        try:
            _wait(socket, process)
            sql(socket, f"CREATE DATABASE {DATABASE}")
            yield socket
        finally:
            process.terminate()
            process.wait(START_LIMIT_S)


def sql(socket: Path, statement: str) -> str:
    client = ["mariadb", "--no-defaults", f"--socket={socket}", "--user=root", "--batch", f"--execute={statement}"]
    return subprocess.run(client, check=True, capture_output=True, text=True).stdout


def questions(socket: Path) -> int:
    """Statements that clients have sent so far, prepared ones' executions included."""
    return int(sql(socket, "SHOW GLOBAL STATUS LIKE 'Questions'").split()[-1])


def _wait(socket: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_LIMIT_S
    while time.monotonic() < until and process.poll() is None:
        try:
            sql(socket, "SELECT 1")
        except subprocess.CalledProcessError:
            time.sleep(0.2)
        else:
            return
    message = f"the server does not answer; its log: {(socket.parent / 'log').read_text()[-2000:]}"
    raise SystemExit(message)
