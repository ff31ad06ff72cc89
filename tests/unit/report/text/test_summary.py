from __future__ import annotations

import numpy as np
import pytest
from support.records import planned, tiny_plan, trial_record

from fairtrial.analyse import analyse
from fairtrial.analyse.models import Analysis, Estimand, Guardrail, Interval, Outcome, Stalls
from fairtrial.analyse.result import Verdict
from fairtrial.report.text import summary


def _judged(analysis: Analysis, *verdicts: Verdict, estimand: Estimand = "typical") -> Analysis:
    """The analysis with these verdicts on its primary metric, cell by cell, and no word on its guardrail."""
    cells = [
        cell.model_copy(
            update={
                "comparisons": cell.comparisons
                | {
                    "throughput_tpm": tuple(
                        comparison.model_copy(
                            update={
                                "verdict": verdict,
                                "ratio": Interval(estimate=1.305, low=1.251, high=1.361),
                                "estimand": None if verdict in ("undecided", "none") else estimand,
                                "stalls": Stalls(share=0.26, depth=0.15, worth=0.041),
                            }
                        )
                        for comparison in cell.comparisons["throughput_tpm"]
                    ),
                    "latency_ns_p99": tuple(
                        each.model_copy(update={"guardrail": None}) for each in cell.comparisons["latency_ns_p99"]
                    ),
                }
            }
        )
        for cell, verdict in zip(analysis.cells, verdicts, strict=True)
    ]
    return analysis.model_copy(update={"cells": tuple(cells)})


def test_a_claim_names_ratio_interval_and_where_and_the_rest_is_not_hidden(analysis: Analysis) -> None:
    paragraph, *_ = summary.sentences(_judged(analysis, "faster", "undecided"))
    assert paragraph == (
        "With journal wal instead of delete, throughput was 1.305 times as high (95 % interval 1.251 – 1.361, faster)"
        " at users low. There was no statistically significant change at users high."
    )


def test_no_claim_at_all(analysis: Analysis) -> None:
    paragraph, *_ = summary.sentences(_judged(analysis, "undecided", "undecided"))
    assert paragraph == (
        "There was no statistically significant change in throughput with journal wal instead of delete at users low"
        " and users high."
    )


def test_what_so_few_trials_could_not_have_shown_is_told_apart_from_what_they_did_not_show(analysis: Analysis) -> None:
    found = _with(_judged(analysis, "undecided", "undecided"), "throughput_tpm", cell=0, claimable=False)
    paragraph, *_ = summary.sentences(found)
    about = " in throughput with journal wal instead of delete at users "
    assert paragraph == (
        f"There was no statistically significant change{about}high. "
        f"Too few trials were made to claim a change{about}low."
    )


def test_equivalence_names_its_margin_and_a_missing_verdict_is_said(analysis: Analysis) -> None:
    sentence, *_ = summary.sentences(_judged(analysis, "equivalent", "none"))
    assert "within 2 %" in sentence
    assert "no verdict" in sentence
    assert "users high" in sentence


def test_without_a_primary_metric_every_metric_is_summarised(analysis: Analysis) -> None:
    demoted = analysis.model_copy(update={"roles": dict.fromkeys(analysis.roles, "secondary")})
    assert len(summary.sentences(demoted)) == len(analysis.metrics) + len(summary.estimands(demoted))


def test_headline_counts_primary_verdicts(analysis: Analysis) -> None:
    assert summary.headline(_judged(analysis, "slower", "none")) == "1 slower, 1 without verdict"


def _without_ratio(analysis: Analysis, difference: Interval) -> Analysis:
    """The first cell alone, its throughput slower by a difference that has no ratio."""
    judged = _judged(analysis, "slower", "undecided")
    cell = judged.cells[0]
    (one,) = cell.comparisons["throughput_tpm"]
    none = one.model_copy(update={"ratio": Interval(estimate=None, low=None, high=None), "difference": difference})
    changed = cell.model_copy(update={"comparisons": {"throughput_tpm": (none,)}})
    return judged.model_copy(update={"cells": (changed,)})


def test_a_change_without_a_ratio_is_told_in_units(analysis: Analysis) -> None:
    told = _without_ratio(analysis, Interval(estimate=-120.0, low=-150.0, high=-90.0))
    paragraph, *_ = summary.sentences(told)
    assert "throughput was 120 transactions/min lower (95 % interval [-150, -90], slower) at users low." in paragraph


def test_a_difference_of_shares_is_not_told_as_a_relative_change(analysis: Analysis) -> None:
    told = _without_ratio(analysis, Interval(estimate=0.08, low=0.07, high=0.09))
    share = told.metrics["throughput_tpm"].model_copy(update={"unit": "share of time", "label": "memory stalls"})
    paragraph, *_ = summary.sentences(told.model_copy(update={"metrics": {**told.metrics, "throughput_tpm": share}}))
    assert "memory stalls was 8 percentage points of time higher (95 % interval [7, 9], slower)" in paragraph


def _rail(outcome: Outcome, estimand: Estimand | None = None) -> Guardrail:
    tested = {"margin": 0.02, "bound": 3.5, "difference_bound": None, "p_kept": 0.5, "p_breached": 0.5}
    return Guardrail.model_validate(tested | {"outcome": outcome, "estimand": estimand})


def _guarded(analysis: Analysis, outcome: Outcome) -> Analysis:
    """The analysis with its guardrail so, in every cell."""
    changed = {"guardrail": _rail(outcome), "verdict": "slower", "ratio": Interval(estimate=2.96, low=2.5, high=3.5)}
    judged = _judged(analysis, "faster", "faster")
    cells = [
        cell.model_copy(
            update={
                "comparisons": cell.comparisons
                | {
                    "latency_ns_p99": tuple(
                        each.model_copy(update=changed) for each in cell.comparisons["latency_ns_p99"]
                    )
                }
            }
        )
        for cell in judged.cells
    ]
    return judged.model_copy(update={"cells": tuple(cells)})


def test_a_guardrail_that_got_worse_stands_beside_the_claim(analysis: Analysis) -> None:
    found = _guarded(analysis, "breached")
    claim, breach, _ = summary.sentences(found)
    assert "faster" in claim
    assert breach.startswith("Guardrail breached: with journal wal, p99 latency was 2.960 times as high")
    assert "users low" in breach
    assert breach.count("(95 % interval 2.500 – 3.500, worse by more than 2 %, at worst 3.500)") == 2
    assert "users high" in breach
    assert summary.headline(found) == "2 faster, 1 guardrail breached"


def test_a_guardrail_of_which_nothing_is_shown_is_not_passed_over(analysis: Analysis) -> None:
    found = _guarded(analysis, "unclear")
    assert summary.breaches(found) == ()
    _, unclear, _ = summary.sentences(found)
    assert unclear.startswith("Guardrail unclear: with journal wal, p99 latency is not shown to stay within 2 % at")
    assert summary.headline(found) == "2 faster, 1 guardrail unclear"


@pytest.mark.parametrize(("memory", "said"), [(1.5, "1 guardrail breached"), (1.0, "1 guardrail unclear")])
def test_a_guardrail_counts_once_whatever_the_number_of_arms(memory: float, said: str) -> None:
    plan = tiny_plan(blocks=10)
    rail = plan.metrics.definitions["elapsed_s"].model_copy(update={"name": "rss", "label": "memory"})
    definitions = {**plan.metrics.definitions, "rss": rail}
    metrics = plan.metrics.model_copy(update={"definitions": definitions, "guardrails": ["rss"]})
    trials = [planned(block, arm) for block in range(1, 11) for arm in "abc"]
    resolved = {"all": dict.fromkeys("abc", plan.resolved["all"]["a"])}
    factors = {"arm": ["a", "b", "c"]}
    plan = plan.model_copy(update={"factors": factors, "resolved": resolved, "metrics": metrics, "trials": trials})
    noise = np.random.default_rng(1).normal(1, 0.01, len(trials))
    records = [
        trial_record(each).model_copy(
            update={"scalars": {"elapsed_s": one, "rss": one**10 * (1 if each.arm == "a" else memory)}}
        )
        for each, one in zip(trials, noise.tolist(), strict=True)
    ]
    found = analyse(plan, records, finished=True)
    assert len(summary.breaches(found) + summary.unclear(found)) == 2
    assert summary.headline(found).endswith(said)


def test_a_breach_is_not_called_equivalent_by_the_margin_of_claims(analysis: Analysis) -> None:
    unbounded = _rail("breached").model_copy(update={"bound": None})
    changes = {"verdict": "equivalent", "ratio": Interval(estimate=1.009, low=1.008, high=1.01), "guardrail": unbounded}
    (breach,) = summary.breaches(_with(_judged(analysis, "faster", "faster"), "latency_ns_p99", cell=0, **changes))
    assert breach == (
        "Guardrail breached: with journal wal, p99 latency was 1.009 times as high (95 % interval 1.008 – 1.010, worse"
        " by more than 2 %) at users low."
    )


def _without(analysis: Analysis, metric: str, *cells: int) -> Analysis:
    """The analysis with nothing to compare on a metric in these cells."""
    left = [
        cell.model_copy(update={"comparisons": cell.comparisons | {metric: ()}}) if index in cells else cell
        for index, cell in enumerate(analysis.cells)
    ]
    return analysis.model_copy(update={"cells": tuple(left)})


def test_a_primary_comparison_without_values_is_counted_and_said(analysis: Analysis) -> None:
    found = _without(_judged(analysis, "faster", "undecided"), "throughput_tpm", 1)
    paragraph, *_ = summary.sentences(found)
    absent = "There is no verdict at users high, because there is no value to compare."
    assert paragraph.endswith(f"faster) at users low. {absent}")
    assert summary.headline(found) == "1 faster, 1 without verdict"
    nothing = _without(found, "throughput_tpm", 0, 1)
    assert summary.sentences(nothing)[0] == (
        "There is no verdict in throughput with journal wal instead of delete at users low and users high, because"
        " there is no value to compare."
    )
    assert summary.headline(nothing) == "2 without verdict"
    unfinished = nothing.model_copy(update={"finished": False})
    assert summary.headline(unfinished) == "no primary comparison"
    assert summary.sentences(unfinished) == ()


def test_a_guardrail_without_values_is_unclear(analysis: Analysis) -> None:
    found = _guarded(analysis, "unclear")
    (said,) = summary.unclear(_without(found, "latency_ns_p99", 1))
    assert said == (
        "Guardrail unclear: with journal wal, p99 latency is not shown to stay within 2 % at users low and has no value"
        " to compare at users high."
    )
    nothing = _without(found, "latency_ns_p99", 0, 1)
    (said,) = summary.unclear(nothing)
    assert said.endswith("p99 latency has no value to compare at users low and users high.")
    assert summary.headline(nothing) == "2 faster, 1 guardrail unclear"
    assert summary.unclear(nothing.model_copy(update={"finished": False})) == ()


@pytest.mark.parametrize("outcome", ["kept", "none"])
def test_a_guardrail_that_held_is_not_mentioned(analysis: Analysis, outcome: Outcome) -> None:
    found = _guarded(analysis, outcome)
    assert summary.breaches(found) == summary.unclear(found) == ()


STALLS = (
    "Even if no trial stalled, stalls in up to 26 % of an arm's trials cannot be excluded: with a loss of 15 % each,"
    " they cost the arm up to 4.1 %."
)


@pytest.mark.parametrize(
    ("verdicts", "estimand", "said"),
    [
        (("faster", "undecided"), "typical", f"Claims are about the typical trial, not about the mean. {STALLS}"),
        (("equivalent", "none"), "typical", f"Claims are about the typical trial, not about the mean. {STALLS}"),
        (
            ("faster", "slower"),
            "mean",
            "Claims are about the typical trial and the mean: unseen stalls cannot explain them.",
        ),
        (
            ("faster", "undecided"),
            "mean",
            f"Claims are about the typical trial and the mean: unseen stalls cannot explain them. {STALLS}",
        ),
        (("undecided", "undecided"), "mean", STALLS),
        (("none", "none"), "mean", None),
    ],
)
def test_what_claims_are_about_is_said_once(
    analysis: Analysis, *, verdicts: tuple[Verdict, Verdict], estimand: Estimand, said: str | None
) -> None:
    found = _judged(analysis, *verdicts, estimand=estimand)
    assert summary.estimands(found) == (() if said is None else (said,))
    assert summary.sentences(found)[-1:] == (said,) if said else True


def _with(analysis: Analysis, metric: str, *, cell: int, **changes: object) -> Analysis:
    """The analysis with its one comparison of a metric in a cell changed."""
    cells = list(analysis.cells)
    (compared,) = cells[cell].comparisons[metric]
    changed = {metric: (compared.model_copy(update=changes),)}
    cells[cell] = cells[cell].model_copy(update={"comparisons": cells[cell].comparisons | changed})
    return analysis.model_copy(update={"cells": tuple(cells)})


def test_claims_about_the_mean_are_told_from_those_that_are_not(analysis: Analysis) -> None:
    found = _with(_judged(analysis, "faster", "faster"), "throughput_tpm", cell=0, estimand="mean")
    (said,) = summary.estimands(found)
    assert said == f"Claims are about the typical trial, and about the mean as well at low. {STALLS}"


def test_claims_about_some_trials_are_told_from_those_about_the_typical_one(analysis: Analysis) -> None:
    found = _with(_judged(analysis, "faster", "faster"), "throughput_tpm", cell=0, estimand="some")
    (said,) = summary.estimands(found)
    some = "Claims at low are about some trials only: the typical trial does not change."
    assert said == f"Claims are about the typical trial, not about the mean. {some} {STALLS}"


def test_a_claim_about_the_mean_of_one_metric_is_not_one_of_another(analysis: Analysis) -> None:
    found = _with(_judged(analysis, "faster", "faster"), "throughput_tpm", cell=0, estimand="mean")
    both = found.model_copy(update={"roles": found.roles | {"throughput_nopm": "primary"}})
    for cell in (0, 1):
        both = _with(both, "throughput_nopm", cell=cell, verdict="faster", estimand="typical", stalls=None)
    (said,) = summary.estimands(both)
    assert said == f"Claims are about the typical trial, and about the mean as well at throughput, low. {STALLS}"


def test_stalls_have_no_share_where_there_is_no_ratio(analysis: Analysis) -> None:
    found = _judged(analysis, "faster", "undecided")
    for cell in (0, 1):
        found = _with(found, "throughput_tpm", cell=cell, ratio=Interval(estimate=None, low=None, high=None))
    assert summary.estimands(found) == ("Claims are about the typical trial, not about the mean.",)


@pytest.mark.parametrize("outcome", ["kept", "breached"])
def test_what_outcomes_of_guardrails_are_about_is_said_as_of_claims(analysis: Analysis, outcome: Outcome) -> None:
    found = _guarded(analysis, outcome)
    for cell in (0, 1):
        found = _with(found, "latency_ns_p99", cell=cell, guardrail=_rail(outcome, "typical"))
    assert summary.estimands(found)[-1] == "Outcomes of guardrails are about the typical trial, not about the mean."
    found = _with(found, "latency_ns_p99", cell=1, guardrail=_rail(outcome, "mean"))
    assert summary.estimands(found)[-1] == (
        "Outcomes of guardrails are about the typical trial, and about the mean as well at high."
    )
