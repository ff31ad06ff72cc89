"""Closed and open loops: what a study may say of them, and which metrics that gives."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from fairtrial import metrics
from fairtrial.workloads import WORKLOADS, oltp, tpcc

MODELS = {"tpcc": tpcc.TpccParameters, "oltp": oltp.OltpParameters}
LOOPS = pytest.mark.parametrize("workload", MODELS)


def parameters(workload: str, **given: Any) -> Any:
    return MODELS[workload].model_validate({"duration": "5s", **given})


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
    ],
)
def test_loops_that_mean_nothing_are_refused(workload: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        parameters(workload, **wrong)


def test_tpccs_own_waits_and_a_rate_exclude_each_other() -> None:
    with pytest.raises(ValidationError, match="leave `think_time_scale` out"):
        parameters("tpcc", rate=100, think_time_scale=1)


@LOOPS
def test_only_an_open_loop_has_lateness_and_a_queue(workload: str) -> None:
    kind = WORKLOADS[workload].KIND
    closed, opened = kind.metrics(parameters(workload)), kind.metrics(parameters(workload, rate=50.5))
    assert set(opened) - set(closed) == set(metrics.arrivals.DEFINITIONS)
    assert {"lateness_ns_p99", "queue_length_max"} <= set(opened)
