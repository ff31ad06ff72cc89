"""PostgreSQL: a private instance per trial, on a Unix socket, with every option read back.

The server sees one generated configuration file: initdb's own and `ALTER SYSTEM`'s are not read, so "an option passed
twice" cannot happen unseen. Autovacuum is off while data are prepared and as the study says in trials; prepared data
are vacuumed, frozen and analysed once, so that trials begin with statistics. Each connection has a process of its own,
so the sampler follows the main process with its children.
"""

from __future__ import annotations

import secrets
import signal
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Self

from pydantic import Field, field_validator

from fairtrial.programs import Program
from fairtrial.protocol.endpoints import Endpoint, Server, server
from fairtrial.protocol.generated import PostgresEndpoint, Rows, Sql
from fairtrial.protocol.subcommands import SQL
from fairtrial.systems import postgres_options
from fairtrial.systems.existing import ExistingPostgres, PostgresAt
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
from fairtrial.wire.agent import Process
from fairtrial.wire.facts import Facts
from fairtrial.wire.open_place import OpenPlace

DATABASE = "fairtrial"
MAINTENANCE = "postgres"
USER = "fairtrial"
REMOTE_USER = "fairtrial_load"  # of loads at other places: no superuser, who could run programs as the server's user
PORT = 5432  # of the socket's name, where nothing listens on a network
SETTLED_S = 3600.0  # a checkpoint of a large cache on a slow disk
INSTALL_S = 180.0
CACHE = "shared_buffers"
PAGE = "8kB"  # what a number without a unit counts there
LOADING_CACHE_MIB = 512
LOADING_OPTIONS = {
    "max_wal_size": "8GB",
    "synchronous_commit": "off",
    "autovacuum": "off",  # the load vacuums and analyses once, at its end
}
# A password must not reach the server's log, which is part of the record, whatever the study has logged.
UNLOGGED = (
    "SET log_statement = 'none'",
    "SET log_min_duration_statement = -1",
    "SET log_min_error_statement = 'panic'",
)
REMOTE_ROLE = f"DO $$ BEGIN CREATE ROLE {REMOTE_USER} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
REMOTE_RIGHTS = tuple(
    f"GRANT ALL ON {what} TO {REMOTE_USER}"
    for what in ("SCHEMA public", *(f"ALL {kind} IN SCHEMA public" for kind in ("TABLES", "SEQUENCES", "FUNCTIONS")))
)
SETTINGS = "SELECT name, setting, unit FROM pg_settings"


class PostgresParameters(ServerSource):
    """A private PostgreSQL server, or one that is there already."""

    at: PostgresAt | None = Field(
        None, description="A server that is there already, which is neither started nor stopped."
    )
    options: dict[Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_.]*$")], Option] = Field(
        default_factory=dict,
        description="Server options as in postgresql.conf: `synchronous_commit: off`, for example.",
    )

    @field_validator("options")
    @classmethod
    def _one_spelling(cls, options: dict[str, Option]) -> dict[str, Option]:
        return postgres_options.canonical(options)


class Postgres(PrivateServer[PostgresParameters]):
    """A private PostgreSQL server."""

    name = "postgres"
    summary = "A private PostgreSQL server."
    model = PostgresParameters
    programs = (Program("postgres", "the system `postgres` runs it", "postgresql"),)
    binaries = ("postgres",)
    making = ("initdb",)
    encrypts = True
    empty_bytes = 48 << 20  # templates of databases, and a first segment of the log

    def existing(self) -> ExistingPostgres | None:
        """Where the study names one."""
        at = self.parameters.at
        return None if at is None else ExistingPostgres(self.name, at, self.parameters.options)

    def cache_bytes(self) -> tuple[str, float] | None:
        """Its shared buffers, which it is given at once."""
        size = postgres_options.normal(str(self.parameters.options.get(CACHE, 0)), PAGE)
        return (CACHE, size) if isinstance(size, float) else None

    def identity(self, place: OpenPlace) -> Identity:
        """Path, version and hash of `postgres`.

        Raises:
            PlaceError: not found, with where it was looked for; of another version.
        """
        if (existing := self.existing()) is not None:
            return existing.identity(place)
        installation = self.installation(place)
        argv = [_program(place, installation, "postgres"), "--version"]
        return identified(place, installation, argv, version=self.parameters.version)

    def written(self, value: Option) -> str:
        """As its configuration file takes it."""
        return postgres_options.text(value)

    def initial(self) -> dict[str, str]:
        """The options that are fixed in the data when they are created."""
        return postgres_options.initial(self.parameters.options)

    def for_loading(self, facts: Facts) -> Self:
        """The initial options and a configuration that loads fast: what is loaded is durable by the last checkpoint."""
        cache = cache_mib(facts, most=LOADING_CACHE_MIB)
        memory = {CACHE: f"{cache}MB", "maintenance_work_mem": f"{cache // 2}MB"}
        options = {**memory, **LOADING_OPTIONS, **self.initial()}
        return type(self)(self.parameters.model_copy(update={"options": options}))

    def create(self, place: OpenPlace, launch: Launch) -> None:
        """Runs initdb; its user has no password on the private socket. Text compares by bytes, as everywhere here."""
        installation = self.installation(place)
        argv = [
            _program(place, installation, "initdb"),
            f"--pgdata={launch.data_directory}",
            f"--username={USER}",
            "--auth=trust",
            "--locale=C",
            "--encoding=UTF8",
            *postgres_options.creating(self.parameters.options, version=self.identity(place).version),
        ]
        command = installation.command(*argv)
        place.require(command, hint="see the server's output above", timeout_s=INSTALL_S, user=place.server_user)

    def create_database(self, place: OpenPlace, endpoint: Endpoint | None) -> None:
        """As initdb was told: text compares by bytes."""
        _ask(place, server(endpoint), f"CREATE DATABASE {DATABASE}")

    def start(self, place: OpenPlace, launch: Launch) -> Instance:
        """Starts `postgres` with a generated configuration, waits for it, and compares every option asked.

        Raises:
            SystemStartError: it exits, does not answer in time, or an option is not in effect.
        """
        if (existing := self.existing()) is not None:
            return existing.start(place)
        installation = self.installation(place)
        binary = _program(place, installation, "postgres")
        configuration = launch.work_directory / "postgresql.conf"
        port = free_port(place) if launch.addresses else PORT
        kind = "host" if launch.certificate is None else "hostssl"
        over_network = f"{kind} {DATABASE} {REMOTE_USER} all scram-sha-256\n" if launch.addresses else ""
        for path, content in {
            configuration: _configuration(self.parameters.options, launch, port=port),
            launch.work_directory / "pg_hba.conf": f"local all {USER} trust\n{over_network}",
            launch.work_directory / "pg_ident.conf": "",
        }.items():
            place.agent.put(str(path), content.encode(), mode=0o644)
        # What ALTER SYSTEM would have left in data that are used again goes before the generated file.
        automatic = launch.data_directory / "postgresql.auto.conf"
        place.require(["rm", "-f", "--", str(automatic)], hint="the data directory must be writable")
        argv = [binary, "-D", str(launch.data_directory), "-c", f"config_file={configuration}"]
        process = spawned(place, argv, installation.equip(launch))
        endpoint = PostgresEndpoint(
            socket_directory=str(launch.work_directory), port=port, user=USER, database=DATABASE
        )
        with coming_up(place, launch, kind=self.name, stop=lambda: _shut_down(process, place.limits.shutdown_s)):
            # The server writes `ready` into its lock file once recovery is over (PostgreSQL 10 and later).
            looks = ["grep", "-q", "^ready", str(launch.data_directory / "postmaster.pid")]
            wait_until_ready(place, process, launch, looks=looks, kind=self.name)
            settings = _read_back(place, endpoint)
            require_in_effect(postgres_options.differences(self.parameters.options, settings))
            remote = _opened(place, endpoint, address=launch.addresses[0]) if launch.addresses else None
        options = {name: f"{setting}{unit and ' ' + unit}" for name, (setting, unit) in settings.items()}
        return Instance(
            endpoint=endpoint,
            process=process,
            options=options,
            monitoring=endpoint,
            is_one_process=False,
            remote=remote,
        )

    def stop(self, place: OpenPlace, instance: Instance, *, settled: bool) -> None:
        """Shuts the server down; after a checkpoint, and with all the time it takes, where its data are to be kept."""
        if instance.process is None or instance.process.exited is not None:
            return
        if settled:
            _ask(place, server(instance.endpoint), "CHECKPOINT", timeout_s=SETTLED_S)
        _shut_down(instance.process, SETTLED_S if settled else place.limits.shutdown_s)


def _program(place: OpenPlace, installation: Installation, name: str) -> str:
    """A program of the installation; `initdb` is looked for beside the `postgres` that is on PATH as well."""
    if installation.base_directory is not None or name == "postgres":
        return installation.program(place, name)
    server = place.require(["readlink", "-f", installation.program(place, "postgres")], hint="it was found before")
    return installation.program(place, name, beside=[str(PurePosixPath(server.strip()).with_name(name))])


def _opened(place: OpenPlace, endpoint: PostgresEndpoint, *, address: str) -> PostgresEndpoint:
    """An endpoint for another place: of a role that owns its database alone, with a password as old as this start."""
    password = secrets.token_hex(PASSWORD_BYTES)
    opening = (REMOTE_ROLE, f"ALTER ROLE {REMOTE_USER} PASSWORD '{password}'")
    _ask(place, endpoint, *UNLOGGED, *opening, f"ALTER DATABASE {DATABASE} OWNER TO {REMOTE_USER}")
    _ask(place, endpoint, *REMOTE_RIGHTS, database=DATABASE)
    return PostgresEndpoint(host=address, port=endpoint.port, user=REMOTE_USER, password=password, database=DATABASE)


def _configuration(options: Mapping[str, Option], launch: Launch, *, port: int) -> str:
    ours: dict[str, Option] = {
        "data_directory": str(launch.data_directory),
        "hba_file": str(launch.work_directory / "pg_hba.conf"),
        "ident_file": str(launch.work_directory / "pg_ident.conf"),
        "listen_addresses": ",".join(launch.addresses),
        "port": port,
        "unix_socket_directories": str(launch.work_directory),
        "log_destination": "stderr",
        "logging_collector": "off",
    }
    if (own := launch.certificate) is not None:
        ours |= {"ssl": "on", "ssl_cert_file": str(own.certificate), "ssl_key_file": str(own.key)}
    # Reloading a cache would carry one trial's state into the next; huge pages are the study's to ask for.
    chosen = {name: value for name, value in options.items() if name not in postgres_options.INITIAL}
    return "".join(postgres_options.line(name, value) + "\n" for name, value in {**ours, **chosen}.items())


def _read_back(place: OpenPlace, endpoint: Server) -> dict[str, tuple[str, str]]:
    answer = _ask(place, endpoint, SETTINGS, timeout_s=place.limits.start_s)
    return {row[0] or "": (row[1] or "", row[2] or "") for row in answer.rows}


def _ask(
    place: OpenPlace,
    endpoint: Server,
    *statements: str,
    timeout_s: float | None = None,
    database: str = MAINTENANCE,
) -> Rows:
    request = Sql(
        endpoint=endpoint.model_copy(update={"database": database}),
        statements=list(statements),
        connect_timeout_ms=int(place.limits.start_s * 1000),
    )
    short_s = place.limits.short_s
    return place.native(SQL, request, timeout_s=(timeout_s or short_s) + short_s)


def _shut_down(process: Process, limit_s: float) -> None:
    """SIGINT is a fast shutdown; SIGTERM would wait for every client to leave."""
    if process.exited is None:
        process.signal(signal.SIGINT)
    process.stop(limit_s)
