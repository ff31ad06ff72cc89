"""The OLTP family's parameters and what reaches the load engine; the engine itself is a fake."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest
from pydantic import ValidationError
from support.driven import driven_of
from support.machines.places import place_in_memory, spawned

from fairtrial.protocol import generated as wire
from fairtrial.wire.fake import FakeProgram
from fairtrial.workloads import Drive
from fairtrial.workloads.engine import oltp
from fairtrial.workloads.engine.oltp import Oltp, OltpParameters

OUT = PurePosixPath("/w/out")
ENDPOINT = wire.SqliteEndpoint(path="/w/data/database.sqlite3", busy_timeout_ms=100)
RESULT = driven_of(transactions={"read_write": {"committed": 3}}).model_dump_json()
LOADED = {"content_sha256": "d" * 64, "rows": {"sbtest1": 500}}


def workload(**given: Any) -> Oltp:
    return Oltp(OltpParameters.model_validate({"duration": "5s", **given}))


def asked_to_drive(**given: Any) -> dict[str, Any]:
    with place_in_memory(lambda _spawn: FakeProgram(stdout=[RESULT])) as (place, fake):
        fake.files[str(OUT / "result.json")] = RESULT.encode()
        workload(**given).drive(
            place,
            Drive(
                endpoint=ENDPOINT,
                seed=99,
                directory=OUT,
                work_directory=PurePosixPath("/w/load"),
                environment={},
                processors=None,
                on_progress=lambda _line: None,
            ),
        )
        asked: dict[str, Any] = json.loads(spawned(fake, "oltp-drive").stdin or "")
    return asked


def asked_to_load(**given: Any) -> dict[str, Any]:
    with place_in_memory(lambda _spawn: FakeProgram(stdout=[json.dumps(LOADED)])) as (place, fake):
        found = workload(**given).load(place, ENDPOINT, on_progress=lambda _line: None)
        asked: dict[str, Any] = json.loads(spawned(fake, "oltp-load").stdin or "")
    assert (found.content_sha256, found.rows) == ("d" * 64, {"sbtest1": 500})
    return asked


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"profile": "readwrite"}, "read_write"),
        ({"tables": 0}, "tables"),
        ({"hot_draws_percent": 100}, "hot_draws_percent"),
        ({"range_size": 2**32}, "range_size"),
        ({"random_range_delta": 2**32}, "random_range_delta"),
        ({"retries": 2**32}, "retries"),
        ({"pareto_h": 1.0}, "pareto_h"),
        ({"distribution": "normal"}, "distribution"),
        ({"profile": "select_random_points", "tables": 2}, "`select_random_points` has one table"),
        ({"profile": "bulk_insert", "virtual_users": 2}, "as many `tables` as `virtual_users`"),
        ({"pipelining": True, "protocol": "text"}, "`pipelining` needs prepared statements"),
        ({"pipelining": True, "profile": "point_select"}, "`point_select` has a single statement"),
        ({"pipelining": True, "profile": "update_index"}, "`update_index` has a single statement"),
        ({"transactions": 5}, "exactly one of `duration` and `transactions`"),
        ({"warehouses": 1}, "warehouses"),
    ],
)
def test_values_that_mean_nothing_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        workload(**wrong)


def test_defaults_are_those_of_sysbench() -> None:
    asked = asked_to_drive()
    assert asked["distribution"] == {
        "kind": "special",
        "iterations": 12,
        "hot_percent": 1,
        "hot_draws_percent": 75,
    }
    assert asked["mix"] == {
        "point_selects": 10,
        "simple_ranges": 1,
        "sum_ranges": 1,
        "order_ranges": 1,
        "distinct_ranges": 1,
        "range_size": 100,
        "index_updates": 1,
        "non_index_updates": 1,
        "delete_inserts": 1,
        "random_points": 10,
        "random_ranges": 10,
        "random_range_delta": 5,
    }
    assert (asked["tables"], asked["table_size"]) == (1, 10_000)
    assert (asked["protocol"], asked["skip_transactions"]) == ("prepared", False)


def test_every_parameter_reaches_the_engine_with_the_trials_own_seed() -> None:
    asked = asked_to_drive(
        profile="read_only",
        tables=3,
        virtual_users=4,
        distribution="zipfian",
        zipfian_exponent=1.1,
        protocol="text",
        skip_transactions=True,
        order_ranges=0,
        ramp_up="250ms",
    )
    assert (asked["profile"], asked["tables"], asked["protocol"]) == ("read_only", 3, "text")
    assert asked["distribution"] == {"kind": "zipfian", "exponent": 1.1}
    assert asked["skip_transactions"] is True
    assert asked["mix"]["order_ranges"] == 0
    drive = asked["drive"]
    assert (drive["seed"], drive["virtual_users"], drive["ramp_up_s"]) == (99, 4, 0.25)
    assert (drive["endpoint"], drive["output_directory"]) == (ENDPOINT.model_dump(mode="json"), str(OUT))


def test_pipelining_is_off_unless_the_study_asks_for_it_where_there_are_statements_to_send_together() -> None:
    assert asked_to_drive()["pipelining"] is False
    for profile in oltp.SEVERAL_STATEMENTS:
        assert asked_to_drive(profile=profile, pipelining=True)["pipelining"] is True
    assert asked_to_drive(profile="update_non_index", non_index_updates=2, pipelining=True)["pipelining"] is True


@pytest.mark.parametrize(
    ("kind", "own"),
    [
        ("uniform", {}),
        ("gaussian", {"iterations": 3}),
        ("pareto", {"h": 0.3}),
    ],
)
def test_a_distribution_takes_its_own_parameters_along(kind: str, own: dict[str, float]) -> None:
    assert asked_to_drive(distribution=kind, iterations=3, pareto_h=0.3)["distribution"] == {"kind": kind, **own}


def test_what_a_drive_draws_does_not_change_the_data() -> None:
    """A factor over the distribution or the profile shares one set of prepared data."""
    plain = workload()
    drawn = workload(distribution="pareto", iterations=2, profile="point_select", virtual_users=9)
    assert plain.data() == drawn.data()
    assert plain.data() != workload(data_distribution="uniform").data()
    assert plain.data() != workload(profile="bulk_insert").data()
    assert asked_to_load(distribution="pareto", iterations=2) == asked_to_load()


def test_data_are_loaded_with_their_own_seed_and_distribution() -> None:
    asked = asked_to_load(tables=2, table_size=500, data_seed=5, load_threads=3, data_distribution="gaussian")
    assert asked == {
        "endpoint": ENDPOINT.model_dump(mode="json"),
        "layout": "rows",
        "tables": 2,
        "table_size": 500,
        "distribution": {"kind": "gaussian", "iterations": 12},
        "seed": 5,
        "threads": 3,
    }


def test_checks_follow_the_amount_of_data_and_bulk_inserts_leave_none() -> None:
    limit = oltp.CHECKED_EACH_TRIAL_ROWS
    assert workload(tables=10, table_size=limit // 10).checks_after() == "every_trial"
    assert workload(table_size=limit + 1).checks_after() == "once_per_cell"
    assert workload(profile="bulk_insert").checks_after() == "never"
    condition = {"clause": "rows", "statement": "as many rows", "violations": 1, "examples": ["sbtest1 row_count=9"]}
    with place_in_memory(lambda _spawn: FakeProgram(stdout=[json.dumps({"conditions": [condition]})])) as (place, fake):
        (found,) = workload(profile="delete").check_data(place, ENDPOINT)
        asked = json.loads(spawned(fake, "oltp-check").stdin or "")
    assert (found.name, found.violations, found.examples) == ("rows", 1, ["sbtest1 row_count=9"])
    assert asked["profile"] == "delete"


def test_time_and_disk_are_estimated_from_the_scale() -> None:
    assert workload(ramp_up="10s", duration="60s").duration_s() == 70.0
    by_count = workload(ramp_up="10s", duration=None, transactions=2000)
    assert by_count.duration_s() == 10.0 + 2000 / oltp.GUESSED_PER_S
    assert workload(tables=2, table_size=50).disk_bytes() == 100 * oltp.BYTES_PER_ROW
