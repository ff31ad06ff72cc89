"""What MariaDB and MySQL have in common: a private instance per trial, on a Unix socket, with every option read back.

The server sees one generated configuration file and nothing else, so "an option passed twice" cannot happen unseen.
"""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from fairtrial.errors import PlaceError
from fairtrial.protocol.endpoints import Endpoint, Server, server
from fairtrial.protocol.generated import MysqlEndpoint, Rows, Sql
from fairtrial.protocol.subcommands import SQL
from fairtrial.study.tree.quantities import Seconds
from fairtrial.systems import mysql_options
from fairtrial.systems.existing import ExistingMysqld, MysqldAt
from fairtrial.systems.installation import Installation, PrivateServer, ServerSource, identified
from fairtrial.systems.instance import Identity, Instance, Launch
from fairtrial.systems.server import (
    PASSWORD_BYTES,
    Option,
    cache_mib,
    coming_up,
    free_port,
    require_in_effect,
    spawned,
    wait_until_ready,
)
from fairtrial.wire.facts import Facts
from fairtrial.wire.open_place import OpenPlace

DATABASE = "fairtrial"
SOCKET = "mysqld.sock"
INIT_FILE = "init.sql"
REMOTE_USER = "fairtrial"
# The scripts of a new data directory make root, without a password, for the loopback addresses too. A server executes
# its `init_file` before it listens, so nobody can log in as that root, not even for a moment.
SOCKET_ROOT_ONLY = "DELETE FROM mysql.user WHERE User = 'root' AND Host <> 'localhost';\nFLUSH PRIVILEGES;\n"
SLOW_SHUTDOWN_S = 3600.0  # a slow shutdown purges everything (mariadb.com/kb: innodb_fast_shutdown)
CACHE = "innodb_buffer_pool_size"
LOADING_CACHE_MIB = 1024
ENGINE = "default_storage_engine"
ENCRYPTION = "default_table_encryption"
NEEDING_PLUGINS = (ENGINE, ENCRYPTION, "innodb_compression_algorithm")
# Act on tables when they are made or loaded; they stand in the configuration of loading and of trials.
LOADED = (
    *NEEDING_PLUGINS,
    "innodb_checksum_algorithm",
    "innodb_compression_level",
    "innodb_file_format",
    "innodb_fill_factor",
    "innodb_stats_persistent_sample_pages",
)
# Without which these may be missing while tables are loaded.
PLUGINS = ("plugin_dir", "plugin_maturity", *mysql_options.PLUGIN_LISTS)
KEYS = "keyring_"
LIBRARIES = (
    "SELECT GROUP_CONCAT(DISTINCT PLUGIN_LIBRARY ORDER BY PLUGIN_LIBRARY SEPARATOR ';') "
    "FROM information_schema.PLUGINS WHERE PLUGIN_STATUS = 'ACTIVE'"
)
LOADING_OPTIONS = {
    "innodb_doublewrite": 0,
    "innodb_flush_log_at_trx_commit": 0,
    "innodb_autoinc_lock_mode": 2,
}
# Preloading a buffer pool would carry one trial's state into the next unless the study asks for it. `loose_` lets
# servers that have no such option (MySQL 5.5) pass over it.
IMPLIED = {
    "loose_innodb_buffer_pool_load_at_startup": 0,
    "loose_innodb_buffer_pool_dump_at_shutdown": 0,
}


class MysqldParameters(ServerSource):
    """What both kinds take."""

    at: MysqldAt | None = Field(
        None, description="A server that is there already, which is neither started nor stopped."
    )
    options: dict[Annotated[str, Field(pattern=r"^[a-zA-Z][a-zA-Z0-9_-]*$")], Option] = Field(
        default_factory=dict,
        description="Server options as in the configuration file: `innodb_doublewrite: 0`, for example.",
    )
    slow_shutdown: Seconds | None = Field(
        None,
        gt=0,
        le=86_400,
        description="Time limit of a slow shutdown after the load (`innodb_fast_shutdown = 0`: the server purges "
        "and flushes everything), which is measured: the work that the load left undone.",
    )

    @model_validator(mode="after")
    def _no_shutdown(self) -> Self:
        if self.at is not None and self.slow_shutdown is not None:
            raise ValueError("slow_shutdown: the server that `at` names is not stopped: remove one of the two")
        return self

    @field_validator("options")
    @classmethod
    def _one_spelling(cls, options: dict[str, Option]) -> dict[str, Option]:
        return mysql_options.canonical(options)


class Mysqld(PrivateServer[MysqldParameters]):
    """One of the two kinds.

    Attributes:
        fixed: options that are fixed in the data when they are created.
        implied: options besides those that both kinds get, unless the study names them.
    """

    encrypts = True
    empty_bytes = 128 << 20  # the redo log's default of 96 MiB, and tables of the server's own
    fixed: ClassVar[Sequence[str]]
    implied: ClassVar[Mapping[str, Option]] = MappingProxyType({})

    @abstractmethod
    def is_own(self, version: str) -> bool:
        """Whether what the server says as its version is of this kind."""

    @abstractmethod
    def fill(self, place: OpenPlace, installation: Installation, program: str, *, launch: Launch) -> None:
        """Fills an empty data directory; root has no password on the private socket."""

    @abstractmethod
    def opening(self, version: str, password: str) -> Sequence[str]:
        """Statements that let `REMOTE_USER` in with a password, to its database only, on a server of this version."""

    def existing(self) -> ExistingMysqld | None:
        """Where the study names one."""
        at = self.parameters.at
        return None if at is None else ExistingMysqld(self.name, at, self.parameters.options)

    def cache_bytes(self) -> tuple[str, float] | None:
        """The buffer pool, which grows to its size."""
        size = mysql_options.normal(str(self.parameters.options.get(CACHE, 0)))
        return (CACHE, size) if isinstance(size, float) else None

    def identity(self, place: OpenPlace) -> Identity:
        """Path, version and hash of the server's program.

        Raises:
            PlaceError: not found, with where it was looked for; of another kind or version.
        """
        if (existing := self.existing()) is not None:
            identity, subject = existing.identity(place), existing.address
        else:
            installation = self.installation(place)
            subject = self._program(place, installation)
            argv = [subject, "--no-defaults", "--version"]
            identity = identified(place, installation, argv, version=self.parameters.version)
        if not self.is_own(identity.version):
            raise PlaceError(
                f"expected {self.name}, but {subject} reports {identity.version}",
                hint="name the other kind under `system`, or a source of this kind (see `fairtrial servers`)",
            )
        return identity

    def _program(self, place: OpenPlace, installation: Installation) -> str:
        return installation.program(place, *self.binaries, beside=[f"/usr/sbin/{name}" for name in self.binaries])

    def creating(self) -> dict[str, str]:
        """The options that are fixed in the data when they are created."""
        return mysql_options.initial(self.parameters.options, self.fixed)

    def written(self, value: Option) -> str:
        """As its configuration file takes it."""
        return mysql_options.text(value)

    def initial(self) -> dict[str, str]:
        """Those, and what acts on tables when they are made or loaded."""
        options = self.parameters.options
        loaded = [*self.fixed, *LOADED, *(PLUGINS if options.keys() & set(NEEDING_PLUGINS) else ())]
        loaded += [name for name in options if name.startswith(KEYS) and ENCRYPTION in options]
        return mysql_options.initial(options, loaded)

    def for_loading(self, facts: Facts) -> Self:
        """The initial options and a configuration that loads fast: what is loaded is durable by the slow shutdown."""
        cache = {CACHE: f"{cache_mib(facts, most=LOADING_CACHE_MIB)}M"}
        options = {**cache, **LOADING_OPTIONS, **self.initial()}
        return type(self)(self.parameters.model_copy(update={"slow_shutdown": None, "options": options}))

    def create(self, place: OpenPlace, launch: Launch) -> None:
        """With the options that matter then."""
        installation = self.installation(place)
        self.fill(place, installation, self._program(place, installation), launch=launch)

    def create_database(self, place: OpenPlace, endpoint: Endpoint | None) -> None:
        """With the server's own character set and collation."""
        _ask(place, server(endpoint), f"CREATE DATABASE {DATABASE}")

    def start(self, place: OpenPlace, launch: Launch) -> Instance:
        """Starts the server with a generated configuration, waits for it, and compares every option asked.

        Raises:
            SystemStartError: it exits, does not answer in time, or an option is not in effect.
        """
        if (existing := self.existing()) is not None:
            return existing.start(place)
        installation = self.installation(place)
        binary = self._program(place, installation)
        socket = launch.work_directory / SOCKET
        configuration = launch.work_directory / "server.cnf"
        port = free_port(place) if launch.addresses else None
        options = {**IMPLIED, **self.implied, **self.parameters.options}
        text = _configuration(installation, launch, options=_said_once(options), port=port)
        place.agent.put(str(configuration), text.encode(), mode=0o644)
        if port is not None:
            place.agent.put(str(launch.work_directory / INIT_FILE), SOCKET_ROOT_ONLY.encode(), mode=0o644)
        process = spawned(place, [binary, f"--defaults-file={configuration}"], installation.equip(launch))
        endpoint = MysqlEndpoint(socket=str(socket), user="root", database=DATABASE)
        with coming_up(place, launch, kind=self.name, stop=lambda: process.stop(place.limits.shutdown_s)):
            wait_until_ready(place, process, launch, looks=["test", "-S", str(socket)], kind=self.name)
            effective = _read_back(place, endpoint, names=self.parameters.options)
            require_in_effect(mysql_options.differences(self.parameters.options, effective))
            remote = None
            if port is not None:
                password = self._opened(place, endpoint, version=effective["version"])
                remote = MysqlEndpoint(
                    host=launch.addresses[0], port=port, user=REMOTE_USER, password=password, database=DATABASE
                )
        return Instance(
            endpoint=endpoint,
            process=process,
            options=effective,
            monitoring=_own(endpoint),  # a workload may not have made its database
            remote=remote,
            slow_shutdown_s=self.parameters.slow_shutdown,
        )

    def _opened(self, place: OpenPlace, endpoint: Server, *, version: str) -> str:
        """The password by which another place logs in as `REMOTE_USER`: as old as this start."""
        password = secrets.token_hex(PASSWORD_BYTES)
        _ask(place, endpoint, *self.opening(version, password))
        return password

    def stop(self, place: OpenPlace, instance: Instance, *, settled: bool) -> None:
        """Shuts the server down; slowly (everything purged, log empty) where its data are to be kept."""
        if instance.process is None or instance.process.exited is not None:
            return
        if settled:
            _ask(place, server(instance.endpoint), "SET GLOBAL innodb_fast_shutdown = 0")
        slowest_s = instance.slow_shutdown_s or SLOW_SHUTDOWN_S
        instance.process.stop(slowest_s if settled else place.limits.shutdown_s)


def _said_once(options: Mapping[str, Option]) -> dict[str, Option]:
    """Without the implied options that the study names itself."""
    names = {name for name in options if not name.startswith("loose_")}
    return {name: value for name, value in options.items() if name.removeprefix("loose_") not in names or name in names}


def _configuration(
    installation: Installation, launch: Launch, *, options: Mapping[str, Option], port: int | None
) -> str:
    lines = ["[mysqld]", f"datadir={launch.data_directory}", f"socket={launch.work_directory / SOCKET}"]
    lines += ["skip-networking"] if port is None else [f"bind-address={','.join(launch.addresses)}", f"port={port}"]
    lines += [f"pid-file={launch.work_directory}/server.pid", f"tmpdir={launch.work_directory}"]
    lines += [f"basedir={installation.base_directory}"] if installation.base_directory else []
    lines += [f"{name}={mysql_options.text(value)}" for name, value in options.items()]
    if port is not None:
        # Last, as the last one counts. A server that looks up its clients' names would measure the resolver, and take
        # 127.0.0.1 for the host of the socket's root.
        lines += ["skip-name-resolve", f"init-file={launch.work_directory / INIT_FILE}"]
    if (own := launch.certificate) is not None:
        lines += [f"ssl-cert={own.certificate}", f"ssl-key={own.key}"]
        lines += ["require-secure-transport=ON"]  # a Unix socket counts as secure
    return "\n".join(lines) + "\n"


def _own(endpoint: Server) -> Server:
    """By the server's own database, which is always there."""
    return endpoint.model_copy(update={"database": "mysql"})


def _read_back(place: OpenPlace, endpoint: Server, *, names: Iterable[str]) -> dict[str, str]:
    """All global variables, and the libraries of plugins for those of these options that load some."""
    limits, statements = place.limits, ["SHOW GLOBAL VARIABLES"]
    request = Sql(endpoint=_own(endpoint), statements=statements, connect_timeout_ms=int(limits.start_s * 1000))
    answer = place.native(SQL, request, timeout_s=limits.start_s + limits.short_s)
    effective = {row[0] or "": row[1] or "" for row in answer.rows}
    if lists := [name for name in names if name in mysql_options.PLUGIN_LISTS]:
        loaded = _ask(place, endpoint, LIBRARIES).rows[0][0] or ""
        effective |= dict.fromkeys(lists, loaded)
    return effective


def _ask(place: OpenPlace, endpoint: Server, *statements: str) -> Rows:
    return place.native(SQL, Sql(endpoint=_own(endpoint), statements=list(statements)))
