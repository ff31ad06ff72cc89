"""pgbench's command line says what the study says, and no password."""

from __future__ import annotations

from pathlib import PurePosixPath

from support.pgbench import MIX, SCRIPTS
from support.pgbench import parameters as asked

from fairtrial.protocol.generated import PostgresEndpoint
from fairtrial.workloads.pgbench import arguments
from fairtrial.workloads.tool import Life

LOG = PurePosixPath("/work/log/transactions")


def test_loading_is_told_what_makes_the_data_and_nothing_of_the_run() -> None:
    given = asked(scale=3, data={"partitions": 4, "foreign-keys": True, "unlogged-tables": False}, clients=9)
    assert arguments.initialize(given) == ["--initialize", "--quiet", "--scale=3", "--partitions=4", "--foreign-keys"]


def test_ones_own_data_are_made_by_psql_until_the_first_error() -> None:
    file = {"name": "make.sql", "text": "CREATE TABLE t (i int)"}
    argv = arguments.make(asked(file=SCRIPTS["pay"], init=file), file=PurePosixPath("/w/init/make.sql"))
    assert argv == ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=make.sql"]
    told = arguments.make(asked(scale=2, init=file), file=PurePosixPath("/w/init/make.sql"))
    assert "--set=scale=2" in told


def test_a_run_is_told_all_of_it() -> None:
    given = asked(clients=8, jobs=2, protocol="prepared", rate=1234.5678901, latency_limit="2.5ms", max_tries=4)
    assert set(arguments.run(given, Life(5.0, None, seed=11, log=LOG))) == {
        "--builtin=tpcb-like@1",
        "--no-vacuum",
        "--failures-detailed",
        "--time=5",
        "--client=8",
        "--jobs=2",
        "--protocol=prepared",
        "--max-tries=4",
        "--random-seed=11",
        "--progress=1000000",
        "--rate=1234.5678901",
        "--latency-limit=2.5",
        "--log",
        "--log-prefix=/work/log/transactions",
    }


def test_scripts_are_numbered_in_their_order_with_their_weights() -> None:
    argv = arguments.run(asked(mix=MIX, define={"rows": 7}), Life(None, 30, seed=1))
    assert argv[:4] == ["--file=pay.sql@2", "--file=dead.sql@1", "--builtin=select-only@3", "--define=rows=7"]
    assert "--transactions=30" in argv
    assert not [each for each in argv if each.startswith(("--time", "--log", "--scale"))]


def test_scripts_of_ones_own_know_the_scale_of_pgbenchs_tables() -> None:
    assert "--scale=6" in arguments.run(asked(file=SCRIPTS["pay"], scale=6), Life(5.0, None, seed=1))
    without = asked(file=SCRIPTS["pay"], init={"name": "make.sql", "text": "x"})
    assert not [each for each in arguments.run(without, Life(5.0, None, seed=1)) if each.startswith("--scale")]


def test_flags_are_options_without_a_value() -> None:
    argv = arguments.run(asked(options={"connect": True, "verbose-errors": False}), Life(5.0, None, seed=1))
    assert "--connect" in argv
    assert not [each for each in argv if "verbose" in each]


def test_where_the_server_is_stands_in_the_environment_and_a_password_in_a_file() -> None:
    endpoint = PostgresEndpoint(host="h", port=5433, user="u", password="a:b\\c", database="d")
    found = arguments.environment(endpoint, passwords=PurePosixPath("/w/pgpass"))
    assert found == {
        "PGHOST": "h",
        "PGPORT": "5433",
        "PGUSER": "u",
        "PGDATABASE": "d",
        "PGPASSFILE": "/w/pgpass",
        "LC_ALL": "C",
    }
    assert arguments.password_file(endpoint) == "*:*:*:*:a\\:b\\\\c\n"
    local = PostgresEndpoint(socket_directory="/run", port=5432, user="u", database="d")
    assert arguments.environment(local, passwords=PurePosixPath("/w/pgpass"))["PGHOST"] == "/run"
    assert arguments.password_file(local) == ""


def test_other_servers_of_the_agents_environment_are_forgotten() -> None:
    argv = arguments.clean(["pgbench"])
    assert argv[0] == "env"
    assert argv[-1] == "pgbench"
    assert {"PGSERVICE", "PGHOSTADDR", "PGPASSWORD"} < set(argv)
