"""SQLite, embedded in the load engine: its process is the load's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator

from fairtrial.programs import Act
from fairtrial.protocol.generated import Sql, SqliteEndpoint
from fairtrial.protocol.subcommands import SQL
from fairtrial.study.tree.quantities import WholeMilliseconds
from fairtrial.systems.instance import Identity, Instance, Launch
from fairtrial.systems.server import read_number
from fairtrial.systems.system import System
from fairtrial.wire.facts import Facts
from fairtrial.wire.open_place import OpenPlace

DATABASE = "database.sqlite3"
LONGEST_WAIT_S = 86_400.0  # SQLite counts milliseconds in 31 bits
# Pragmas that are fixed in the file when it is created (sqlite.org/pragma.html).
INITIAL_PRAGMAS = ("auto_vacuum", "encoding", "page_size")


PragmaValue = Annotated[
    str,
    Field(coerce_numbers_to_str=True),
    BeforeValidator(read_number),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}]}),
]


class SqliteParameters(BaseModel):
    """SQLite, in the version that is linked into the load engine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pragmas: dict[Annotated[str, Field(pattern=r"^[a-z_]+$")], PragmaValue] = Field(
        default_factory=dict,
        description="Pragmas of every connection, read back after they are set: `journal_mode: WAL`, for example.",
    )
    busy_timeout: WholeMilliseconds = Field(
        5.0,
        le=LONGEST_WAIT_S,
        description="Time that a connection waits for a lock before it gives up, in whole milliseconds.",
    )

    @field_validator("pragmas")
    @classmethod
    def _said_once(cls, pragmas: dict[str, str]) -> dict[str, str]:
        if "busy_timeout" in pragmas:
            raise ValueError("`busy_timeout` has a key of its own, beside `pragmas`: give the time there")
        return pragmas


class Sqlite(System[SqliteParameters]):
    """SQLite: the first connection creates the file, the last one checkpoints and closes it."""

    name = "sqlite"
    summary = "SQLite, embedded in the load engine."
    model = SqliteParameters

    def user(self, place: OpenPlace) -> None:
        """The agent's own, as there is no server: nobody else may leave a link where the load writes."""

    def acts(self) -> Iterator[Act]:
        """Nothing runs but the load, which sets the pragmas."""
        for name, value in self.parameters.pragmas.items():
            yield Act("changes", f"pragma {name} = {value}", "in every connection", undo="the trial's data are removed")

    def identity(self, place: OpenPlace) -> Identity:
        """The agent's own hash and the version linked into it."""
        endpoint = SqliteEndpoint(path=":memory:", busy_timeout_ms=0)
        request = Sql(endpoint=endpoint, statements=["select sqlite_version(), sqlite_source_id()"])
        version, source = (value or "" for value in place.native(SQL, request).rows[0])
        return Identity(version=version, sha256=place.agent.hello.agent_sha256, facts={"source_id": source})

    def initial(self) -> dict[str, str]:
        """The pragmas that a file keeps for life."""
        return {name: value for name, value in self.parameters.pragmas.items() if name in INITIAL_PRAGMAS}

    def for_loading(self, facts: Facts) -> Self:
        """With the initial pragmas alone; the loader itself knows how to load fast."""
        del facts
        return type(self)(self.parameters.model_copy(update={"pragmas": self.initial()}))

    def start(self, place: OpenPlace, launch: Launch) -> Instance:
        """No process: an endpoint whose pragmas the load engine sets and reads back on every connection."""
        del place
        return Instance(
            endpoint=SqliteEndpoint(
                path=str(launch.data_directory / DATABASE),
                pragmas=self.parameters.pragmas,
                busy_timeout_ms=round(self.parameters.busy_timeout * 1000),
            ),
            process=None,
        )
