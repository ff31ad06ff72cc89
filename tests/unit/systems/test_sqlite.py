"""SQLite has no process: an endpoint, and an identity that is the load engine's."""

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from pydantic import ValidationError
from support.facts import facts_of
from support.machines.places import place_here, place_in_memory

from fairtrial.protocol.endpoints import database
from fairtrial.protocol.generated import Sql, SqliteEndpoint
from fairtrial.protocol.subcommands import SQL
from fairtrial.systems import Launch
from fairtrial.systems.sqlite import Sqlite, SqliteParameters


def sqlite(**given: Any) -> Sqlite:
    return Sqlite(SqliteParameters.model_validate(given))


def test_its_identity_is_the_agents_and_what_the_library_says(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        found = sqlite().identity(place)
        assert found.sha256 == place.agent.hello.agent_sha256
    assert found.version.startswith("3.")
    assert len(found.facts["source_id"]) > 64


def test_its_endpoint_names_the_file_and_every_pragma() -> None:
    here = PurePosixPath("/data")
    launch = Launch(data_directory=here, work_directory=here, log_path=here / "log")
    with place_in_memory() as (place, _fake):
        asked = sqlite(pragmas={"journal_mode": "WAL", "cache_size": -2000}, busy_timeout="1500ms")
        instance = asked.start(place, launch)
    assert instance.process is None
    assert instance.endpoint == SqliteEndpoint(
        path="/data/database.sqlite3",
        pragmas={"journal_mode": "WAL", "cache_size": "-2000"},
        busy_timeout_ms=1500,
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pragmas": {"busy_timeout": 100}}, "`busy_timeout` has a key of its own"),
        ({"busy_timeout": "500us"}, "expected whole milliseconds, found 0.5 ms"),
        ({"busy_timeout": "600h"}, "less than or equal to 86400"),
    ],
)
def test_a_time_to_wait_is_given_once_and_as_sqlite_takes_it(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        sqlite(**given)


def test_only_what_a_file_keeps_for_life_is_used_to_load() -> None:
    asked = sqlite(pragmas={"journal_mode": "WAL", "page_size": 8192.0, "synchronous": "OFF"})
    assert asked.initial() == {"page_size": "8192"}
    assert asked.for_loading(facts_of()).parameters.pragmas == {"page_size": "8192"}


def test_its_pragmas_are_in_effect_on_a_real_connection(tmp_path: Path) -> None:
    here = PurePosixPath(tmp_path)
    launch = Launch(data_directory=here, work_directory=here, log_path=here / "log")
    with place_here(tmp_path) as place:
        instance = sqlite(pragmas={"journal_mode": "WAL", "page_size": 8192}).start(place, launch)
        statements = ["pragma journal_mode", "pragma page_size"]
        asked = Sql(endpoint=database(instance.endpoint), statements=["create table t (x)", *statements])
        assert place.native(SQL, asked).rows == [["8192"]], "the last statement's rows"
    assert (tmp_path / "database.sqlite3").read_bytes()[18] == 2, "byte 18 of the file says WAL (sqlite.org/fileformat)"
