"""PostgreSQL's life without a server: what it is given, what is read back, and its own words when it fails."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest
from support.facts import facts_of
from support.machines.places import place_in_memory, spawned

from fairtrial.errors import PlaceError, SystemStartError
from fairtrial.protocol import generated as wire
from fairtrial.systems import Certificate, Instance, Launch, postgres_options
from fairtrial.systems.postgres import Postgres, PostgresParameters
from fairtrial.systems.server import PORTS
from fairtrial.wire.fake import FakeProgram, FakeTransport

LAUNCH = Launch(
    data_directory=PurePosixPath("/w/data"),
    work_directory=PurePosixPath("/w/server"),
    log_path=PurePosixPath("/w/out/log/server.log"),
    environment={"LD_PRELOAD": "lib.so"},
    processors=(0, 1),
)


def postgres(base_directory: str | None = None, **options: Any) -> Postgres:
    return Postgres(PostgresParameters.model_validate({"base_directory": base_directory, "options": options}))


def server(
    *, settings: dict[str, tuple[str, str | None]] | None = None, exits: bool = False, found: str = "postgres"
) -> Callable[[wire.Spawn], FakeProgram]:
    """A place with a PostgreSQL whose settings, with their units, are given."""

    def there(wanted: str) -> bool:
        return wanted.endswith(found) or (found == "postgres" and wanted == "/opt/pg/bin/initdb")

    def run(spawn: wire.Spawn) -> FakeProgram:
        wanted = spawn.argv[-1]
        rows = [[name, value, unit] for name, (value, unit) in (settings or {}).items()]
        answers = {
            "sh": FakeProgram(stdout=[wanted if "/" in wanted else f"/bin/{wanted}"])
            if there(wanted)
            else FakeProgram(code=127),
            "server": FakeProgram(code=1) if exits else FakeProgram(code=None),
            "grep": FakeProgram(code=1 if exits else 0),
            "tail": FakeProgram(
                stdout=["FATAL:  could not map anonymous shared memory", "database system is shut down"]
            ),
            "sql": FakeProgram(stdout=[json.dumps({"columns": [], "rows": rows})]),
            "readlink": FakeProgram(stdout=["/opt/pg/bin/postgres"]),
        }
        return answers.get(spawn.name, FakeProgram(stdout=["postgres (PostgreSQL) 15.18"]))

    return run


def configuration(fake: FakeTransport) -> list[str]:
    return fake.files["/w/server/postgresql.conf"].decode().splitlines()


def statements(fake: FakeTransport) -> list[str]:
    return [
        statement
        for request in fake.requests
        if isinstance(request, wire.Spawn) and request.name == "sql"
        for statement in json.loads(request.stdin or "{}")["statements"]
    ]


def test_the_server_sees_one_file_with_every_option_once_and_nobody_else_reaches_it() -> None:
    asked = postgres(synchronous_commit=False, shared_buffers="128MB", autovacuum="off")
    effective = {
        "synchronous_commit": ("off", None),
        "shared_buffers": ("16384", "8kB"),
        "autovacuum": ("off", None),
        "deadlock_timeout": ("1000", "ms"),
    }
    with place_in_memory(server(settings=effective)) as (place, fake):
        instance = asked.start(place, LAUNCH)
        lines = configuration(fake)
        started = spawned(fake, "server")
        access = {path: fake.files[f"/w/server/{path}"] for path in ("pg_hba.conf", "pg_ident.conf")}
        removed = spawned(fake, "rm")
    assert {"data_directory = '/w/data'", "unix_socket_directories = '/w/server'", "listen_addresses = ''"} <= set(
        lines
    )
    assert {"synchronous_commit = 'off'", "shared_buffers = '128MB'", "autovacuum = 'off'"} <= set(lines)
    names = [line.partition(" ")[0] for line in lines]
    assert len(names) == len(set(names))
    assert access == {"pg_hba.conf": b"local all fairtrial trust\n", "pg_ident.conf": b""}
    assert removed.argv[-1] == "/w/data/postgresql.auto.conf", "what ALTER SYSTEM left"
    assert started.argv == ["/bin/postgres", "-D", "/w/data", "-c", "config_file=/w/server/postgresql.conf"]
    assert started.processors == [0, 1]
    assert started.environment == {"LD_PRELOAD": "lib.so"}
    assert instance.options == {
        "synchronous_commit": "off",
        "shared_buffers": "16384 8kB",
        "autovacuum": "off",
        "deadlock_timeout": "1000 ms",
    }
    assert not instance.is_one_process, "its connections are processes"
    assert isinstance(instance.endpoint, wire.PostgresEndpoint)
    assert instance.endpoint.socket_directory == "/w/server"


def test_what_makes_loading_fast_never_reaches_a_trial() -> None:
    asked = postgres(wal_segment_size="64MB", autovacuum=True)
    loading = asked.for_loading(facts_of(memory_bytes=64 << 30)).parameters.options
    assert (loading["shared_buffers"], loading["maintenance_work_mem"]) == ("512MB", "256MB")
    small = asked.for_loading(facts_of(memory_bytes=512 << 20)).parameters.options
    assert (small["shared_buffers"], small["maintenance_work_mem"]) == ("128MB", "64MB")
    assert loading["autovacuum"] == "off", "the load vacuums once, at its end"
    assert loading["wal_segment_size"] == "64MB"
    effective = {"wal_segment_size": ("67108864", "B"), "autovacuum": ("on", None)}
    with place_in_memory(server(settings=effective)) as (place, fake):
        asked.start(place, LAUNCH)
        names = {line.partition(" ")[0] for line in configuration(fake)}
    assert not names & (set(loading) - set(asked.parameters.options))
    assert "wal_segment_size" not in names, "fixed in the data, and no line of a file"


def test_options_that_shape_what_is_loaded_are_in_effect_then_and_told_apart_by() -> None:
    asked = postgres(default_statistics_target=1000, default_toast_compression="lz4", work_mem="8MB")
    shaping = {"default_statistics_target": "1000", "default_toast_compression": "lz4"}
    assert asked.initial() == shaping
    assert shaping.items() <= asked.for_loading(facts_of(memory_bytes=8 << 30)).parameters.options.items()
    assert postgres_options.creating(asked.parameters.options, version="postgres (PostgreSQL) 18.0") == []
    effective = {"default_statistics_target": ("1000", None), "default_toast_compression": ("lz4", None)}
    with place_in_memory(server(settings=effective | {"work_mem": ("8192", "kB")})) as (place, fake):
        asked.start(place, LAUNCH)
        assert "default_statistics_target = '1000'" in configuration(fake)


def test_names_are_compared_whatever_their_case() -> None:
    with place_in_memory(server(settings={"TimeZone": ("UTC", None), "DateStyle": ("ISO, MDY", None)})) as (place, _):
        instance = postgres(TimeZone="UTC", DateStyle="ISO, MDY").start(place, LAUNCH)
    assert instance.options["TimeZone"] == "UTC"


def test_shared_buffers_without_a_unit_are_pages() -> None:
    assert postgres(shared_buffers=131_072).cache_bytes() == ("shared_buffers", 1 << 30)
    assert postgres(shared_buffers="128MB").cache_bytes() == ("shared_buffers", 128 << 20)


def test_a_server_that_ends_at_start_shows_its_own_last_lines() -> None:
    with (
        place_in_memory(server(exits=True)) as (place, _fake),
        pytest.raises(SystemStartError, match="exited during startup") as failed,
    ):
        postgres(shared_buffers="900GB").start(place, LAUNCH)
    assert "could not map anonymous shared memory" in str(failed.value)


def test_an_option_that_is_not_in_effect_stops_the_server_and_names_both_values() -> None:
    with place_in_memory(server(settings={"max_connections": ("100", None)})) as (place, fake):
        with pytest.raises(SystemStartError, match="max_connections: expected 10, the server reports 100"):
            postgres(max_connections=10).start(place, LAUNCH)
        sent = [request.signal for request in fake.requests if isinstance(request, wire.Signal)]
    assert sent[0] == signal.SIGINT, "SIGTERM would wait for every client"


def test_a_server_that_does_not_answer_queries_is_not_left_running() -> None:
    def mute(spawn: wire.Spawn) -> FakeProgram:
        return (
            FakeProgram(code=1, stderr=['{"error": "no answer", "hint": null}'])
            if spawn.name == "sql"
            else server()(spawn)
        )

    with place_in_memory(mute) as (place, fake):
        with pytest.raises(PlaceError, match="no answer"):
            postgres().start(place, LAUNCH)
        assert any(isinstance(request, wire.Signal) for request in fake.requests)


@pytest.mark.parametrize("settled", [True, False])
def test_it_writes_everything_back_only_where_its_data_are_kept(settled: bool) -> None:  # noqa: FBT001
    with place_in_memory(server()) as (place, fake):
        instance = postgres().start(place, LAUNCH)
        postgres().stop(place, instance, settled=settled)
        assert ("CHECKPOINT" in statements(fake)) == settled
        assert instance.process is not None
        assert instance.process.exited is not None
        postgres().stop(place, instance, settled=settled)  # one that has ended is left alone
    postgres().stop(place, Instance(endpoint=None, process=None), settled=settled)


def test_a_missing_server_is_told_with_where_it_was_looked_for() -> None:
    with place_in_memory(server(found="nothing")) as (place, _fake):
        with pytest.raises(PlaceError, match="looked for /opt/pg/bin/postgres"):
            postgres("/opt/pg").identity(place)
        with pytest.raises(PlaceError, match="looked for postgres"):
            postgres().identity(place)


def test_data_are_created_with_what_is_fixed_then_by_the_servers_user_and_the_initdb_beside_it() -> None:
    with place_in_memory(server()) as (place, fake):
        place.server_user = "postgres"
        postgres(data_checksums=True, max_connections=5).create(place, LAUNCH)
        created = [request for request in fake.requests if isinstance(request, wire.Spawn)][-1]
    assert created.argv[0] == "/opt/pg/bin/initdb"
    assert {"--pgdata=/w/data", "--data-checksums", "--locale=C", "--encoding=UTF8"} <= set(created.argv)
    assert not any("max_connections" in argument for argument in created.argv)
    assert created.user == "postgres"


def test_for_another_host_it_listens_on_one_address_and_asks_for_a_password_of_this_start() -> None:
    def run(spawn: wire.Spawn) -> FakeProgram:
        looks_for_port = spawn.name == "grep" and "/proc/net/tcp" in spawn.argv
        return FakeProgram(code=1) if looks_for_port else server()(spawn)

    with place_in_memory(run) as (place, fake):
        instance = postgres().start(place, replace(LAUNCH, addresses=("10.0.0.2",)))
        lines = configuration(fake)
        access = fake.files["/w/server/pg_hba.conf"].decode()
        said = statements(fake)
    assert {"listen_addresses = '10.0.0.2'", f"port = '{PORTS[0]}'"} <= set(lines)
    assert access == "local all fairtrial trust\nhost fairtrial fairtrial_load all scram-sha-256\n"
    assert isinstance(instance.remote, wire.PostgresEndpoint)
    assert (instance.remote.host, instance.remote.port) == ("10.0.0.2", PORTS[0])
    assert instance.remote.user == "fairtrial_load"
    assert f"ALTER ROLE fairtrial_load PASSWORD '{instance.remote.password}'" in said
    assert not any("SUPERUSER" in statement for statement in said)
    assert isinstance(instance.endpoint, wire.PostgresEndpoint)
    assert instance.endpoint.port == PORTS[0], "the socket's name holds it"


def test_with_a_certificate_it_refuses_connections_that_are_not_encrypted() -> None:
    def run(spawn: wire.Spawn) -> FakeProgram:
        looks_for_port = spawn.name == "grep" and "/proc/net/tcp" in spawn.argv
        return FakeProgram(code=1) if looks_for_port else server()(spawn)

    directory = PurePosixPath("/w/server/tls")
    own = Certificate(directory / "authorities.pem", directory / "server.pem", directory / "server.key")
    launch = replace(LAUNCH, addresses=("10.0.0.2", "10.1.0.2"), certificate=own)
    with place_in_memory(run) as (place, fake):
        postgres().start(place, launch)
        lines = configuration(fake)
        access = fake.files["/w/server/pg_hba.conf"].decode()
    assert access == "local all fairtrial trust\nhostssl fairtrial fairtrial_load all scram-sha-256\n"
    assert {
        "listen_addresses = '10.0.0.2,10.1.0.2'",
        "ssl = 'on'",
        "ssl_cert_file = '/w/server/tls/server.pem'",
        "ssl_key_file = '/w/server/tls/server.key'",
    } <= set(lines)
