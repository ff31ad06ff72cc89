"""A PostgreSQL server of a benchmark's own, in a temporary directory, on a socket, gone with it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

DATABASE = "bench"
USER = "bench"
START_LIMIT_S = 60.0
# The server refuses root.
ACCOUNT = "nobody"


def found(program: str) -> str | None:
    """On PATH, or in the newest of Debian's directories."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(program) or shutil.which(program, path=os.pathsep.join(map(str, debian)))


def as_account(command: list[str]) -> list[str]:
    if os.geteuid() != 0:
        return command
    account = pwd.getpwnam(ACCOUNT)
    return ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups", *command]


@contextmanager
def private_postgres() -> Iterator[Path]:
    """Gives the directory of the socket of a server with an empty database; ends the server and removes its files."""
    server, install = found("postgres"), found("initdb")
    if not server or not install:
        message = "postgres and initdb are needed (apt install postgresql)"
        raise SystemExit(message)
    with TemporaryDirectory(prefix="bench-") as name:
        directory = Path(name)
        if os.geteuid() == 0:
            shutil.chown(directory, ACCOUNT)
        first = [install, "-D", str(directory / "data"), f"--username={USER}", "--auth=trust", "--locale=C"]
        first += ["--encoding=UTF8", "--no-sync"]  # it syncs a thousand files, which the server itself does not
        subprocess.run(as_account(first), check=True, capture_output=True)
        options = {"listen_addresses": "", "fsync": "off", "shared_buffers": "1GB", "max_wal_size": "8GB"}
        command = [server, "-D", str(directory / "data"), "-k", str(directory)]
        for option, value in options.items():
            command += ["-c", f"{option}={value}"]
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(as_account(command), stdout=log, stderr=log)
        try:
            _wait(directory, process)
            sql(directory, f"CREATE DATABASE {DATABASE}", database="postgres")
            yield directory
        finally:
            process.send_signal(signal.SIGINT)  # a fast shutdown: clients are not waited for
            process.wait(START_LIMIT_S)


def sql(directory: Path, statement: str, *, database: str = DATABASE) -> str:
    client = ["psql", "--no-psqlrc", f"--host={directory}", f"--username={USER}", f"--dbname={database}"]
    asked = [*client, "--tuples-only", "--no-align", f"--command={statement}"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout


def _wait(directory: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_LIMIT_S
    while time.monotonic() < until and process.poll() is None:
        try:
            sql(directory, "SELECT 1", database="postgres")
        except subprocess.CalledProcessError:
            time.sleep(0.2)
        else:
            return
    message = f"the server does not answer; its log: {(directory / 'log').read_text()[-2000:]}"
    raise SystemExit(message)
