"""A database that another program fills: emptied first, by what every user of its server may do."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

import pytest
from support.machines.places import place_in_memory

from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.protocol.generated import MysqlEndpoint, PostgresEndpoint
from fairtrial.wire.fake import FakeProgram
from fairtrial.workloads import contents


def test_a_user_of_one_database_alone_can_have_it_emptied() -> None:
    """MariaDB and MySQL let nobody into `mysql` whom they were not told to, and everybody into `information_schema`."""
    reached: list[str] = []

    def answer(spawn: wire.Spawn) -> FakeProgram:
        if spawn.name == "sql":
            reached.append(json.loads(spawn.stdin or "")["endpoint"]["database"])
        return FakeProgram(stdout=[json.dumps({"columns": [], "rows": []})])

    def fails(_directory: PurePosixPath) -> str:
        return "not today"

    endpoint = MysqlEndpoint(socket="/w/s", user="bench", database="bench")
    with place_in_memory(answer) as (place, _), pytest.raises(PlaceError, match="loading failed: not today"):
        contents.fill(place, endpoint, program="sysbench", by=fails, on_progress=lambda _line: None)
    assert reached == ["information_schema"] * 3


@pytest.mark.parametrize(
    ("program", "tables", "made", "dropped"),
    [
        ("pgbench", ["fairtrial_made"], "1", False),
        ("pgbench", ["fairtrial_made"], "0", True),
        ("pgbench", ["fairtrial_made", "left"], "1", True),
        ("pgbench", [], "", True),
        ("hammerdb", ["fairtrial_made"], "1", True),
    ],
)
def test_a_database_that_has_our_mark_alone_keeps_it_and_the_mark_is_no_content(
    program: str, tables: list[str], made: str, *, dropped: bool
) -> None:
    statements: list[str] = []

    def answer(spawn: wire.Spawn) -> FakeProgram:
        if spawn.name != "sql":
            return FakeProgram()
        (statement,) = json.loads(spawn.stdin or "")["statements"]
        statements.append(statement)
        rows = [["1"]] if "pg_database" in statement else [[table, "made"] for table in tables]
        rows = [[made]] if statement.startswith("SELECT made") else rows
        return FakeProgram(stdout=[json.dumps({"columns": [], "rows": rows if statement.startswith("SELECT") else []})])

    def loads(_directory: PurePosixPath) -> str:
        tables[:] = ["fairtrial_made"]
        return ""

    endpoint = PostgresEndpoint(socket_directory="/w", user="bench", database="bench")
    with place_in_memory(answer) as (place, _):
        loaded = contents.fill(place, endpoint, program=program, by=loads, on_progress=lambda _line: None)
    assert any(statement.startswith("DROP DATABASE") for statement in statements) == dropped
    assert loaded.rows == {}
