"""Doubts about latencies of those transactions alone that succeeded."""

from __future__ import annotations

import pytest
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.models import Doubt
from fairtrial.metrics import latency
from fairtrial.study.resolved import Section


def raised(*metrics: str, **shares: float) -> list[Doubt]:
    """Of ten blocks in which arm b leaves out these shares of its transactions and is faster for it."""
    case = Case({"kernel": ["a", "b"]}, blocks=10, roles={"primary": list(metrics)})
    known = case.plan().metrics
    definitions = {**known.definitions, **latency.definitions(["order"])}
    plan = case.plan().model_copy(update={"metrics": known.model_copy(update={"definitions": definitions})})
    trials = case.trials(
        **{name: lambda levels, block: (9 if levels["kernel"] == "a" else 4) + block for name in metrics}
    )
    given = [
        each.model_copy(update={"scalars": each.scalars | shares}) if each.trial.arm == "b" else each for each in trials
    ]
    return [doubt for doubt in analyse(plan, given).doubts if doubt.code == "partly_failed"]


def test_an_arm_whose_slow_transactions_fail_has_no_p99_of_all_of_them() -> None:
    (doubt,) = raised("latency_ns_p50", "latency_ns_p99", failed_share=0.3)
    assert doubt.message == (
        "in 10 of 20 used trials transactions failed or were skipped, which have no latency (mean shares: 0 of a, 0.3 "
        "of b; at most 0.3); that exceeds the share beyond latency_ns_p99, which therefore does not cover all of them"
    )
    assert "read latency together with `failed_share`, or" in doubt.advice


@pytest.mark.parametrize(("failed", "skipped", "share"), [(0.004, 0.0, "0.004"), (0.5, 0.5, "0.75"), (0.0, 0.2, "0.2")])
def test_what_was_skipped_never_ended(failed: float, skipped: float, share: str) -> None:
    (doubt,) = raised("latency_ns_p99", failed_share=failed, skipped_share=skipped)
    assert f"{share} of b; at most {share})" in doubt.message
    assert ("latency_ns_p99" in doubt.message) == (failed + skipped > 0.01)
    assert ("skipped_share" in doubt.advice) == (skipped > 0)


def test_nothing_more_is_said_of_a_mean_or_of_one_type_and_nothing_where_no_latency_is_judged() -> None:
    (doubt,) = raised("latency_ns_mean", "order_latency_ns_p99", failed_share=0.3)
    assert "percentile" not in doubt.message
    assert raised("tpm", failed_share=0.3) == []
    assert raised("latency_ns_p99", failed_share=0.0) == []


@pytest.mark.parametrize(("percentile", "few"), [("p99", 0.001), ("p999", 0.0001), ("p50", 0.001)])
def test_a_few_failures_that_hardly_move_a_percentile_are_no_doubt(percentile: str, few: float) -> None:
    assert raised(f"latency_ns_{percentile}", failed_share=0.9 * few) == []
    assert len(raised(f"latency_ns_{percentile}", failed_share=1.1 * few)) == 1


def of_fio(metric: str, options: dict[str, str], **scalars: float) -> list[Doubt]:
    case = Case({"kernel": ["a", "b"]}, blocks=6, roles={"primary": [metric]})
    known = case.plan().metrics
    definitions = {**known.definitions, **latency.definitions(["read"])}
    plan = case.plan().model_copy(update={"metrics": known.model_copy(update={"definitions": definitions})})
    trials = case.trials(**{metric: lambda levels, block: (9 if levels["kernel"] == "a" else 4) + block})
    workload = Section({"fio": {"engine": "libaio", "options": dict(options)}})
    given = [
        each.model_copy(
            update={
                "resolved": each.resolved.model_copy(update={"workload": workload}),
                "scalars": each.scalars | (scalars if each.trial.arm == "b" else {}),
            }
        )
        for each in trials
    ]
    return [doubt for doubt in analyse(plan, given).doubts if doubt.code == "waits_left_out"]


def test_what_fio_waits_before_it_counts_is_told_where_a_latency_is_judged() -> None:
    (doubt,) = of_fio("latency_ns_p99", {}, submission_share=0.998)
    assert doubt.message.startswith(
        "in 6 of 12 used trials accesses spent more than 2 % of their time before fio counts"
    )
    assert doubt.message.endswith(".b 100 %")
    assert of_fio("latency_ns_p99", {}, submission_share=0.02) == []
    assert of_fio("tpm", {}, submission_share=0.998) == []


def test_a_rate_of_fios_makes_no_open_loop() -> None:
    (doubt,) = of_fio("read_latency_ns_p99", {"rate_iops": "200"})
    assert "in 12 of 12 used trials fio held accesses back by a rate" in doubt.message
    assert of_fio("read_latency_ns_p99", {"thinktime": "5"}) == []
