"""A database server that is there already: a private one that tests start, and fairtrial knows nothing of."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from support.command_line import PATIENCE_S
from support.machines.ssh_host import free_port

SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
PASSWORD = f"s3cret;word{os.getpid()}"  # of these tests alone, which look for it in all that runs beside them
VARIABLE = "FT_PASSWORD_THERE"
USER = "boss"


class ServerThere(ABC):
    """One server, with its data and socket in a directory of its own."""

    kind: ClassVar[str]
    own_user: ClassVar[str]
    option: ClassVar[tuple[str, str, str]]
    fixed: ClassVar[tuple[str, str]]
    listing: ClassVar[str]
    reading: ClassVar[str]
    secret: ClassVar[str]

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.chmod(0o755)
        (directory / "socket").mkdir()
        self._own(directory / "socket")
        self.create()
        self.start()

    @abstractmethod
    def create(self) -> None: ...

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def client(self, statement: str, database: str = "") -> list[str]:
        """A command line that asks it, with the password in the environment variable `secret`."""

    def ask(self, statement: str, database: str = "") -> str:
        return self._run(self.client(statement, database), environment={self.secret: PASSWORD})

    @abstractmethod
    def at(self) -> str: ...

    @abstractmethod
    def snapshot(self) -> str: ...

    def start(self) -> None:
        words = self.as_user(self.command())
        with (self.directory / "log").open("ab") as log:
            # In a session of its own: who stops the tests for a while stops no server.
            self.process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.ask("SELECT 1")
            except subprocess.CalledProcessError:
                assert time.monotonic() < deadline, (self.directory / "log").read_text()
                time.sleep(0.1)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(how)
        self.process.wait(PATIENCE_S)

    @abstractmethod
    def set_otherwise(self) -> None:
        """Sets the option as nobody else does."""

    @abstractmethod
    def reset(self) -> None:
        """Sets it as it was."""

    @contextmanager
    def supervised(self) -> Iterator[str]:
        """A command line that has this server restarted, as a manager of services would."""
        wish, over = self.directory / "restart", threading.Event()

        def supervise() -> None:
            while not over.wait(0.05):
                if wish.exists():
                    self.stop()
                    self.start()
                    wish.unlink()

        manager = threading.Thread(target=supervise)
        manager.start()
        script = self.directory / "restart.sh"
        script.write_text(f"touch {wish}; while [ -e {wish} ]; do sleep 0.05; done\n")
        try:
            yield f"sh {script}"
        finally:
            over.set()
            manager.join()

    def quoted(self, name: str) -> str:
        return f"`{name}`"

    def databases(self) -> list[str]:
        return sorted(self.ask(self.listing).split())

    def value(self) -> str:
        """The option that studies set, as it is in effect."""
        return self.ask(self.reading).strip()

    def as_user(self, argv: Sequence[str]) -> list[str]:
        if os.geteuid() != 0:
            return list(argv)
        return ["setpriv", f"--reuid={self.own_user}", f"--regid={self.own_user}", "--clear-groups", *argv]

    def _own(self, path: Path) -> None:
        if os.geteuid() == 0:
            shutil.chown(path, self.own_user, self.own_user)

    def _run(self, argv: Sequence[str], *, environment: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            argv,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )
        return done.stdout


class PostgresThere(ServerThere):
    kind, own_user = "postgres", "postgres"
    option, fixed = ("work_mem", "8MB", "8192"), ("shared_buffers", "64MB")
    reading = "SELECT setting FROM pg_settings WHERE name = 'work_mem'"
    listing, secret = "SELECT datname FROM pg_database", "PGPASSWORD"

    def __init__(self, directory: Path) -> None:
        self.port = free_port()  # also while it restarts
        super().__init__(directory)

    def quoted(self, name: str) -> str:
        return f'"{name}"'

    @property
    def certificate(self) -> Path:
        """Of `localhost` alone, signed by itself."""
        return self.directory / "data/server.crt"

    @property
    def base(self) -> Path:
        return max(Path("/usr/lib/postgresql").glob("*/bin"))

    def create(self) -> None:
        words = self.directory / "password"
        words.write_text(PASSWORD)
        words.chmod(0o644)
        (self.directory / "data").mkdir(mode=0o700)
        self._own(self.directory / "data")
        argv = [f"{self.base}/initdb", "-D", f"{self.directory}/data", "-U", USER, f"--pwfile={words}", "-N"]
        self._run(self.as_user([*argv, "--auth=scram-sha-256", "--no-instructions"]))
        words.unlink()
        key = ["-newkey", "rsa:2048", "-nodes", "-keyout", f"{self.directory}/data/server.key"]
        name = [
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ]
        out = ["-days", "2", "-out", str(self.certificate)]
        self._run(self.as_user(["openssl", "req", "-x509", *key, *name, *out]))
        with (self.directory / "data/pg_hba.conf").open("a") as rules:
            rules.write("host all all all scram-sha-256\n")

    def command(self) -> list[str]:
        own = {
            "unix_socket_directories": f"{self.directory}/socket",
            "port": str(self.port),
            "listen_addresses": "*",
            "ssl": "on",
            "fsync": "off",
            "shared_buffers": "32MB",
        }
        return [f"{self.base}/postgres", "-D", f"{self.directory}/data", *self.given(own)]

    @staticmethod
    def given(options: dict[str, str]) -> list[str]:
        return [word for name, value in options.items() for word in ("-c", f"{name}={value}")]

    def client(self, statement: str, database: str = "") -> list[str]:
        argv = [f"{self.base}/psql", "-XAtq", "-h", f"{self.directory}/socket", "-p", str(self.port), "-U", USER]
        return [*argv, "-c", statement, database or "postgres"]

    def set_otherwise(self) -> None:
        self.ask("ALTER SYSTEM SET work_mem = '16MB'")
        self._reload("16384")

    def reset(self) -> None:
        self.ask("ALTER SYSTEM RESET work_mem")
        self._reload("4096")

    def _reload(self, value: str) -> None:
        self.ask("SELECT pg_reload_conf()")
        while self.value() != value:
            time.sleep(0.05)

    def at(self) -> str:
        return f"socket_directory: {self.directory}/socket, port: {self.port}, user: {USER}"

    def over_network(self, host: str) -> str:
        return f"host: {host}, port: {self.port}, user: {USER}"

    def snapshot(self) -> str:
        automatic = (self.directory / "data/postgresql.auto.conf").read_text()
        return automatic + self.ask(
            "SELECT name, setting FROM pg_settings WHERE name NOT IN ('application_name') ORDER BY name"
        )


class MariadbThere(ServerThere):
    kind, own_user = "mariadb", "mysql"
    option, fixed = ("innodb_flush_log_at_trx_commit", "2", "2"), ("performance_schema", "ON")
    reading = "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit"
    listing, secret = "SHOW DATABASES", "MYSQL_PWD"

    def create(self) -> None:
        self._make_directories()
        argv = ["mariadb-install-db", "--no-defaults", f"--datadir={self.directory}/data", "--skip-test-db"]
        user = ["--user=mysql"] if os.geteuid() == 0 else []
        self._run([*argv, *user, self._apart(), "--auth-root-authentication-method=normal"])
        (self.directory / "init.sql").write_text(
            f"GRANT ALL ON *.* TO {USER}@localhost IDENTIFIED BY '{PASSWORD}' WITH GRANT OPTION;\n"
        )

    def _make_directories(self) -> None:
        for name in ("data", "tmp"):
            (self.directory / name).mkdir(mode=0o700)
            self._own(self.directory / name)

    def _apart(self) -> str:
        """In a shared directory every start removes the temporary tables of the other servers of its user."""
        return f"--tmpdir={self.directory}/tmp"

    def command(self) -> list[str]:
        binary = shutil.which("mariadbd", path=SBIN) or "mariadbd"
        directory = self.directory
        return [
            binary,
            "--no-defaults",
            f"--datadir={directory}/data",
            self._apart(),
            f"--socket={directory}/socket/my.sock",
            "--skip-networking",
            f"--init-file={directory}/init.sql",
            "--innodb-buffer-pool-size=32M",
        ]

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        super().stop(how)

    def client(self, statement: str, database: str = "") -> list[str]:
        argv = ["mariadb", "--no-defaults", f"--socket={self.directory}/socket/my.sock", "-u", USER, "-BN"]
        return [*argv, "-e", statement, *([database] if database else [])]

    def set_otherwise(self) -> None:
        self.ask("SET GLOBAL innodb_flush_log_at_trx_commit = 0")

    def reset(self) -> None:
        self.ask("SET GLOBAL innodb_flush_log_at_trx_commit = 1")

    def at(self) -> str:
        return f"socket: {self.directory}/socket/my.sock, user: {USER}"

    def snapshot(self) -> str:
        moving = "'TIMESTAMP','RAND_SEED1','RAND_SEED2','PSEUDO_THREAD_ID','GTID_BINLOG_POS','LAST_INSERT_ID'"
        return self.ask(
            "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM information_schema.GLOBAL_VARIABLES "
            f"WHERE VARIABLE_NAME NOT IN ({moving}) ORDER BY 1"
        )


class MysqlThere(MariadbThere):
    """MySQL 5.5.

    Attributes:
        base: of its installation.
    """

    kind = "mysql"
    fixed = ("innodb_flush_method", "O_DIRECT")
    base: ClassVar[Path]

    def create(self) -> None:
        self._make_directories()
        scripts = [(self.base / "share" / f"mysql_system_tables{part}.sql").read_text() for part in ("", "_data")]
        text = "\n".join(["CREATE DATABASE mysql;", "USE mysql;", *scripts, "DELETE FROM user WHERE User = '';", ""])
        argv = [*self._program(), "--bootstrap", self._apart(), "--max-allowed-packet=16M"]
        subprocess.run(self.as_user(argv), input=text, text=True, check=True, capture_output=True)
        (self.directory / "init.sql").write_text(
            f"GRANT ALL ON *.* TO {USER}@localhost IDENTIFIED BY '{PASSWORD}' WITH GRANT OPTION;\n"
        )

    def command(self) -> list[str]:
        return [*self._program(), f"--pid-file={self.directory}/socket/own.pid", *super().command()[2:]]

    def _program(self) -> list[str]:
        argv = [f"{self.base}/bin/mysqld", "--no-defaults", f"--basedir={self.base}"]
        return [*argv, f"--datadir={self.directory}/data"]


KINDS: dict[str, type[ServerThere]] = {server.kind: server for server in (PostgresThere, MariadbThere)}


def require_program(kind: str) -> None:
    """Skips what needs such a server where this machine has none."""
    program = {"postgres": "/usr/lib/postgresql", "mariadb": shutil.which("mariadbd", path=SBIN)}[kind]
    if program is None or not Path(program).exists():
        pytest.skip(f"needs {kind}")


@contextmanager
def there(kind: str | type[ServerThere]) -> Iterator[ServerThere]:
    """A server of a kind, stopped in the end. Not below pytest's own directory, which every run closes to others."""
    directory = Path(tempfile.mkdtemp(prefix="ft-there-"))
    server = (KINDS[kind] if isinstance(kind, str) else kind)(directory)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()
        shutil.rmtree(directory)
