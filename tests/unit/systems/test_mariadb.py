"""MariaDB's life without a server: what it is given, what is read back, and its own words when it fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

import pytest
from support.places import place_in_memory, spawned

from fairtrial.errors import PlaceError, SystemStartError
from fairtrial.systems import Instance, Launch, mariadb
from fairtrial.wire import generated as wire
from fairtrial.wire.fake import FakeTransport, Ran

LAUNCH = Launch(
    data_directory=PurePosixPath("/w/data"),
    work_directory=PurePosixPath("/w/server"),
    log_path=PurePosixPath("/w/out/log/server.log"),
    environment={"LD_PRELOAD": "lib.so"},
    processors=(0, 1),
)


def parameters(**options: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = mariadb.MariadbParameters.model_validate({"options": options}).model_dump(mode="json")
    return dumped


def server(
    *, variables: dict[str, str] | None = None, exits: bool = False, found: str = "mariadbd"
) -> Callable[[wire.Spawn], Ran]:
    """A place with a MariaDB whose variables are given."""

    def run(spawn: wire.Spawn) -> Ran:
        match spawn.name:
            case "sh":
                wanted = spawn.argv[-1]
                return Ran(stdout=[f"/bin/{wanted}"]) if wanted.endswith(found) else Ran(code=127)
            case "server":
                return Ran(code=1) if exits else Ran(code=None)
            case "test":
                return Ran(code=1 if exits else 0)
            case "tail":
                return Ran(stdout=["[ERROR] unknown variable 'colour=green'", "[ERROR] Aborting"])
            case "sql":
                rows = [[name, value] for name, value in (variables or {}).items()]
                return Ran(stdout=[json.dumps({"rows": rows})])
            case _:
                return Ran(stdout=["mariadbd  Ver 10.11"])

    return run


def configuration(fake: FakeTransport) -> list[str]:
    return fake.files["/w/server/server.cnf"].decode().splitlines()


def test_the_server_sees_one_file_with_every_option_once() -> None:
    asked = parameters(innodb_doublewrite=False, innodb_buffer_pool_size="128M", innodb_buffer_pool_load_at_startup=1)
    effective = {
        "innodb_doublewrite": "OFF",
        "innodb_buffer_pool_size": "134217728",
        "innodb_buffer_pool_load_at_startup": "ON",
    }
    with place_in_memory(server(variables=effective)) as (place, fake):
        instance = mariadb.start(place, asked, LAUNCH)
        lines = configuration(fake)
        started = spawned(fake, "server")
    assert lines[0] == "[mariadbd]"
    assert {"datadir=/w/data", "socket=/w/server/mysqld.sock", "skip-networking", "tmpdir=/w/server"} <= set(lines)
    assert {"innodb_doublewrite=OFF", "innodb_buffer_pool_size=128M"} <= set(lines)
    names = [line.partition("=")[0] for line in lines]
    assert len(names) == len(set(names))
    assert "innodb_buffer_pool_load_at_startup=1" in lines, "the study's word goes before ours"
    assert "innodb_buffer_pool_dump_at_shutdown=0" in lines, "no state goes from trial to trial unasked"
    assert started.argv == ["/bin/mariadbd", "--defaults-file=/w/server/server.cnf"]
    assert started.processors == [0, 1]
    assert started.environment == {"LD_PRELOAD": "lib.so"}
    assert instance.options == effective


def test_what_makes_loading_fast_never_reaches_a_trial() -> None:
    asked = parameters(innodb_page_size="8k", innodb_flush_log_at_trx_commit=1)
    loading = mariadb.for_loading(asked)["options"]
    assert loading["innodb_flush_log_at_trx_commit"] == 0, "no arm's own option is used to load"
    assert loading["innodb_page_size"] == "8k"
    assert asked["options"] == {"innodb_page_size": "8k", "innodb_flush_log_at_trx_commit": 1}
    effective = {"innodb_page_size": "8192", "innodb_flush_log_at_trx_commit": "1"}
    with place_in_memory(server(variables=effective)) as (place, fake):
        mariadb.start(place, asked, LAUNCH)
        names = {line.partition("=")[0] for line in configuration(fake)}
    assert not names & (set(mariadb.LOADING_OPTIONS) - set(asked["options"]))


def test_a_server_that_ends_at_start_shows_its_own_last_lines() -> None:
    with (
        place_in_memory(server(exits=True)) as (place, _fake),
        pytest.raises(SystemStartError, match="exited at start") as failed,
    ):
        mariadb.start(place, parameters(colour="green"), LAUNCH)
    assert "unknown variable 'colour=green'" in str(failed.value)


def test_an_option_that_is_not_in_effect_stops_the_server_and_names_both_values() -> None:
    with place_in_memory(server(variables={"max_connections": "10"})) as (place, fake):
        with pytest.raises(SystemStartError, match="max_connections: asked 1, the server says 10"):
            mariadb.start(place, parameters(max_connections=1), LAUNCH)
        assert any(isinstance(request, wire.Signal) for request in fake.requests)


def test_a_server_that_does_not_answer_queries_is_not_left_running() -> None:
    def mute(spawn: wire.Spawn) -> Ran:
        return Ran(code=1, stderr=['{"error": "no answer", "hint": null}']) if spawn.name == "sql" else server()(spawn)

    with place_in_memory(mute) as (place, fake):
        with pytest.raises(PlaceError, match="no answer"):
            mariadb.start(place, parameters(), LAUNCH)
        assert any(isinstance(request, wire.Signal) for request in fake.requests)


@pytest.mark.parametrize("settled", [True, False])
def test_it_purges_everything_only_where_its_data_are_kept(settled: bool) -> None:  # noqa: FBT001
    with place_in_memory(server()) as (place, fake):
        instance = mariadb.start(place, parameters(), LAUNCH)
        mariadb.stop(place, instance, settled=settled)
        statements = [
            statement
            for request in fake.requests
            if isinstance(request, wire.Spawn) and request.name == "sql"
            for statement in json.loads(request.stdin or "{}")["statements"]
        ]
        assert ("SET GLOBAL innodb_fast_shutdown = 0" in statements) == settled
        assert instance.process is not None
        assert instance.process.exited is not None
        mariadb.stop(place, instance, settled=settled)  # one that has ended is left alone
    mariadb.stop(place, Instance(endpoint=None, process=None), settled=settled)


def test_a_missing_server_is_told_with_where_it_was_looked_for() -> None:
    given = {**parameters(), "base_directory": "/opt/mariadb"}
    with place_in_memory(server(found="nothing")) as (place, _fake):
        with pytest.raises(PlaceError, match="/opt/mariadb/bin/mariadbd, /opt/mariadb/sbin/mariadbd"):
            mariadb.identity(place, given)
        with pytest.raises(PlaceError, match="looked for mariadbd, /usr/sbin/mariadbd"):
            mariadb.identity(place, parameters())


def test_data_are_created_with_what_is_fixed_then_and_by_the_servers_user() -> None:
    with place_in_memory(server(found="mariadb-install-db")) as (place, fake):
        place.server_user = "mysql"
        mariadb.create(place, parameters(innodb_page_size="8k", max_connections=5), LAUNCH)
        asked = spawned(fake, "mariadb-install-db")
    needed = {"--no-defaults", "--datadir=/w/data", "--tmpdir=/w/server", "--innodb_page_size=8k"}
    assert needed <= set(asked.argv)
    assert not any("max_connections" in argument for argument in asked.argv)
    assert asked.user == "mysql"
