"""PostgreSQL: a private instance per trial, on a Unix socket, with every option read back.

The server sees one generated configuration file: initdb's own and `ALTER SYSTEM`'s are not read, so "an option passed
twice" cannot happen unseen. Autovacuum is off while data are prepared and as the study says in trials; prepared data
are vacuumed, frozen and analysed once, so that trials begin with statistics. Each connection has a process of its own,
so the sampler follows the main process with its children.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator

from fairtrial.errors import PlaceError, StreamLostError, SystemStartError
from fairtrial.study.catalogue import Kind
from fairtrial.systems import postgres_options
from fairtrial.systems.system import Identity, Instance, Launch
from fairtrial.wire.agent import Process
from fairtrial.wire.open_place import SHORT_S, OpenPlace

DATABASE = "fairtrial"
MAINTENANCE = "postgres"
USER = "fairtrial"
START_S = 120.0  # a crash recovery of a large log takes minutes, a prepared directory seconds
STOP_S = 120.0
SETTLED_S = 3600.0  # a checkpoint of a large cache on a slow disk
INSTALL_S = 180.0
POLL_S = 0.1
LOG_LINES = 25
LOADING_OPTIONS = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "maintenance_work_mem": "256MB",
    "synchronous_commit": "off",
    "autovacuum": "off",  # the load vacuums and analyses once, at its end
}
SETTINGS = "SELECT name, setting, unit FROM pg_settings"


class PostgresParameters(BaseModel):
    """A private PostgreSQL server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_directory: str | None = Field(
        None,
        description="Base directory of an installation, such as `/usr/lib/postgresql/15`; without it, the `postgres` "
        "on PATH is used.",
    )
    options: dict[Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_.]*$")], str | int | float | bool] = Field(
        default_factory=dict, description="Server options, as in postgresql.conf: `synchronous_commit: off`."
    )

    @field_validator("options")
    @classmethod
    def _one_spelling(cls, options: dict[str, Any]) -> dict[str, Any]:
        return postgres_options.canonical(options)


KIND = Kind(name="postgres", summary="A private PostgreSQL server.", parameters=TypeAdapter(PostgresParameters))


def has_server(_parameters: Mapping[str, Any]) -> bool:
    """Always."""
    return True


def identity(place: OpenPlace, parameters: Mapping[str, Any]) -> Identity:
    """Path, version and hash of `postgres`.

    Raises:
        PlaceError: not found, with where it was looked for.
    """
    binary = _program(place, parameters, "postgres")
    version = place.require([binary, "--version"], hint="the server binary must run").strip()
    digest = place.require(["sha256sum", binary], hint="the server binary must be readable").split()[0]
    return Identity(version=version, sha256=digest, facts={"binary": binary})


def _program(place: OpenPlace, parameters: Mapping[str, Any], name: str) -> str:
    """A program of the installation; `initdb` is looked for beside the `postgres` that is on PATH as well."""
    base = parameters["base_directory"]
    tried = [f"{base}/bin/{name}"] if base else [name]
    for candidate in tried:
        found = place.execute(["sh", "-c", 'command -v -- "$1"', "sh", candidate])
        if found.code == 0:
            return found.output.strip()
    if not base and name != "postgres":
        server = place.require(["readlink", "-f", _program(place, parameters, "postgres")], hint="it was found before")
        tried.append(str(PurePosixPath(server.strip()).with_name(name)))
        if place.execute(["test", "-x", tried[-1]]).code == 0:
            return tried[-1]
    raise PlaceError(
        f"no {name} at this place (looked for {', '.join(tried)})",
        hint="install postgresql there, or set system.postgres.base_directory (/usr/lib/postgresql/15 on Debian)",
    )


def initial(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options that are fixed in the data when they are created."""
    return postgres_options.initial(parameters["options"])


def for_loading(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The initial options and a configuration that loads fast: what is loaded is durable by the last checkpoint."""
    return {**parameters, "options": {**LOADING_OPTIONS, **initial(parameters)}}


def create(place: OpenPlace, parameters: Mapping[str, Any], launch: Launch) -> None:
    """Runs initdb; its user has no password on the private socket. Text compares by bytes, as on every system here."""
    argv = [
        _program(place, parameters, "initdb"),
        f"--pgdata={launch.data_directory}",
        f"--username={USER}",
        "--auth=trust",
        "--locale=C",
        "--encoding=UTF8",
        *postgres_options.creating(parameters["options"]),
    ]
    place.require(argv, hint="see its own words above", timeout_s=INSTALL_S, user=place.server_user)


def start(place: OpenPlace, parameters: Mapping[str, Any], launch: Launch) -> Instance:
    """Starts `postgres` with a generated configuration, waits for it, and compares every option asked.

    Raises:
        SystemStartError: it exits, does not answer in time, or an option is not in effect.
    """
    binary = _program(place, parameters, "postgres")
    configuration = launch.work_directory / "postgresql.conf"
    for path, content in {
        configuration: _configuration(parameters, launch),
        launch.work_directory / "pg_hba.conf": f"local all {USER} trust\n",
        launch.work_directory / "pg_ident.conf": "",
    }.items():
        place.agent.put(str(path), content.encode(), mode=0o644)
    # What ALTER SYSTEM would have left in data that are used again goes before the generated file.
    automatic = launch.data_directory / "postgresql.auto.conf"
    place.require(["rm", "-f", "--", str(automatic)], hint="the data directory must be writable")
    process = place.agent.spawn(
        name="server",
        argv=[binary, "-D", str(launch.data_directory), "-c", f"config_file={configuration}"],
        environment=dict(launch.environment),
        directory=str(launch.work_directory),
        user=place.server_user,
        processors=list(launch.processors) if launch.processors is not None else None,
        stdout={"kind": "file", "path": str(launch.log_path)},
        stderr={"kind": "file", "path": str(launch.log_path)},
    )
    endpoint = {
        "kind": "postgres",
        "socket_directory": str(launch.work_directory),
        "user": USER,
        "password": "",
        "database": DATABASE,
    }
    try:
        _wait_until_ready(place, process, launch=launch)
        settings = _read_back(place, endpoint)
        _require_in_effect(parameters["options"], settings)
    except StreamLostError:
        raise  # the agent stops what it started
    except BaseException:
        _shut_down(process, STOP_S)  # a run may go on with other trials: nothing of this one may stay beside them
        raise
    options = {name: f"{setting}{unit and ' ' + unit}" for name, (setting, unit) in settings.items()}
    return Instance(endpoint=endpoint, process=process, options=options, monitoring=endpoint, is_one_process=False)


def _wait_until_ready(place: OpenPlace, process: Process, *, launch: Launch) -> None:
    """The server writes `ready` into its lock file once recovery is over (PostgreSQL 10 and later)."""
    deadline = time.monotonic() + START_S
    lock = str(launch.data_directory / "postmaster.pid")
    while place.execute(["grep", "-q", "^ready", lock]).code != 0:
        if process.exited is not None or time.monotonic() > deadline:
            happened = "exited at start" if process.exited is not None else f"did not answer within {START_S:.0f} s"
            raise SystemStartError(
                f"postgres {happened}; its own last lines:\n{log_tail(place, launch.log_path)}",
                hint="mend system.postgres.options, or look for what else its log names",
            )
        time.sleep(POLL_S)


def _require_in_effect(asked: Mapping[str, Any], settings: Mapping[str, tuple[str, str]]) -> None:
    wrong = postgres_options.differences(asked, settings)
    if wrong:
        raise SystemStartError("options that are not in effect: " + "; ".join(wrong), hint=postgres_options.HINT)


def _configuration(parameters: Mapping[str, Any], launch: Launch) -> str:
    ours = {
        "data_directory": launch.data_directory,
        "hba_file": launch.work_directory / "pg_hba.conf",
        "ident_file": launch.work_directory / "pg_ident.conf",
        "listen_addresses": "",
        "port": 5432,
        "unix_socket_directories": launch.work_directory,
        "log_destination": "stderr",
        "logging_collector": "off",
    }
    # Reloading a cache would carry one trial's state into the next; huge pages are the study's to ask for.
    asked = {name: value for name, value in parameters["options"].items() if name not in postgres_options.INITIAL}
    return "".join(postgres_options.line(name, value) + "\n" for name, value in {**ours, **asked}.items())


def _read_back(place: OpenPlace, endpoint: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    rows = _ask(place, endpoint, SETTINGS, timeout_s=START_S)
    return {row[0]: (row[1] or "", row[2] or "") for row in rows["rows"]}


def _ask(place: OpenPlace, endpoint: Mapping[str, Any], statement: str, *, timeout_s: float) -> dict[str, Any]:
    reachable = {**endpoint, "database": MAINTENANCE}
    asked = {"endpoint": reachable, "statements": [statement], "connect_timeout_ms": int(START_S * 1000)}
    return place.native("sql", asked, timeout_s=timeout_s + SHORT_S)


def log_tail(place: OpenPlace, log_path: PurePosixPath) -> str:
    """The server's last log lines."""
    return place.execute(["tail", "-n", str(LOG_LINES), str(log_path)]).output


def stop(place: OpenPlace, instance: Instance, *, settled: bool) -> None:
    """Shuts the server down; after a checkpoint, and with all the time it takes, where its data are to be kept."""
    if instance.process is None or instance.process.exited is not None:
        return
    if settled:
        _ask(place, instance.endpoint or {}, "CHECKPOINT", timeout_s=SETTLED_S)
    _shut_down(instance.process, SETTLED_S if settled else STOP_S)


def _shut_down(process: Process, limit_s: float) -> None:
    """SIGINT is a fast shutdown; SIGTERM would wait for every client to leave."""
    if process.exited is None:
        process.signal(signal.SIGINT)
    process.stop(limit_s)
