"""TPC-C's parameters, what reaches the load engine, and when a drive cannot count; the engine itself is a fake."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest
from pydantic import ValidationError
from support.driven import driven_of
from support.machines.places import place_in_memory, spawned

from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.protocol.progress import ProgressLine
from fairtrial.wire.fake import FakeProgram
from fairtrial.workloads import Drive
from fairtrial.workloads.engine import tpcc
from fairtrial.workloads.engine.tpcc import Tpcc, TpccParameters

OUT = PurePosixPath("/w/out")
ENDPOINT = wire.SqliteEndpoint(path="/w/data/database.sqlite3", busy_timeout_ms=100)
EFFECTIVE = {"journal_mode": "wal"}
RESULT = driven_of(effective=EFFECTIVE, transactions={"new_order": {"committed": 3}, "payment": {}})


def workload(**given: Any) -> Tpcc:
    return Tpcc(TpccParameters.model_validate(given))


@pytest.mark.parametrize("end", [{}, {"duration": "5s", "transactions": 100}])
def test_one_thing_and_only_one_ends_the_window(end: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="exactly one of `duration` and `transactions`"):
        TpccParameters.model_validate(end)


@pytest.mark.parametrize(
    "wrong",
    [
        {"warehouses": 0},
        {"virtual_users": 0},
        {"duration": "0s"},
        {"ramp_up": "-1s"},
        {"interval": "1ms"},
        {"retries": -1},
        {"warehouse": 1},
        {"pipelining": True},  # of `oltp` and `script` only
    ],
)
def test_values_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TpccParameters.model_validate({"duration": "5s", **wrong})


def test_time_and_disk_are_estimated_from_the_scale() -> None:
    assert workload(ramp_up="10s", duration="60s").duration_s() == 70.0
    by_count = workload(ramp_up="10s", transactions=2000)
    assert by_count.duration_s() == 10.0 + 2000 / tpcc.GUESSED_PER_S
    assert workload(warehouses=16, duration="5s").disk_bytes() == 16 * tpcc.BYTES_PER_WAREHOUSE


def drive(given: Tpcc, *, result: wire.Driven = RESULT, ran: FakeProgram | None = None, **more: Any) -> Any:
    """Drives on a fake engine; returns what was driven, what the engine was asked, and the progress heard."""
    heard: list[ProgressLine] = []
    lines = ['{"progress":"rate","per_s":7,"errors":0}', result.model_dump_json()]
    with place_in_memory(lambda _spawn: ran or FakeProgram(stdout=lines)) as (place, fake):
        fake.files[str(OUT / "result.json")] = result.model_dump_json().encode()
        driven = given.drive(
            place,
            Drive(
                endpoint=ENDPOINT,
                seed=99,
                directory=OUT,
                work_directory=PurePosixPath("/w/load"),
                environment={"MALLOC_ARENA_MAX": "1"},
                processors=(3,),
                on_progress=heard.append,
                **more,
            ),
        )
        return driven, spawned(fake, "tpcc-drive"), heard


def test_every_parameter_reaches_the_engine_with_the_trials_own_seed() -> None:
    given = workload(
        warehouses=2,
        virtual_users=7,
        ramp_up="500ms",
        transactions=300,
        think_time_scale=0.5,
        all_warehouses=False,
        procedures=True,
        retries=4,
        interval="250ms",
        data_seed=5,
    )
    driven, asked, heard = drive(given)
    assert json.loads(asked.stdin) == {
        "drive": {
            "endpoint": ENDPOINT.model_dump(mode="json"),
            "virtual_users": 7,
            "seed": 99,
            "ramp_up_s": 0.5,
            "ramp_up_transactions": None,
            "duration_s": None,
            "transactions": 300,
            "arrivals": {"kind": "closed", "think_s": 0.0, "spacing": "exponential"},
            "queue_timeout_s": None,
            "retries": 4,
            "interval_ms": 250,
            "output_directory": str(OUT),
            "fleet": None,
        },
        "warehouses": 2,
        "load_seed": 5,
        "think_time_scale": 0.5,
        "procedures": True,
        "all_warehouses": False,
    }
    assert asked.environment == {"MALLOC_ARENA_MAX": "1"}
    assert asked.processors == [3]
    assert (driven.window.start_ns, driven.window.end_ns) == (10, 20)
    assert driven.effective == {"journal_mode": "wal"}
    assert driven.invalid_reason == ""
    assert heard == [wire.RateProgress(per_s=7, errors=0)]


def error(kind: str, count: int) -> dict[str, Any]:
    return {"transaction": "payment", "kind": kind, "code": f"{kind} code", "message": "why", "count": count}


def reason(*, errors: list[dict[str, Any]] = [], outcomes: dict[str, int] | None = None, **rule: Any) -> str:  # noqa: B006 - never changed
    ended = {"committed": 90, "failed": 10, **(outcomes or {})}
    result = driven_of(errors=errors, transactions={"payment": ended})
    return drive(workload(duration="5s", **rule), result=result)[0].invalid_reason


def test_a_lost_connection_makes_the_trial_invalid_and_the_commonest_error_is_named() -> None:
    errors = [error("connection", 2), error("deadlock", 9), error("connection", 1)]
    assert reason(errors=errors) == "3 connections to the server were lost or refused (9 times deadlock code: why)"


def test_a_study_says_how_many_connections_a_valid_trial_may_lose() -> None:
    errors = [error("connection", 3)]
    assert reason(errors=errors, lost_connections_limit=3) == ""
    assert "3 connections to the server were lost or refused, 2 allowed" in reason(
        errors=errors, lost_connections_limit=2
    )


def test_a_study_says_which_share_of_a_valid_trials_transactions_may_fail() -> None:
    assert reason() == reason(failed_share_limit=0.1) == ""
    errors = [error("disk_full", 10)]
    said = reason(errors=errors, failed_share_limit=0.09)
    assert said == "10 of 100 transactions failed, more than a share of 0.09 (10 times disk_full code: why)"


def test_deadlocks_are_part_of_the_load_and_a_window_without_a_commit_is_not() -> None:
    assert reason(errors=[error("deadlock", 9)]) == ""
    assert reason(outcomes={"committed": 0, "failed": 0}) == "no transaction committed inside the measurement window"
    lost = reason(outcomes={"committed": 0}, lost_connections_limit=99, errors=[error("connection", 4)])
    assert lost.startswith("no transaction committed inside the measurement window (4 times connection code")


def test_an_engine_that_fails_says_so_in_its_own_words() -> None:
    failing = FakeProgram(code=1, stderr=['{"error": "no such table: warehouse", "hint": "load first"}'])
    with pytest.raises(PlaceError, match="tpcc-drive: no such table: warehouse") as failed:
        drive(workload(duration="5s"), ran=failing)
    assert failed.value.hint == "load first"


def test_data_are_loaded_with_their_own_seed_and_known_by_their_content() -> None:
    loaded = {"content_sha256": "d" * 64, "rows": {"warehouse": 2}}
    with place_in_memory(lambda _spawn: FakeProgram(stdout=[json.dumps(loaded)])) as (place, fake):
        given = workload(warehouses=2, data_seed=5, load_threads=3, duration="5s")
        found = given.load(place, ENDPOINT, on_progress=lambda _line: None)
        asked = json.loads(spawned(fake, "tpcc-load").stdin or "")
    assert (found.content_sha256, found.rows) == ("d" * 64, {"warehouse": 2})
    assert asked == {"endpoint": ENDPOINT.model_dump(mode="json"), "warehouses": 2, "seed": 5, "threads": 3}


def test_small_scales_are_checked_after_every_trial_large_ones_once_per_cell() -> None:
    limit = tpcc.CHECKED_EACH_TRIAL_WAREHOUSES
    assert workload(warehouses=limit, duration="5s").checks_after() == "every_trial"
    assert workload(warehouses=limit + 1, duration="5s").checks_after() == "once_per_cell"


def test_a_check_tells_each_condition_with_its_violations() -> None:
    condition = {"clause": "3.3.2.1", "statement": "W_YTD = sum(D_YTD)", "violations": 1, "examples": ["W_ID 1"]}
    with place_in_memory(lambda _spawn: FakeProgram(stdout=[json.dumps({"conditions": [condition]})])) as (
        place,
        _fake,
    ):
        (found,) = workload(duration="5s").check_data(place, ENDPOINT)
    assert (found.name, found.violations, found.examples) == ("3.3.2.1", 1, ["W_ID 1"])


@pytest.mark.parametrize(
    ("warehouses", "users", "clients"), [(5, 50, 2), (7, 3, 3), (3, 31, 3), (100, 16, 4), (4, 4, 1)]
)
def test_clients_have_home_warehouses_of_their_own_and_together_all_terminals(
    warehouses: int, users: int, clients: int
) -> None:
    subject = workload(warehouses=warehouses, virtual_users=users, duration="1s", all_warehouses=False)
    divided = subject.divided(clients)
    assert sorted(user for own in divided for user in own) == list(range(users))
    homes = [sorted({user % warehouses for user in own}) for own in divided]
    assert [home for own in homes for home in own] == list(range(min(warehouses, users))), "consecutive, nobody's twice"
    assert len(homes[0]) - len(homes[-1]) in (0, 1), "what is left over goes to the first ones"
    assert all(homes)


def test_where_each_transaction_draws_its_home_users_are_divided_evenly() -> None:
    subject = workload(warehouses=1, virtual_users=5, duration="1s")
    assert subject.divided(2) == [[0, 1, 2], [3, 4]]
    assert subject.undividable(5) == ""
    assert "6 clients need a virtual user each, and there are 5" in subject.undividable(6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"duration": "1s", "warehouses": 1, "all_warehouses": False}, "2 clients need a home warehouse each"),
        ({"transactions": 5}, "share one window"),
        ({"duration": "1s", "ramp_up_transactions": 5}, "share one window"),
        ({"arrivals": {"search": {"objective": {"p50": "10ms"}, "from": 100, "to": 200}}}, "a search has one client"),
    ],
)
def test_what_clients_cannot_share_is_told(given: dict[str, Any], said: str) -> None:
    assert said in workload(virtual_users=8, **given).undividable(2)


def test_a_client_is_asked_for_its_own_users_and_told_of_all() -> None:
    share = wire.FleetShare(client=1, clients=2, users=5, user_numbers=[3, 4], start_path="/w/start")
    started: list[Any] = []
    _, asked, _ = drive(workload(virtual_users=5, duration="1s"), share=share, on_start=started.append)
    request = json.loads(asked.stdin)["drive"]
    assert (request["virtual_users"], request["fleet"]) == (2, share.model_dump())
    assert [process.name for process in started] == ["tpcc-drive"]
