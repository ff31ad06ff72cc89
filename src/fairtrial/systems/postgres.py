"""PostgreSQL: a private instance per trial, on a Unix socket, with every option read back.

The server sees one generated configuration file: initdb's own and `ALTER SYSTEM`'s are not read, so "an option passed
twice" cannot happen unseen. Autovacuum is off while data are prepared and as the study says in trials; prepared data
are vacuumed, frozen and analysed once, so that trials begin with statistics. Each connection has a process of its own,
so the sampler follows the main process with its children.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator

from fairtrial.errors import StreamLostError
from fairtrial.study.catalogue import Kind
from fairtrial.systems import postgres_options
from fairtrial.systems.server import (
    START_S,
    first_of,
    identified,
    missing,
    require_in_effect,
    spawned,
    wait_until_ready,
)
from fairtrial.systems.system import Identity, Instance, Launch
from fairtrial.wire.agent import Process
from fairtrial.wire.open_place import SHORT_S, OpenPlace

DATABASE = "fairtrial"
MAINTENANCE = "postgres"
USER = "fairtrial"
STOP_S = 120.0
SETTLED_S = 3600.0  # a checkpoint of a large cache on a slow disk
INSTALL_S = 180.0
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
    return identified(place, [_program(place, parameters, "postgres"), "--version"])


def _program(place: OpenPlace, parameters: Mapping[str, Any], name: str) -> str:
    """A program of the installation; `initdb` is looked for beside the `postgres` that is on PATH as well."""
    base = parameters["base_directory"]
    tried = [f"{base}/bin/{name}"] if base else [name]
    found = first_of(place, tried)
    if found is not None:
        return found
    if not base and name != "postgres":
        server = place.require(["readlink", "-f", _program(place, parameters, "postgres")], hint="it was found before")
        tried.append(str(PurePosixPath(server.strip()).with_name(name)))
        if place.execute(["test", "-x", tried[-1]]).code == 0:
            return tried[-1]
    raise missing(
        name,
        tried,
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
    process = spawned(place, [binary, "-D", str(launch.data_directory), "-c", f"config_file={configuration}"], launch)
    endpoint = {
        "kind": "postgres",
        "socket_directory": str(launch.work_directory),
        "user": USER,
        "password": "",
        "database": DATABASE,
    }
    try:
        # The server writes `ready` into its lock file once recovery is over (PostgreSQL 10 and later).
        looks = ["grep", "-q", "^ready", str(launch.data_directory / "postmaster.pid")]
        wait_until_ready(place, process, launch, looks=looks, kind=KIND.name)
        settings = _read_back(place, endpoint)
        require_in_effect(postgres_options.differences(parameters["options"], settings), hint=postgres_options.HINT)
    except StreamLostError:
        raise  # the agent stops what it started
    except BaseException:
        _shut_down(process, STOP_S)  # a run may go on with other trials: nothing of this one may stay beside them
        raise
    options = {name: f"{setting}{unit and ' ' + unit}" for name, (setting, unit) in settings.items()}
    return Instance(endpoint=endpoint, process=process, options=options, monitoring=endpoint, is_one_process=False)


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
