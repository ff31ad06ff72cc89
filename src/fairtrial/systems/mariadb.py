"""MariaDB: a private instance per trial, on a Unix socket, with every option read back.

The server sees one generated configuration file and nothing else, so "an option passed twice" cannot happen unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator

from fairtrial.errors import StreamLostError
from fairtrial.study.catalogue import Kind
from fairtrial.systems import mariadb_options
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
from fairtrial.wire.open_place import SHORT_S, OpenPlace

DATABASE = "fairtrial"
STOP_S = 120.0
SLOW_SHUTDOWN_S = 3600.0  # a slow shutdown purges everything (mariadb.com/kb: innodb_fast_shutdown)
INSTALL_S = 180.0
LOADING_OPTIONS = {
    "innodb_buffer_pool_size": "1G",
    "innodb_doublewrite": 0,
    "innodb_flush_log_at_trx_commit": 0,
    "innodb_autoinc_lock_mode": 2,
}


class MariadbParameters(BaseModel):
    """A private MariaDB server."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_directory: str | None = Field(
        None, description="Base directory of an installation; without it, the `mariadbd` on PATH is used."
    )
    options: dict[Annotated[str, Field(pattern=r"^[a-zA-Z][a-zA-Z0-9_-]*$")], str | int | float | bool] = Field(
        default_factory=dict, description="Server options, as in the [mariadbd] group: `innodb_doublewrite: 0`."
    )

    @field_validator("options")
    @classmethod
    def _one_spelling(cls, options: dict[str, Any]) -> dict[str, Any]:
        return mariadb_options.canonical(options)


KIND = Kind(name="mariadb", summary="A private MariaDB server.", parameters=TypeAdapter(MariadbParameters))


def has_server(_parameters: Mapping[str, Any]) -> bool:
    """Always."""
    return True


def identity(place: OpenPlace, parameters: Mapping[str, Any]) -> Identity:
    """Path, version and hash of `mariadbd`.

    Raises:
        PlaceError: not found, with where it was looked for.
    """
    return identified(place, [_program(place, parameters, "mariadbd"), "--no-defaults", "--version"])


def _program(place: OpenPlace, parameters: Mapping[str, Any], name: str) -> str:
    base = parameters["base_directory"]
    folders = ("bin", "sbin", "scripts", "libexec")
    tried = [f"{base}/{folder}/{name}" for folder in folders] if base else [name, f"/usr/sbin/{name}"]
    found = first_of(place, tried)
    if found is None:
        raise missing(name, tried, hint="install mariadb-server there, or set system.mariadb.base_directory")
    return found


def initial(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options that are fixed in the data when they are created."""
    return mariadb_options.initial(parameters["options"])


def for_loading(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The initial options and a configuration that loads fast: what is loaded is durable by the slow shutdown."""
    return {**parameters, "options": {**LOADING_OPTIONS, **initial(parameters)}}


def create(place: OpenPlace, parameters: Mapping[str, Any], launch: Launch) -> None:
    """Runs mariadb-install-db with the options that matter then; root has no password on the private socket."""
    program = _program(place, parameters, "mariadb-install-db")
    argv = [
        program,
        "--no-defaults",
        f"--datadir={launch.data_directory}",
        # In a shared directory every start removes the temporary tables of the other servers of its user.
        f"--tmpdir={launch.work_directory}",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        *([f"--basedir={parameters['base_directory']}"] if parameters["base_directory"] else []),
        *(f"--{name}={value}" for name, value in initial(parameters).items()),
    ]
    place.require(argv, hint="see its own words above", timeout_s=INSTALL_S, user=place.server_user)


def start(place: OpenPlace, parameters: Mapping[str, Any], launch: Launch) -> Instance:
    """Starts `mariadbd` with a generated configuration, waits for it, and compares every option asked.

    Raises:
        SystemStartError: it exits, does not answer in time, or an option is not in effect.
    """
    binary = _program(place, parameters, "mariadbd")
    socket = launch.work_directory / "mysqld.sock"
    configuration = launch.work_directory / "server.cnf"
    place.agent.put(str(configuration), _configuration(parameters, launch, socket).encode(), mode=0o644)
    process = spawned(place, [binary, f"--defaults-file={configuration}"], launch)
    endpoint = {"kind": "mysql", "socket": str(socket), "user": "root", "password": "", "database": DATABASE}
    try:
        wait_until_ready(place, process, launch, looks=["test", "-S", str(socket)], kind=KIND.name)
        options = _read_back(place, endpoint)
        require_in_effect(mariadb_options.differences(parameters["options"], options), hint=mariadb_options.HINT)
    except StreamLostError:
        raise  # the agent stops what it started
    except BaseException:
        process.stop(STOP_S)  # a run may go on with other trials: nothing of this one may stay beside them
        raise
    monitoring = {**endpoint, "database": "mysql"}  # a workload may not have made its database
    return Instance(endpoint=endpoint, process=process, options=options, monitoring=monitoring)


def _configuration(parameters: Mapping[str, Any], launch: Launch, socket: PurePosixPath) -> str:
    lines = ["[mariadbd]", f"datadir={launch.data_directory}", f"socket={socket}", "skip-networking"]
    lines += [f"pid-file={launch.work_directory}/server.pid", f"tmpdir={launch.work_directory}"]
    if parameters["base_directory"]:
        lines.append(f"basedir={parameters['base_directory']}")
    # Preloading a buffer pool would carry one trial's state into the next unless the study asks for it.
    implied = {"innodb_buffer_pool_load_at_startup": 0, "innodb_buffer_pool_dump_at_shutdown": 0}
    lines += [f"{name}={mariadb_options.text(value)}" for name, value in {**implied, **parameters["options"]}.items()]
    return "\n".join(lines) + "\n"


def _read_back(place: OpenPlace, endpoint: Mapping[str, Any]) -> dict[str, str]:
    reachable = {**endpoint, "database": "mysql"}
    rows = place.native(
        "sql",
        {"endpoint": reachable, "statements": ["SHOW GLOBAL VARIABLES"], "connect_timeout_ms": int(START_S * 1000)},
        timeout_s=START_S + SHORT_S,
    )
    return {row[0]: row[1] or "" for row in rows["rows"]}


def stop(place: OpenPlace, instance: Instance, *, settled: bool) -> None:
    """Shuts the server down; slowly (everything purged, log empty) where its data are to be kept."""
    if instance.process is None or instance.process.exited is not None:
        return
    if settled:
        place.native(
            "sql",
            {
                "endpoint": {**(instance.endpoint or {}), "database": "mysql"},
                "statements": ["SET GLOBAL innodb_fast_shutdown = 0"],
            },
            timeout_s=SHORT_S,
        )
    instance.process.stop(SLOW_SHUTDOWN_S if settled else STOP_S)
