"""Closed and open loops: what a study may say of them, and which metrics that gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.driven import driven_of

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError
from fairtrial.protocol import generated as wire
from fairtrial.workloads.engine import arrival_scalars
from fairtrial.workloads.engine import drive as native
from fairtrial.workloads.engine.oltp import Oltp
from fairtrial.workloads.engine.tpcc import Tpcc

KINDS = {"tpcc": Tpcc, "oltp": Oltp}
STEPS = {"steps": [{"rate": 5, "length": "1s"}]}
LOOPS = pytest.mark.parametrize("workload", KINDS)


def parameters(workload: str, **given: Any) -> Any:
    return KINDS[workload].model.model_validate({"duration": "5s", **given})


@LOOPS
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rate": 0}, "rate"),
        ({"rate": -5}, "rate"),
        ({"rate": 1e9}, "rate"),
        ({"think_time": "-1s"}, "think_time"),
        ({"spacing": "poisson"}, "spacing"),
        ({"rate": 100, "think_time": "1s"}, "leave `think_time` out"),
        ({"arrivals": STEPS, "think_time": "1s"}, "leave `think_time` out"),
        ({"arrivals": STEPS, "rate": 100}, "leave one out"),
        ({"queue_timeout": "1s"}, "`queue_timeout` needs a `rate`"),
        ({"queue_timeout": "0s", "rate": 5}, "queue_timeout"),
        ({"ramp_up_transactions": 0}, "ramp_up_transactions"),
        ({"ramp_up_transactions": 5, "ramp_up": "1s"}, "leave one out"),
    ],
)
def test_loops_that_mean_nothing_are_refused(workload: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        parameters(workload, **wrong)


@pytest.mark.parametrize(
    ("workload", "problem"),
    [
        ("{tpcc: {warehuoses: 2, duration: 1s}}", "19: workload.tpcc.warehuoses: unknown key"),
        ("{oltp: {profil: read_only, duration: 1s}}", "19: workload.oltp.profil: unknown key"),
        ("{oltp: {duration: 1s, virtual_user: 2}}", "33: workload.oltp.virtual_user: unknown key"),
        ("{tpcc: {duration: 1s, rate: 0}}", "39: workload.tpcc.rate: expected a value greater than 0"),
        ("{oltp: {duration: 1s, rate: -5/s}}", "39: workload.oltp.rate: expected a rate such as"),
    ],
)
def test_an_option_that_there_is_not_or_cannot_be_is_named_at_its_line_and_column(
    tmp_path: Path, workload: str, problem: str
) -> None:
    (tmp_path / "study.yaml").write_text(
        f"study: s\nsystem: {{sqlite: {{}}}}\nworkload: {workload}\narm: a\n"
        "factors: {a: {b: {}, c: {system: {sqlite: {pragmas: {synchronous: OFF}}}}}}\n"
        "metrics: {primary: throughput_tpm}\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError) as raised:
        study.load(tmp_path / "study.yaml", catalogue=catalogue())
    said = [str(each) for each in raised.value.problems]
    assert any(each.startswith(f"{tmp_path}/study.yaml:3:{problem}") for each in said), said
    assert "unknown" not in problem or any("did you mean" in each for each in said)


@pytest.mark.parametrize("loop", [{"rate": 100}, {"arrivals": STEPS}])
def test_tpccs_own_waits_and_a_rate_exclude_each_other(loop: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="leave `think_time_scale` out"):
        parameters("tpcc", think_time_scale=1, **loop)


@LOOPS
def test_only_an_open_loop_has_lateness_and_a_queue(workload: str) -> None:
    kind = KINDS[workload]
    closed, opened = kind(parameters(workload)).metrics(), kind(parameters(workload, rate=50.5)).metrics()
    assert set(opened) - set(closed) == set(arrival_scalars.DEFINITIONS)
    assert {"lateness_ns_p99", "queue_length_max"} <= set(opened)


@LOOPS
def test_only_a_queue_that_is_left_has_a_share_of_the_timed_out(workload: str) -> None:
    patient, left = (
        KINDS[workload](parameters(workload, arrivals=STEPS, **limit)).metrics()
        for limit in ({}, {"queue_timeout": "1s"})
    )
    assert set(left) - set(patient) == {"timed_out_share"}


def test_a_search_whose_bound_lies_outside_or_whose_server_went_away_does_not_count() -> None:
    asked = wire.Search(
        percentile="p99",
        limit_s=0.01,
        lowest_per_s=10,
        highest_per_s=50,
        precision=0.5,
        window_s=1,
        settle_s=0,
        spacing="constant",
    )
    probe = wire.Probe(
        directory="probes/01",
        rate_per_s=10,
        window=wire.Window(start_ns=1, end_ns=2),
        offered=5,
        done=5,
        waiting=0,
        timed_out=0,
        connections_lost=0,
        met=True,
    )

    def why(met_per_s: float | None, missed_per_s: float, *, lost: int = 0, limit: int = 0) -> str:
        probes = [probe, probe.model_copy(update={"connections_lost": lost})]
        searched = wire.Searched(
            asked=asked, met_per_s=met_per_s, missed_per_s=missed_per_s, complete=True, probes=probes
        )
        result = driven_of(transactions={"point_select": {"committed": 5}}, search=searched)
        return native.why_invalid(result, parameters("tpcc", lost_connections_limit=limit))

    assert "not even the lowest rate of the search, 10/s" in why(None, 10)
    assert why(20, 25) == ""
    assert why(20, 25, lost=2) == "2 connections to the server were lost or refused"
    assert why(20, 25, lost=2, limit=2) == ""
