"""What is in a database that another program filled: every row of every table, hashed by the server itself.

A row is hashed as the quoted text of its columns, a table as the number of its rows and the sum of their hashes: so the
order in which rows were written does not matter. MariaDB, MySQL and PostgreSQL quote plain text alike, and the same
rows have one hash on all of them; text with backslashes has another on PostgreSQL.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.protocol.endpoints import Endpoint, Server, server
from fairtrial.protocol.generated import Loaded, Sql
from fairtrial.protocol.progress import HashingProgress
from fairtrial.protocol.subcommands import SQL
from fairtrial.systems.existing.parameters import TABLE
from fairtrial.wire.native import OnProgress
from fairtrial.wire.open_place import OpenPlace

READ_S: Final = 3600.0
DIGITS: Final = 15  # hexadecimal, of a row's MD5: 60 bits, so that sums of 64-bit servers are exact
# A database that every server of a kind has, and that every user may use.
MAINTENANCE: Final = {"mysql": "information_schema", "postgres": "postgres"}
# PostgreSQL takes `Bench` without quotes for `bench`, which may be somebody else's. Text compares by bytes.
EMPTIED: Final = {
    "mysql": ("DROP DATABASE IF EXISTS `{}`", "CREATE DATABASE `{}`"),
    "postgres": (
        'DROP DATABASE IF EXISTS "{}"',
        "CREATE DATABASE \"{}\" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'",
    ),
}
THERE: Final = {
    "mysql": "SELECT 1 FROM information_schema.schemata WHERE BINARY schema_name = '{}'",
    "postgres": "SELECT 1 FROM pg_database WHERE datname = '{}'",
}
IN_NO_TABLES: Final = ("hammerdb",)  # programs that refuse a database with any table
COLUMNS: Final = {
    "mysql": "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = DATABASE() "
    "ORDER BY table_name, ordinal_position",
    "postgres": "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' "
    "ORDER BY table_name, ordinal_position",
}


def fill(
    place: OpenPlace,
    endpoint: Endpoint,
    *,
    program: str,
    by: Callable[[PurePosixPath], str],
    on_progress: OnProgress,
) -> Loaded:
    """Lets a program fill an empty database, and reads all that it made.

    Args:
        place: where the program runs.
        endpoint: the database, emptied first, but of the mark of a new one.
        program: the workload's name.
        by: runs the program with its files in a directory that is removed afterwards; returns why it failed, empty if
            it did not.
        on_progress: hears when tables are read.

    Raises:
        PlaceError: the program failed; its own words say why.
    """
    reached = server(endpoint)
    if program in IN_NO_TABLES or not _has_mark_alone(place, reached):
        _recreate(place, reached)
    directory = place.state_directory / "building" / program  # what a kill leaves goes when the next load begins
    try:
        failure = by(directory)
    finally:
        place.execute(["rm", "-rf", "--", str(directory)])
    if failure:
        raise PlaceError(f"loading failed: {failure}", hint=f"fix workload.{program}, or see the server's log")
    on_progress(HashingProgress())
    return _read(place, reached)


def _has_mark_alone(place: OpenPlace, endpoint: Server) -> bool:
    """Whether a database is new and says that it is ours: dropped with its mark, a kill would leave it nobody's."""
    if not _rows(place, _elsewhere(endpoint), THERE[endpoint.kind].format(endpoint.database)):
        return False
    if {table for table, _ in _rows(place, endpoint, COLUMNS[endpoint.kind])} != {TABLE}:
        return False
    return _rows(place, endpoint, f"SELECT made FROM {TABLE}") == [["1"]]  # noqa: S608 - a constant


def _recreate(place: OpenPlace, endpoint: Server) -> None:
    """An empty database, whatever an interrupted load has left in it."""
    for statement in EMPTIED[endpoint.kind]:
        _rows(place, _elsewhere(endpoint), statement.format(endpoint.database))


def _elsewhere(endpoint: Server) -> Server:
    return endpoint.model_copy(update={"database": MAINTENANCE[endpoint.kind]})


def _read(place: OpenPlace, endpoint: Server) -> Loaded:
    """Reads all tables.

    Raises:
        PlaceError: the server refuses a statement; its own words say why.
    """
    kind = endpoint.kind
    tables: dict[str, list[str]] = {}
    for table, column in _rows(place, endpoint, COLUMNS[kind]):
        if table != TABLE:
            tables.setdefault(table, []).append(column)
    sums = {name: _rows(place, endpoint, _summed(kind, name, columns))[0] for name, columns in tables.items()}
    content = json.dumps([[name, tables[name], *sums[name]] for name in sorted(tables)])
    rows = {name: int(count) for name, (count, _sum) in sums.items()}
    return Loaded(content_sha256=hashlib.sha256(content.encode()).hexdigest(), rows=rows)


def _summed(kind: str, table: str, columns: list[str]) -> str:
    """Number of rows and the sum of their hashes, as whole numbers; of no rows it is 0."""
    if kind == "mysql":
        row = ", ".join(f"QUOTE(`{column}`)" for column in columns)
        hashed = f"CAST(CONV(LEFT(MD5(CONCAT_WS(',', {row})), {DIGITS}), 16, 10) AS UNSIGNED)"
        return f"SELECT COUNT(*), COALESCE(SUM({hashed}), 0) FROM `{table}`"  # noqa: S608 - names are the server's own
    row = ", ".join(f'quote_nullable("{column}"::text)' for column in columns)
    hashed = f"('x0' || left(md5(concat_ws(',', {row})), {DIGITS}))::bit(64)::bigint"
    return f'SELECT count(*)::text, coalesce(sum({hashed}), 0)::text FROM "{table}"'  # noqa: S608 - as above


def _rows(place: OpenPlace, endpoint: Server, statement: str) -> list[list[str]]:
    limit_ms = int(place.limits.short_s * 1000)
    request = Sql(endpoint=endpoint, statements=[statement], connect_timeout_ms=limit_ms)
    answer = place.native(SQL, request, timeout_s=READ_S).rows
    return [[value or "" for value in row] for row in answer]  # what is asked here is never null
