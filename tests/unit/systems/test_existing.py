"""Servers that are there already, without one: what a study may say of them, and the statements that it becomes."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import ValidationError

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError, PlaceError, SystemStartError
from fairtrial.protocol.generated import MysqlEndpoint, PostgresEndpoint, Rows, Sql, Tls
from fairtrial.systems.existing import ExistingMysqld, ExistingPostgres, MysqldAt, server
from fairtrial.systems.existing.mysqld import PersistingMysqld
from fairtrial.systems.existing.server import literal, recorded, without_secret
from fairtrial.systems.instance import Instance
from fairtrial.systems.mariadb import Mariadb, MariadbParameters
from fairtrial.systems.postgres import Postgres, PostgresParameters
from fairtrial.wire import Limits
from fairtrial.wire.open_place import OpenPlace

AT = {"socket_directory": "/run/pg", "user": "boss", "database": "bench"}


def postgres(at: dict[str, Any], **more: Any) -> ExistingPostgres:
    existing = Postgres(PostgresParameters.model_validate({"at": at, **more})).existing()
    assert existing is not None
    return existing


def mariadb(**options: Any) -> ExistingMysqld:
    at = {"socket": "/run/my.sock", "user": "boss", "database": "bench"}
    existing = Mariadb(MariadbParameters.model_validate({"at": at, "options": options})).existing()
    assert existing is not None
    return existing


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"at": {**AT, "host": "db1"}}, "either a host or a Unix socket"),
        ({"at": {"user": "boss", "database": "bench"}}, "either a host or a Unix socket"),
        ({"at": {"host": "db1", "user": "boss", "database": "bench"}}, "say how the connection to db1 is encrypted"),
        ({"at": {**AT, "tls": "require"}}, "a Unix socket is not encrypted"),
        ({"at": {**AT, "may_overwrite": "other"}}, "expected the database's name 'bench' again"),
        ({"at": {**AT, "database": 'x"; DROP DATABASE y'}}, "should match pattern"),
        ({"at": {**AT, "password": "plain"}}, r"as `password: \{env: NAME\}`"),
        ({"at": {**AT, "database": "postgres", "may_overwrite": "postgres"}}, "postgres is a database of the server"),
        ({"at": {**AT, "database": "MySQL", "may_overwrite": "MySQL"}}, "MySQL is a database of the server"),
        ({"at": AT, "version": "15"}, "version: the server that `at` names is there already"),
        ({"at": AT, "base_directory": "/opt/pg"}, "base_directory: the server"),
    ],
)
def test_what_contradicts_itself_is_refused(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        PostgresParameters.model_validate(parameters)


@pytest.mark.parametrize(
    "password", ["hunter2", ["hunter2"], 4711, {"env": "hunter-2"}, {"env": "hunter2\n"}, {"env": 4711}]
)
def test_a_password_in_the_study_is_refused_without_showing_it(tmp_path: Path, password: object) -> None:
    (tmp_path / "study.yaml").write_text(
        "study: secret\nworkload: {oltp: {duration: 1s}}\nmetrics: {primary: throughput_tps}\narm: a\n"
        "factors: {a: {one: {}, two: {workload: {oltp: {duration: 2s}}}}}\n"
        f"system: {{postgres: {{at: {json.dumps({**AT, 'password': password})}}}}}\n"
    )
    with pytest.raises(InputError) as raised:
        study.load(tmp_path / "study.yaml", catalogue=catalogue())
    (problem,) = raised.value.problems
    assert problem.field == "system.postgres.at.password"
    assert problem.message.startswith("expected the environment variable that holds it, as `password: {env: NAME}`")
    assert not any(secret in str(problem) for secret in ("hunter", "4711"))


@pytest.mark.parametrize("password", ["4711" * 9, "4711e999", "!!int hunter2"])
def test_a_password_that_is_a_number_of_no_use_is_not_shown_either(tmp_path: Path, password: str) -> None:
    (tmp_path / "study.yaml").write_text(f"system: {{postgres: {{at: {{host: h, password: {password}}}}}}}\n")
    with pytest.raises(InputError) as raised:
        study.load(tmp_path / "study.yaml", catalogue=catalogue())
    said = [str(problem) for problem in raised.value.problems]
    assert any("system.postgres.at.password: expected a" in each for each in said)
    assert not any(secret in each for each in said for secret in ("hunter", "4711"))


def test_a_server_that_is_not_stopped_has_no_slow_shutdown_and_is_no_template() -> None:
    at = {"socket": "/run/my.sock", "user": "boss", "database": "bench"}
    with pytest.raises(ValidationError, match="slow_shutdown"):
        MariadbParameters.model_validate({"at": at, "slow_shutdown": 3})
    with pytest.raises(ValidationError, match="restore"):
        MariadbParameters.model_validate({"at": {**at, "restore": "template"}})


def test_nothing_of_a_private_server_is_needed() -> None:
    system = Postgres(PostgresParameters.model_validate({"at": AT}))
    assert (system.has_data_directory(), system.disk_bytes(), system.has_server()) == (False, 0, True)
    assert Postgres(PostgresParameters()).existing() is None


@pytest.mark.parametrize(
    ("tls", "expected"),
    [
        ("disable", None),
        ("require", Tls(authorities=None)),
        ("verify-full", Tls(authorities="/etc/ssl/certs/ca-certificates.crt")),
    ],
)
def test_an_endpoint_has_the_password_and_the_encryption_of_its_study(
    tls: str, expected: Tls | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = {"host": "db1", "port": 5433, "user": "boss", "database": "bench", "password": {"env": "FT_WORD"}, "tls": tls}
    server = postgres(at)
    monkeypatch.delenv("FT_WORD", raising=False)
    with pytest.raises(PlaceError, match=r"FT_WORD, which system\.postgres.at\.password names, is not set"):
        server.endpoint()
    monkeypatch.setenv("FT_WORD", "secret")
    assert server.endpoint("postgres") == PostgresEndpoint(
        host="db1", port=5433, user="boss", password="secret", tls=expected, database="postgres"
    )
    assert server.at.is_remote
    assert "secret" not in repr(server.at)


def test_a_socket_and_a_loopback_are_the_places_own() -> None:
    assert not postgres(AT).at.is_remote
    for host in ("localhost", "127.0.0.9", "::1"):
        assert not postgres({"host": host, "user": "boss", "database": "bench"}).at.is_remote
    assert mariadb().endpoint() == MysqlEndpoint(socket="/run/my.sock", user="boss", database="bench")


def test_values_become_statements_that_cannot_end_early() -> None:
    server = postgres(AT)
    assert server.setting("work_mem", "64MB") == "ALTER SYSTEM SET work_mem = '64MB'"
    assert server.setting("jit", "off") == "ALTER SYSTEM SET jit = 'off'"
    assert server.setting("log_line_prefix", "it's\\") == "ALTER SYSTEM SET log_line_prefix = 'it''s\\'"
    other = mariadb()
    assert other.setting("innodb_buffer_pool_size", "128M") == "SET GLOBAL innodb_buffer_pool_size = 134217728"
    assert other.setting("long_query_time", 0.5) == "SET GLOBAL long_query_time = 0.5"
    assert other.setting("innodb_adaptive_hash_index", "ON") == "SET GLOBAL innodb_adaptive_hash_index = 'ON'"
    assert other.setting("ft_boolean_syntax", "a\\'") == "SET GLOBAL ft_boolean_syntax = X'615c27'"
    assert literal("o'clock") == "'o''clock'"


def test_what_outlasts_a_restart_of_mysql_is_an_entry_of_its_own_file() -> None:
    place = cast("OpenPlace", None)  # MySQL says it by itself
    at = MysqldAt(socket="/run/my.sock", user="boss", database="bench", restart="sh restart.sh")
    server = PersistingMysqld("mysql", at, {"innodb_flush_method": "O_DIRECT"})
    assert server.lasting
    assert server.setting("innodb_flush_method", "O_DIRECT") == "SET PERSIST_ONLY innodb_flush_method = 'O_DIRECT'"
    stored, effective = server.queries("innodb_flush_method")
    assert stored.endswith("FROM performance_schema.persisted_variables WHERE VARIABLE_NAME = 'innodb_flush_method'")
    assert effective == "SELECT @@GLOBAL.innodb_flush_method"
    name = "innodb_page_cleaners"
    assert server.restoring(place, name, None) == f"RESET PERSIST IF EXISTS {name}"
    assert server.restoring(place, name, "4") == f"SET PERSIST_ONLY {name} = 4"
    assert server.restart_after(place) == ["sh", "restart.sh"]


@pytest.mark.parametrize(
    ("persisted", "restart", "refusal"),
    [
        ({}, "sh restart.sh", "which no statement of this server changes: nothing was changed"),
        ({"persisted_globals_load": "OFF"}, "sh restart.sh", "which no statement of this server changes"),
        ({"persisted_globals_load": "ON"}, None, r"only when /run/my\.sock is restarted: nothing was changed"),
        ({"persisted_globals_load": "ON"}, "sh restart.sh", None),
    ],
)
def test_read_only_options_need_a_restart_and_a_server_that_keeps_their_values(
    persisted: dict[str, str], restart: str | None, refusal: str | None
) -> None:
    class Mysql8(ExistingMysqld):
        def ask(self, _place: OpenPlace, *statements: str, **_: Any) -> list[tuple[str | None, ...]]:
            if statements[0] == "SHOW GLOBAL VARIABLES":
                return [*persisted.items(), ("innodb_flush_method", "fsync")]
            raise PlaceError("sql: Variable 'innodb_flush_method' is a read only variable", hint="")

    place = cast("OpenPlace", None)
    at = MysqldAt(socket="/run/my.sock", user="boss", database="bench", restart=restart)
    server = Mysql8("mysql", at, {"innodb_flush_method": "O_DIRECT"})
    if refusal is None:
        server.require_settable(place)
        assert isinstance(server.setter(place), PersistingMysqld)
    else:
        with pytest.raises(PlaceError, match=refusal):
            server.require_settable(place)


@pytest.mark.parametrize(("folds", "refused"), [("0", False), ("1", True), ("2", True)])
def test_a_server_that_folds_case_has_the_database_under_another_spelling(*, folds: str, refused: bool) -> None:
    asked: list[str] = []

    class Mysql(ExistingMysqld):
        def ask(self, _place: OpenPlace, *statements: str, **_: Any) -> list[tuple[str | None, ...]]:
            asked.extend(statements)
            if statements[0] == "SHOW DATABASES":
                return [("mysql",), ("bench",)]
            if "TABLE_NAME <>" in statements[0]:
                return [("1",)]  # it has a table of somebody's
            return [(folds,)] if "lower_case_table_names" in statements[0] else []

    place = cast("OpenPlace", None)
    server = Mysql("mysql", MysqldAt(socket="/run/my.sock", user="boss", database="Bench"), {})
    if not refused:
        server.require_own(place)
        return
    with pytest.raises(PlaceError, match=r"the database Bench on .* is not one that fairtrial made"):
        server.require_own(place)
    assert "LOWER(TABLE_SCHEMA) = 'bench'" in asked[-1]


def test_what_takes_effect_late_is_noted_once_it_is_in_effect() -> None:
    """A buffer pool is resized in pieces, and the old size is read until it has ended."""
    name, before, after = "innodb_buffer_pool_size", "134217728", "268435456"
    kept: list[dict[str, Any]] = []
    values = iter((before, before, before, after))  # read, listed before the change, listed after it, and late

    def native(_command: object, request: Sql, **_: object) -> Rows:
        last = request.statements[-1]
        if last == "SHOW GLOBAL VARIABLES":
            rows = [[name, next(values, after)]]
        elif last.startswith(f"SELECT (SELECT @@GLOBAL.{name}"):
            rows = [[next(values, after)] * last.count("@@GLOBAL")]
        else:
            rows = [[]] if last == "SELECT " else []
        return Rows(columns=[], rows=rows)  # type: ignore[arg-type]

    agent = SimpleNamespace(change=lambda _: None, put=lambda _, text, **_mode: kept.append(json.loads(text)))
    place: Any = SimpleNamespace(native=native, agent=agent, state_directory=PurePosixPath("/state"), limits=Limits())
    at = MysqldAt(socket="/run/my.sock", user="boss", database="bench")
    ExistingMysqld("mysql", at, {name: "256M"}).set_options(place)
    assert [file["options"][0]["original"] for file in kept] == [before] * len(kept)
    assert [file["options"][0]["set"] for file in kept] == [None, after]


@pytest.mark.parametrize("looks", [1, 2])
def test_a_look_that_takes_longer_than_the_limit_is_not_the_last(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    def native(_command: object, _request: Sql, **_: object) -> Rows:
        clock.append(clock[-1] + Limits().start_s + 1)
        return Rows(columns=[], rows=[["innodb_io_capacity", "900" if len(clock) > looks + 1 else "200"]])  # type: ignore[arg-type]

    place: Any = SimpleNamespace(native=native, limits=Limits())
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: clock[-1], sleep=lambda _: None))
    if looks == 1:
        mariadb(innodb_io_capacity=900)._await_effect(place)
        return
    with pytest.raises(SystemStartError, match="innodb_io_capacity: expected 900, the server reports 200"):
        mariadb(innodb_io_capacity=900)._await_effect(place)


def test_what_another_arm_sets_may_not_be_changed_meanwhile_either() -> None:
    rows = [["innodb_io_capacity", "900"], ["innodb_lru_scan_depth", "1"]]
    place: Any = SimpleNamespace(native=lambda *_, **__: Rows(columns=[], rows=rows))  # type: ignore[arg-type]
    began = Instance(endpoint=None, process=None, options={"innodb_io_capacity": "200", "innodb_lru_scan_depth": "1"})
    assert mariadb().changed(place, began, ()) == []
    watched = {"innodb_io_capacity", "innodb_lru_scan_depth"}
    assert mariadb().changed(place, began, watched) == ["innodb_io_capacity"]


def test_options_that_may_hold_a_secret_are_not_recorded() -> None:
    shown = {"work_mem": "4096", "password_encryption": "scram"}
    hidden = {
        "primary_conninfo": "password=x",
        "ssl_passphrase_command": "cat /secret",
        "wsrep_sst_auth": "root:x",
        "restore_command": "scp key",
        "report_password": "x",
    }
    assert recorded({**shown, **hidden}) == {"work_mem": "4096"}


def test_a_value_that_may_be_a_secret_is_not_shown_where_it_is_not_in_effect() -> None:
    shown = "work_mem: expected 8MB, the server reports 4096 kB"
    assert without_secret(shown) == shown
    assert without_secret("restore_command: expected get key, the server reports ") == (
        "restore_command: another value than expected"
    )
