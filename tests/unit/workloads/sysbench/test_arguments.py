"""sysbench's command line says what the study says, and no password."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest

from fairtrial.errors import PlaceError
from fairtrial.protocol.endpoints import Server
from fairtrial.protocol.generated import MysqlEndpoint, PostgresEndpoint
from fairtrial.workloads.sysbench import arguments
from fairtrial.workloads.sysbench.parameters import SysbenchParameters
from fairtrial.workloads.tool import Life

CONFIGURATION = PurePosixPath("/work/sysbench.cnf")


def parameters(**given: Any) -> SysbenchParameters:
    return SysbenchParameters.model_validate({"script": "oltp_insert", "duration": "5s", **given})


def test_loading_is_told_what_makes_the_data_and_nothing_of_the_run() -> None:
    given = parameters(data={"tables": 4}, options={"range-size": 7}, threads=9, load_threads=2, data_seed=5)
    assert arguments.prepare(given, script="oltp_insert", configuration=CONFIGURATION) == [
        "--config-file=/work/sysbench.cnf",
        "oltp_insert",
        "--tables=4",
        "--threads=2",
        "prepare",
    ]


def test_bulk_insert_has_a_table_for_each_thread_of_the_run() -> None:
    given = parameters(script="bulk_insert", threads=9)
    assert "--threads=9" in arguments.prepare(given, script="bulk_insert", configuration=CONFIGURATION)


def test_a_run_is_told_all_of_it() -> None:
    given = parameters(data={"tables": 4}, options={"range-size": 7}, threads=9, interval="2s")
    argv = arguments.run(given, Life(5.0, None, seed=11), script="/w/observing.lua", configuration=CONFIGURATION)
    assert argv[:2] == ["--config-file=/work/sysbench.cnf", "/w/observing.lua"]
    assert argv[-1] == "run"
    assert set(argv[2:-1]) == {
        "--tables=4",
        "--range-size=7",
        "--threads=9",
        "--time=5",
        "--events=0",
        "--rand-seed=11",
        "--report-interval=2",
        "--histogram=on",
    }


def test_a_life_by_count_has_no_time_limit_of_sysbenchs() -> None:
    argv = arguments.run(parameters(), Life(None, 300, seed=1), script="s", configuration=CONFIGURATION)
    assert {"--time=0", "--events=300"} < set(argv)


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        (
            MysqlEndpoint(socket="/s", user="root", database="d"),
            ["db-driver=mysql", "mysql-socket=/s", "mysql-user=root", "mysql-db=d"],
        ),
        (
            MysqlEndpoint(host="h", port=3307, user="u", password="key", database="d"),
            [
                "db-driver=mysql",
                "mysql-host=h",
                "mysql-port=3307",
                "mysql-user=u",
                "mysql-password=key",
                "mysql-db=d",
            ],
        ),
        (
            PostgresEndpoint(socket_directory="/run", port=5433, user="u", database="d"),
            ["db-driver=pgsql", "pgsql-host=/run", "pgsql-port=5433", "pgsql-user=u", "pgsql-db=d"],
        ),
    ],
)
def test_where_the_server_is_stands_in_a_file(endpoint: Server, expected: list[str]) -> None:
    assert arguments.connection(endpoint).splitlines() == expected


@pytest.mark.parametrize(
    ("password", "written"),
    [
        ("a=b#c'd\"e", "a=b#c'd\"e"),
        ("two words", '"two words"'),
        ('"quoted"', "'\"quoted\"'"),
        ("#first", '"#first"'),
        ("it's two", '"it\'s two"'),
    ],
)
def test_a_password_is_written_as_sysbench_reads_it(password: str, written: str) -> None:
    endpoint = MysqlEndpoint(host="h", port=1, user="u", password=password, database="d")
    assert f"mysql-password={written}\n" in arguments.connection(endpoint)


def test_a_password_that_no_file_of_sysbenchs_can_hold_is_refused_and_not_shown() -> None:
    endpoint = MysqlEndpoint(host="h", port=1, user="u", password="both ' and \"", database="d")
    with pytest.raises(PlaceError, match="does not accept this password as `mysql-password`"):
        arguments.connection(endpoint)


def test_seeds_differ_by_trial_and_part_and_are_numbers_that_sysbench_takes() -> None:
    seeds = [arguments.seed_of(trial, part) for trial in range(200) for part in ("window", "ramp-up")]
    assert len(set(seeds)) == len(seeds)
    assert all(1 <= seed <= 2**31 - 1 for seed in seeds)
    assert arguments.seed_of(3, "window") == arguments.seed_of(3, "window")
