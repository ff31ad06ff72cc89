"""SQLite, embedded in the load engine: its process is the load's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fairtrial.study.catalogue import Kind
from fairtrial.study.tree.quantities import Seconds
from fairtrial.systems.system import Identity, Instance, Launch
from fairtrial.wire.open_place import OpenPlace

DATABASE = "database.sqlite3"
# Pragmas that are fixed in the file when it is created (sqlite.org/pragma.html).
INITIAL_PRAGMAS = ("auto_vacuum", "encoding", "page_size")


class SqliteParameters(BaseModel):
    """SQLite, in the version that is linked into the load engine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pragmas: dict[Annotated[str, Field(pattern=r"^[a-z_]+$")], Annotated[str, Field(coerce_numbers_to_str=True)]] = (
        Field(default_factory=dict, description="Pragmas of every connection, read back: `journal_mode: WAL`.")
    )
    busy_timeout: Seconds = Field(5.0, description="How long a connection waits for a lock before it gives up.")


KIND = Kind(
    name="sqlite",
    summary="SQLite, embedded in the load engine.",
    parameters=TypeAdapter(SqliteParameters),
)


def has_server(_parameters: Mapping[str, Any]) -> bool:
    """It lives in the load engine's process."""
    return False


def has_data_directory(_parameters: Mapping[str, Any]) -> bool:
    """The first connection creates the file."""
    return False


def identity(place: OpenPlace, _parameters: Mapping[str, Any]) -> Identity:
    """The agent's own hash and the version linked into it."""
    endpoint = {"kind": "sqlite", "path": ":memory:", "busy_timeout_ms": 0}
    rows = place.native(
        "sql",
        {"endpoint": endpoint, "statements": ["select sqlite_version(), sqlite_source_id()"]},
    )
    version, source = rows["rows"][0]
    return Identity(version=version, sha256=place.agent.hello.agent_sha256, facts={"source_id": source})


def initial(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The pragmas that a file keeps for life."""
    return {name: value for name, value in parameters["pragmas"].items() if name in INITIAL_PRAGMAS}


def for_loading(parameters: Mapping[str, Any], _facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The initial pragmas alone; the loader itself knows how to load fast."""
    return {**parameters, "pragmas": initial(parameters)}


def create(_place: OpenPlace, _parameters: Mapping[str, Any], _launch: Launch) -> None:
    """Nothing: the first connection creates the file."""


def create_database(_place: OpenPlace, _endpoint: Mapping[str, Any]) -> None:
    """There is none to make."""


def start(_place: OpenPlace, parameters: Mapping[str, Any], launch: Launch) -> Instance:
    """No process: an endpoint whose pragmas the load engine sets and reads back on every connection."""
    return Instance(
        endpoint={
            "kind": "sqlite",
            "path": str(launch.data_directory / DATABASE),
            "pragmas": dict(parameters["pragmas"]),
            "busy_timeout_ms": round(parameters["busy_timeout"] * 1000),
        },
        process=None,
    )


def stop(_place: OpenPlace, _instance: Instance, *, settled: bool) -> None:
    """Nothing: the last connection checkpointed and closed the file."""
    del settled
