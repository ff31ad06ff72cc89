"""What the load engine is asked to do, how long it may take, and which of its results do not count."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

import pytest
from support.driven import driven_of
from support.machines.places import place_in_memory, spawned

from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.wire.fake import FakeProgram, FakeTransport
from fairtrial.workloads import WORKLOADS, Drive, DriveOutcome
from fairtrial.workloads.engine import drive as native
from fairtrial.workloads.engine import file_scalars
from fairtrial.workloads.engine.oltp import Oltp, OltpParameters

OUT = PurePosixPath("/var/lib/fairtrial/work/x/out")
WORK = PurePosixPath("/var/lib/fairtrial/work/x/work")
ENDPOINT = wire.SqliteEndpoint(path="/d", busy_timeout_ms=5000)
OUTCOME = {"committed": 90, "rolled_back": 4, "failed": 6}


def result(**changes: Any) -> wire.Driven:
    return driven_of(**{"effective": {"isolation": "read"}, "transactions": {"a": OUTCOME}, **changes})


def parameters(**given: Any) -> OltpParameters:
    ending = {} if {"duration", "transactions", "arrivals"} & given.keys() else {"duration": "5s"}
    return OltpParameters.model_validate({**ending, **given})


def driven(asked: OltpParameters, found: wire.Driven, **changes: Any) -> tuple[DriveOutcome, FakeTransport]:
    drive = Drive(
        endpoint=ENDPOINT,
        seed=42,
        directory=OUT,
        work_directory=WORK,
        environment={"A": "b"},
        processors=changes.get("processors"),
        on_progress=changes.get("on_progress", lambda _line: None),
        share=changes.get("share"),
    )
    with place_in_memory(lambda _spawn: changes.get("ran", FakeProgram())) as (place, fake):
        fake.files[str(OUT / "result.json")] = found.model_dump_json().encode()
        return Oltp(asked).drive(place, drive), fake


def task_of(fake: FakeTransport) -> dict[str, Any]:
    task: dict[str, Any] = json.loads(spawned(fake, "oltp-drive").stdin or "")
    return task


def test_the_engine_is_told_everything_in_its_own_units() -> None:
    asked = parameters(
        virtual_users=7, ramp_up="1500ms", duration="90s", interval="250ms", retries=3, think_time="20ms"
    )
    _, fake = driven(asked, result())
    assert task_of(fake)["drive"] == {
        "endpoint": ENDPOINT.model_dump(mode="json"),
        "virtual_users": 7,
        "seed": 42,
        "ramp_up_s": 1.5,
        "ramp_up_transactions": None,
        "duration_s": 90.0,
        "transactions": None,
        "arrivals": {"kind": "closed", "think_s": 0.02, "spacing": "exponential"},
        "queue_timeout_s": None,
        "retries": 3,
        "interval_ms": 250,
        "output_directory": str(OUT),
        "fleet": None,
    }


def test_a_ramp_up_of_transactions_has_no_time() -> None:
    _, fake = driven(parameters(ramp_up_transactions=40, transactions=77), result())
    asked = task_of(fake)["drive"]
    assert (asked["ramp_up_s"], asked["ramp_up_transactions"], asked["transactions"]) == (0.0, 40, 77)


def test_an_open_loop_offers_its_rate_and_a_count_ends_a_window() -> None:
    _, fake = driven(parameters(rate="30/min", spacing="constant", queue_timeout="2s", transactions=77), result())
    asked = task_of(fake)["drive"]
    assert asked["arrivals"] == {"kind": "open", "rate_per_s": 0.5, "spacing": "constant"}
    assert (asked["queue_timeout_s"], asked["transactions"], asked["duration_s"]) == (2.0, 77, None)


@pytest.mark.parametrize("processors", [None, (2, 3)])
def test_it_runs_where_and_with_what_the_trial_says(processors: tuple[int, ...] | None) -> None:
    _, fake = driven(parameters(), result(), processors=processors)
    asked = spawned(fake, "oltp-drive")
    assert asked.argv == ["fairtrial-agent", "oltp-drive"]
    assert asked.environment == {"A": "b"}
    assert asked.processors == (None if processors is None else [2, 3])


def test_window_and_options_are_those_it_wrote_and_progress_is_passed_on() -> None:
    heard: list[Any] = []
    line = '{"progress":"measuring","time_ns":5}'
    found, _ = driven(parameters(), result(), ran=FakeProgram(stdout=[line]), on_progress=heard.append)
    assert (found.window.start_ns, found.window.end_ns) == (10, 20)
    assert found.effective == {"isolation": "read"}
    assert found.invalid_reason == ""
    assert heard == [wire.MeasuringProgress(time_ns=5)]


def test_an_engine_that_fails_says_why_in_its_own_words() -> None:
    said = json.dumps({"error": "no such table", "hint": "load first"})
    with pytest.raises(PlaceError, match="oltp-drive: no such table") as failed:
        driven(parameters(), result(), ran=FakeProgram(code=1, stderr=["noise", said]))
    assert failed.value.hint == "load first"


def test_one_that_hangs_is_given_its_window_and_some_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []

    def note(_agent: Any, _subcommand: Any, _task: Any, *, timeout_s: float, **_: Any) -> None:
        limits.append(timeout_s)

    monkeypatch.setattr("fairtrial.wire.open_place.run_native", note)
    driven(parameters(ramp_up="10s", duration="20s"), result())
    driven(parameters(ramp_up="10s", transactions=5), result())
    driven(parameters(ramp_up_transactions=1000, duration="8h"), result())
    driven(parameters(ramp_up="0s", transactions=5_000_000, expected_rate="100/s"), result())
    assert limits == [10 + 20 + native.DRIVE_GRACE_S, native.TRANSACTIONS_LIMIT_S, 3 * (8 * 3600 + 1000), 3 * 50_000]


def test_a_window_by_count_is_guessed_and_one_by_time_is_known() -> None:
    assert native.duration_s(parameters(ramp_up="3s", duration="20s"), guessed_per_s=100) == 23
    assert native.duration_s(parameters(ramp_up="3s", transactions=500), guessed_per_s=100) == 3 + 5
    counted = {"ramp_up_transactions": 200, "transactions": 500}
    assert native.duration_s(parameters(**counted), guessed_per_s=100) == 2 + 5
    assert native.duration_s(parameters(**counted, expected_rate="10/s"), guessed_per_s=100) == 20 + 50


def test_only_workloads_of_the_engine_have_all_of_its_parameters_and_those_that_warm_up_announce_their_window() -> None:
    assert {name for name, kind in WORKLOADS.items() if kind.is_native} == {"oltp", "script", "tpcc"}
    fields = native.DriveParameters.model_fields.keys()
    assert all((fields <= kind.model.model_fields.keys()) == kind.is_native for kind in WORKLOADS.values())
    warming = {"ramp_up", "warm_up_accesses"}
    assert all(bool(warming & kind.model.model_fields.keys()) == kind.announces for kind in WORKLOADS.values())


def lost(count: int, *, kind: str = "connection") -> dict[str, Any]:
    return {"transaction": "a", "code": "2013", "kind": kind, "message": "gone away", "count": count}


@pytest.mark.parametrize(("limit", "count", "valid"), [(0, 1, False), (3, 3, True), (3, 4, False)])
def test_connections_may_be_lost_up_to_the_limit(*, limit: int, count: int, valid: bool) -> None:
    reason = native.why_invalid(result(errors=[lost(count)]), parameters(lost_connections_limit=limit))
    assert (reason == "") == valid
    if not valid:
        allowed = f", {limit} allowed" if limit else ""
        assert reason == (
            f"{count} connections to the server were lost or refused{allowed} ({count} times 2013: gone away)"
        )


def test_errors_of_other_kinds_are_no_lost_connections() -> None:
    assert native.why_invalid(result(errors=[lost(99, kind="deadlock")]), parameters()) == ""


def test_connections_lost_for_several_reasons_are_added_up_and_the_commonest_is_told() -> None:
    errors = [lost(1), {**lost(2), "code": "1040", "message": "too many"}, lost(50, kind="deadlock")]
    reason = native.why_invalid(result(errors=errors), parameters(lost_connections_limit=2))
    assert reason.startswith("3 connections to the server were lost or refused, 2 allowed (50 times")


@pytest.mark.parametrize(("share", "valid"), [(0.06, True), (0.0599, False), (1.0, True), (0.0, False)])
def test_failures_are_a_share_of_all_that_ended_up_to_the_limit(*, share: float, valid: bool) -> None:
    """6 of 100: those rolled back by rule have ended as well."""
    reason = native.why_invalid(result(), parameters(failed_share_limit=share))
    assert (reason == "") == valid
    assert valid or reason == f"6 of 100 transactions failed, more than a share of {share:g}"


def test_shares_are_of_all_clients_together_and_a_connection_is_lost_by_one() -> None:
    asked = parameters(failed_share_limit=0.05, virtual_users=4)
    share = wire.FleetShare(client=1, clients=2, users=4, user_numbers=[2, 3], start_path="/w/start")
    assert driven(asked, result())[0].invalid_reason.startswith("6 of 100 transactions failed")
    assert driven(asked, result(), share=share)[0].invalid_reason == ""
    lossy = driven(asked, result(errors=[lost(2)]), share=share)[0]
    assert lossy.invalid_reason.startswith("2 connections to the server were lost")


def test_a_window_without_a_commit_measured_nothing_whatever_the_study_allows() -> None:
    nothing = {"committed": 0, "rolled_back": 5, "failed": 5}
    reason = native.why_invalid(result(transactions={"a": nothing, "b": nothing}), parameters())
    assert reason == "no transaction committed inside the measurement window"
    one = {**nothing, "committed": 1}
    assert native.why_invalid(result(transactions={"a": nothing, "b": one}), parameters()) == ""
    assert "no transaction committed" in native.why_invalid(result(transactions={}), parameters())


def test_conditions_are_told_as_the_engine_checked_them() -> None:
    condition = wire.Condition(clause="3.3.2.1", statement="equal sums", violations=2, examples=["w 1"])
    (check,) = native.checks(wire.Checked(conditions=[condition]))
    assert (check.name, check.statement, check.violations, check.examples) == (
        *("3.3.2.1", "equal sums", 2),
        ["w 1"],
    )
    assert native.checks(wire.Checked(conditions=[])) == []


def test_a_result_that_was_not_written_is_an_error_that_names_it() -> None:
    with place_in_memory() as (place, _fake):
        drive = Drive(
            endpoint=ENDPOINT,
            seed=1,
            directory=OUT,
            work_directory=WORK,
            environment={},
            processors=None,
            on_progress=lambda _line: None,
        )
        with pytest.raises(PlaceError, match=r"result\.json does not exist"):
            Oltp(parameters()).drive(place, drive)


def test_a_file_that_another_version_left_is_told() -> None:
    with place_in_memory() as (place, _fake):
        place.agent.put(str(OUT / "counters.json"), b"[{}]")
        with pytest.raises(PlaceError, match=r"counters\.json is not what this version reads") as refused:
            native.left(place, OUT / "counters.json", file_scalars.Edges)
    assert "same version" in refused.value.hint
