"""MariaDB's life without a server: what it is given, what is read back, and its own words when it fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest
from support.facts import facts_of
from support.machines.places import place_in_memory, spawned

from fairtrial.errors import PlaceError, SystemStartError
from fairtrial.protocol import generated as wire
from fairtrial.systems import Certificate, Instance, Launch
from fairtrial.systems.mariadb import Mariadb, MariadbParameters
from fairtrial.systems.mysql import Mysql
from fairtrial.systems.mysqld import Mysqld
from fairtrial.systems.server import PORTS
from fairtrial.wire.fake import FakeProgram, FakeTransport

LAUNCH = Launch(
    data_directory=PurePosixPath("/w/data"),
    work_directory=PurePosixPath("/w/server"),
    log_path=PurePosixPath("/w/out/log/server.log"),
    environment={"LD_PRELOAD": "lib.so"},
    processors=(0, 1),
)


def mariadb(base_directory: str | None = None, **options: Any) -> Mariadb:
    return Mariadb(MariadbParameters.model_validate({"base_directory": base_directory, "options": options}))


def server(
    *, variables: dict[str, str] | None = None, exits: bool = False, found: str = "mariadbd"
) -> Callable[[wire.Spawn], FakeProgram]:
    """A place with a MariaDB whose variables are given."""

    def run(spawn: wire.Spawn) -> FakeProgram:
        match spawn.name:
            case "sh":
                wanted = spawn.argv[-1]
                return FakeProgram(stdout=[f"/bin/{wanted}"]) if wanted.endswith(found) else FakeProgram(code=127)
            case "server":
                return FakeProgram(code=1) if exits else FakeProgram(code=None)
            case "test":
                return FakeProgram(code=1 if exits else 0)
            case "tail":
                return FakeProgram(stdout=["[ERROR] unknown variable 'colour=green'", "[ERROR] Aborting"])
            case "sql":
                rows = [[name, value] for name, value in (variables or {}).items()]
                return FakeProgram(stdout=[json.dumps({"columns": [], "rows": rows})])
            case _:
                return FakeProgram(stdout=["mariadbd  Ver 10.11"])

    return run


def configuration(fake: FakeTransport) -> list[str]:
    return fake.files["/w/server/server.cnf"].decode().splitlines()


def test_the_server_sees_one_file_with_every_option_once() -> None:
    asked = mariadb(innodb_doublewrite=False, innodb_buffer_pool_size="128M", innodb_buffer_pool_load_at_startup=1)
    effective = {
        "innodb_doublewrite": "OFF",
        "innodb_buffer_pool_size": "134217728",
        "innodb_buffer_pool_load_at_startup": "ON",
    }
    with place_in_memory(server(variables=effective)) as (place, fake):
        instance = asked.start(place, LAUNCH)
        lines = configuration(fake)
        started = spawned(fake, "server")
    assert lines[0] == "[mysqld]", "the group that servers before 10.4 read, too"
    assert {"datadir=/w/data", "socket=/w/server/mysqld.sock", "skip-networking", "tmpdir=/w/server"} <= set(lines)
    assert {"innodb_doublewrite=OFF", "innodb_buffer_pool_size=128M"} <= set(lines)
    names = [line.partition("=")[0] for line in lines]
    bare = [name.removeprefix("loose_") for name in names]
    assert len(bare) == len(set(bare))
    assert "innodb_buffer_pool_load_at_startup=1" in lines, "the study's word goes before ours"
    assert "loose_innodb_buffer_pool_dump_at_shutdown=0" in lines, "no state goes from trial to trial unasked"
    assert started.argv == ["/bin/mariadbd", "--defaults-file=/w/server/server.cnf"]
    assert started.processors == [0, 1]
    assert started.environment == {"LD_PRELOAD": "lib.so"}
    assert instance.options == effective


def test_what_makes_loading_fast_never_reaches_a_trial() -> None:
    asked = mariadb(innodb_page_size="8k", innodb_flush_log_at_trx_commit=1)
    loading = asked.for_loading(facts_of(memory_bytes=64 << 30)).parameters.options
    assert loading["innodb_buffer_pool_size"] == "1024M"
    small = asked.for_loading(facts_of(memory_bytes=512 << 20)).parameters.options
    assert small["innodb_buffer_pool_size"] == "128M", "a small guest must hold more than the cache"
    between = asked.for_loading(facts_of(memory_bytes=956 << 20)).parameters.options
    assert between["innodb_buffer_pool_size"] == "128M", "MySQL rounds up to whole chunks"
    smallest = asked.for_loading(facts_of(memory_bytes=288 << 20)).parameters.options
    assert smallest["innodb_buffer_pool_size"] == "72M", "a chunk shrinks with the pool"
    assert loading["innodb_flush_log_at_trx_commit"] == 0, "no arm's own option is used to load"
    assert loading["innodb_page_size"] == "8k"
    assert asked.parameters.options == {"innodb_page_size": "8k", "innodb_flush_log_at_trx_commit": 1}
    effective = {"innodb_page_size": "8192", "innodb_flush_log_at_trx_commit": "1"}
    with place_in_memory(server(variables=effective)) as (place, fake):
        asked.start(place, LAUNCH)
        names = {line.partition("=")[0] for line in configuration(fake)}
    assert not names & (set(loading) - set(asked.parameters.options))


def test_options_that_shape_tables_are_in_effect_while_they_are_loaded() -> None:
    given = {
        "innodb_file_per_table": False,
        "innodb_default_row_format": "compact",
        "innodb_compression_default": True,
        "innodb_compression_algorithm": "lz4",
        "plugin_load_add": "provider_lz4",
        "innodb_compression_level": "9",
        "innodb_fill_factor": "70",
        "innodb_stats_persistent_sample_pages": "64",
    }
    asked = mariadb(**given)
    shaping = {name: {False: "OFF", True: "ON"}.get(value, str(value)) for name, value in given.items()}
    assert asked.initial() == shaping
    assert shaping.items() <= asked.for_loading(facts_of(memory_bytes=8 << 30)).parameters.options.items()


@pytest.mark.parametrize("kind", [Mariadb, Mysql])
def test_an_engine_that_tables_are_made_with_is_in_effect_while_they_are_loaded_and_not_before(
    kind: type[Mysqld],
) -> None:
    """A server that is bootstrapped has no plugins, from one of which the engine may come."""
    given = {"default_storage_engine": "ROCKSDB", "plugin_load_add": "ha_rocksdb", "max_connections": 5}
    asked = kind(kind.model.model_validate({"options": given}))
    made_with = {"default_storage_engine": "ROCKSDB", "plugin_load_add": "ha_rocksdb"}
    assert (asked.creating(), asked.initial()) == ({}, made_with)
    assert made_with.items() <= asked.for_loading(facts_of(memory_bytes=8 << 30)).parameters.options.items()
    only_a_plugin = kind(kind.model.model_validate({"options": {"plugin_load_add": "ha_rocksdb"}}))
    assert only_a_plugin.initial() == {}, "it has nothing to do with tables"
    keyring = {
        "default_table_encryption": "ON",
        "early_plugin_load": "keyring_file.so",
        "keyring_file_data": "/keys/ring",
    }
    encrypted = kind(kind.model.model_validate({"options": keyring}))
    assert (encrypted.creating(), encrypted.initial()) == ({}, keyring), "tables are encrypted when they are made"
    del keyring["default_table_encryption"]
    assert kind(kind.model.model_validate({"options": keyring})).initial() == {}, "they have nothing to do with tables"


def test_plugins_are_read_back_by_what_the_server_has_loaded() -> None:
    def answer(spawn: wire.Spawn) -> FakeProgram:
        if spawn.name == "sql" and "PLUGIN_LIBRARY" in (spawn.stdin or ""):
            return FakeProgram(stdout=[json.dumps({"columns": [], "rows": [["ha_archive.so"]]})])
        return server(variables={"max_connections": "5"})(spawn)

    with place_in_memory(answer) as (place, _fake):
        instance = mariadb(plugin_load_add="ha_archive", max_connections=5).start(place, LAUNCH)
        assert instance.options == {"max_connections": "5", "plugin_load_add": "ha_archive.so"}
        with pytest.raises(
            SystemStartError, match=r"plugin_load: expected ha_spider, the server loaded ha_archive\.so"
        ):
            mariadb(plugin_load="ha_spider").start(place, LAUNCH)


def test_a_server_that_ends_at_start_shows_its_own_last_lines() -> None:
    with (
        place_in_memory(server(exits=True)) as (place, _fake),
        pytest.raises(SystemStartError, match="exited during startup") as failed,
    ):
        mariadb(colour="green").start(place, LAUNCH)
    assert "unknown variable 'colour=green'" in str(failed.value)


def test_an_option_that_is_not_in_effect_stops_the_server_and_names_both_values() -> None:
    with place_in_memory(server(variables={"max_connections": "10"})) as (place, fake):
        with pytest.raises(SystemStartError, match="max_connections: expected 1, the server reports 10"):
            mariadb(max_connections=1).start(place, LAUNCH)
        assert any(isinstance(request, wire.Signal) for request in fake.requests)


def test_a_server_that_does_not_answer_queries_is_not_left_running() -> None:
    def mute(spawn: wire.Spawn) -> FakeProgram:
        return (
            FakeProgram(code=1, stderr=['{"error": "no answer", "hint": null}'])
            if spawn.name == "sql"
            else server()(spawn)
        )

    with place_in_memory(mute) as (place, fake):
        with pytest.raises(PlaceError, match="no answer"):
            mariadb().start(place, LAUNCH)
        assert any(isinstance(request, wire.Signal) for request in fake.requests)


@pytest.mark.parametrize("settled", [True, False])
def test_it_purges_everything_only_where_its_data_are_kept(settled: bool) -> None:  # noqa: FBT001
    with place_in_memory(server()) as (place, fake):
        instance = mariadb().start(place, LAUNCH)
        mariadb().stop(place, instance, settled=settled)
        statements = [
            statement
            for request in fake.requests
            if isinstance(request, wire.Spawn) and request.name == "sql"
            for statement in json.loads(request.stdin or "{}")["statements"]
        ]
        assert ("SET GLOBAL innodb_fast_shutdown = 0" in statements) == settled
        assert instance.process is not None
        assert instance.process.exited is not None
        mariadb().stop(place, instance, settled=settled)  # one that has ended is left alone
    mariadb().stop(place, Instance(endpoint=None, process=None), settled=settled)


def test_a_missing_server_is_told_with_where_it_was_looked_for() -> None:
    with place_in_memory(server(found="nothing")) as (place, _fake):
        with pytest.raises(PlaceError, match="/opt/mariadb/bin/mariadbd, /opt/mariadb/sbin/mariadbd"):
            mariadb("/opt/mariadb").identity(place)
        with pytest.raises(PlaceError, match="looked for mariadbd, mysqld, /usr/sbin/mariadbd, /usr/sbin/mysqld"):
            mariadb().identity(place)


def test_data_are_created_from_the_servers_own_scripts_with_what_is_fixed_then_and_by_the_servers_user() -> None:
    def run(spawn: wire.Spawn) -> FakeProgram:
        if spawn.name != "sh" or spawn.argv[2].startswith("command -v"):
            return server()(spawn)
        return FakeProgram(stdout=["/usr/share/mysql/mysql"] if "system_tables" in spawn.argv[2] else [])

    with place_in_memory(run) as (place, fake):
        place.server_user = "mysql"
        mariadb(innodb_page_size="8k", max_connections=5).create(place, LAUNCH)
        asked = [each for each in fake.requests if isinstance(each, wire.Spawn)]
    joined, fed = asked[-2:]
    assert joined.argv[4:] == [
        "/w/server/bootstrap.sql",
        "/w/server/bootstrap-begin.sql",
        "/usr/share/mysql/mysql_system_tables.sql",
        "/usr/share/mysql/mysql_performance_tables.sql",
        "/usr/share/mysql/mysql_system_tables_data.sql",
        "/usr/share/mysql/mysql_sys_schema.sql",
        "/w/server/bootstrap-end.sql",
    ]
    assert fake.files["/w/server/bootstrap-begin.sql"].startswith(b"CREATE DATABASE IF NOT EXISTS mysql;\nUSE mysql;\n")
    needed = {"--no-defaults", "--bootstrap", "--datadir=/w/data", "--tmpdir=/w/server", "--innodb_page_size=8k"}
    assert needed <= set(fed.argv)
    assert fed.argv[4] == "/w/server/bootstrap.sql"
    assert not any("max_connections" in argument for argument in fed.argv)
    assert joined.user == fed.user == "mysql", "root writes through no link that the server's user left there"


def test_an_installation_without_its_scripts_cannot_make_data_and_says_so() -> None:
    with (
        place_in_memory(server()) as (place, _),
        pytest.raises(PlaceError, match=r"/opt/mariadb/share has no …_system_tables\.sql"),
    ):
        mariadb("/opt/mariadb").create(place, LAUNCH)


def test_a_mysql_is_no_mariadb() -> None:
    def run(spawn: wire.Spawn) -> FakeProgram:
        return (
            FakeProgram(stdout=["mysqld  Ver 8.0.33 for Linux"]) if spawn.argv[-1] == "--version" else server()(spawn)
        )

    with (
        place_in_memory(run) as (place, _),
        pytest.raises(PlaceError, match=r"expected mariadb, but .* reports .*8\.0\.33"),
    ):
        mariadb().identity(place)


def test_for_another_host_it_listens_on_one_address_with_a_user_of_this_start_only() -> None:
    away = replace(LAUNCH, addresses=("10.0.0.2",))
    taken: list[str] = []

    def first_port_taken(spawn: wire.Spawn) -> FakeProgram:
        if spawn.name != "grep":
            return server(variables={"version": "10.11.5-MariaDB"})(spawn)
        taken.append(spawn.argv[2])
        return FakeProgram(code=0 if len(taken) == 1 else 1)

    with place_in_memory(first_port_taken) as (place, fake):
        one = mariadb().start(place, away)
        lines, first = configuration(fake), fake.files["/w/server/init.sql"].decode().splitlines()
        said = [
            json.loads(request.stdin or "{}")["statements"]
            for request in fake.requests
            if isinstance(request, wire.Spawn) and request.name == "sql"
        ]
        two = mariadb().start(place, away)
    port = PORTS[1]
    assert taken[:2] == [f":{PORTS[0]:04X} ", f":{port:04X} "], "as /proc/net/tcp writes them"
    assert {"bind-address=10.0.0.2", f"port={port}"} <= set(lines)
    assert lines[-2:] == ["skip-name-resolve", "init-file=/w/server/init.sql"], "no option of a study goes before these"
    assert first == ["DELETE FROM mysql.user WHERE User = 'root' AND Host <> 'localhost';", "FLUSH PRIVILEGES;"]
    assert "skip-networking" not in lines
    assert isinstance(one.remote, wire.MysqlEndpoint)
    assert isinstance(two.remote, wire.MysqlEndpoint)
    assert (one.remote.host, one.remote.port, one.remote.user) == ("10.0.0.2", port, "fairtrial")
    assert one.remote.password != two.remote.password
    assert len(one.remote.password) >= 32
    assert any(one.remote.password in statement for statements in said for statement in statements)
    assert isinstance(one.endpoint, wire.MysqlEndpoint)
    assert one.endpoint.socket, "what is not the load still comes over the socket"


def test_beside_its_load_it_has_no_network() -> None:
    with place_in_memory(server()) as (place, fake):
        instance = mariadb().start(place, LAUNCH)
        assert "skip-networking" in configuration(fake)
    assert instance.remote is None


def test_a_place_without_a_free_port_is_told() -> None:
    def all_taken(spawn: wire.Spawn) -> FakeProgram:
        return FakeProgram(code=0) if spawn.name == "grep" else server()(spawn)

    with place_in_memory(all_taken) as (place, _), pytest.raises(PlaceError, match="are in use"):
        mariadb().start(place, replace(LAUNCH, addresses=("10.0.0.2",)))


def test_several_addresses_and_a_certificate_reach_its_configuration() -> None:
    directory = PurePosixPath("/w/server/tls")
    own = Certificate(directory / "authorities.pem", directory / "server.pem", directory / "server.key")
    launch = replace(LAUNCH, addresses=("10.0.0.2", "10.1.0.2"), certificate=own)

    def run(spawn: wire.Spawn) -> FakeProgram:
        return FakeProgram(code=1) if spawn.name == "grep" else server(variables={"version": "10.11.5-MariaDB"})(spawn)

    with place_in_memory(run) as (place, fake):
        instance = mariadb().start(place, launch)
        lines = configuration(fake)
    assert "bind-address=10.0.0.2,10.1.0.2" in lines
    assert {"ssl-cert=/w/server/tls/server.pem", "ssl-key=/w/server/tls/server.key"} <= set(lines)
    assert lines[-1] == "require-secure-transport=ON", "no option of a study goes before it"
    assert isinstance(instance.remote, wire.MysqlEndpoint)
    assert instance.remote.host == "10.0.0.2"
