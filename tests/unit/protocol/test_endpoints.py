"""Endpoints narrowed to what a workload can use, and refused otherwise."""

from __future__ import annotations

import pytest

from fairtrial.errors import PlaceError
from fairtrial.protocol.endpoints import Endpoint, FilesEndpoint, database, server
from fairtrial.protocol.generated import MysqlEndpoint, PostgresEndpoint, SqliteEndpoint

SQLITE = SqliteEndpoint(path="/d", busy_timeout_ms=1)
MYSQL = MysqlEndpoint(user="root", database="d")
POSTGRES = PostgresEndpoint(user="me", database="d")


def test_databases_are_themselves() -> None:
    assert [database(each) for each in (SQLITE, MYSQL, POSTGRES)] == [SQLITE, MYSQL, POSTGRES]
    assert [server(each) for each in (MYSQL, POSTGRES)] == [MYSQL, POSTGRES]


@pytest.mark.parametrize("other", [None, FilesEndpoint(directory="/d")])
def test_what_is_no_database_is_refused(other: Endpoint | None) -> None:
    with pytest.raises(PlaceError, match="needs a database") as refused:
        database(other)
    assert "under `system`" in refused.value.hint


def test_a_database_without_a_server_is_refused_where_one_is_needed() -> None:
    with pytest.raises(PlaceError, match="SQLite has none"):
        server(SQLITE)
