"""The analysis of a table that no run stands behind: what is asked is answered, what is known of its course is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.inference.analysis_cases import LATENCY, THROUGHPUT

from fairtrial.analyse import analyse_table
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Counts, Doubt
from fairtrial.analyse.tidy import Course, Request, Table

COUNTS = Counts(planned=32, finished=32, valid=32, invalid=0, used=32, blocks_voided=0, blocks_replaced=0)
REQUEST = Request(
    study="table",
    question="",
    contrast="kernel",
    levels=("old", "new"),
    cells={"low": {"memory": "low"}, "high": {"memory": "high"}},
    metrics={"tpm": THROUGHPUT, "p99": LATENCY},
    roles={"tpm": "primary", "p99": "secondary"},
    paired=True,
    confidence=0.95,
    margin=0.02,
)


def measured(arm: str, *, mean: float, blocks: int = 8) -> ArmValues:
    noise = np.random.default_rng([len(arm), int(mean)]).normal(1, 0.01, blocks)
    numbers = tuple(range(1, blocks + 1))
    return ArmValues(arm=arm, values=mean * noise, blocks=numbers, positions=numbers, absent=0)


def table(*, blocks_of_new: int = 8) -> Table:
    return {
        (cell, metric): {
            "old": measured("old", mean=100.0),
            "new": measured("new", mean=120.0, blocks=blocks_of_new if cell == "high" else 8),
        }
        for cell in REQUEST.cells
        for metric in REQUEST.metrics
    }


def verdicts(course: Course, request: Request = REQUEST) -> list[str]:
    found = analyse_table(table(), request, course)
    return [each.verdict for cell in found.cells for compared in cell.comparisons.values() for each in compared]


def test_each_metric_is_judged_in_its_own_direction() -> None:
    assert verdicts(Course(counts=COUNTS)) == ["faster", "slower"] * 2


def test_each_role_is_a_family_of_its_own() -> None:
    found = analyse_table(table(), REQUEST, Course(counts=COUNTS))
    sizes = {each.metric: each.family_size for cell in found.cells for (each,) in cell.comparisons.values()}
    assert sizes == {"tpm": 2, "p99": 2}


def test_without_an_end_there_is_no_verdict() -> None:
    assert set(verdicts(Course(counts=COUNTS, finished=False))) == {"none"}


def test_a_cell_that_is_not_what_it_says_gets_none() -> None:
    course = Course(counts=COUNTS, without_verdict=lambda each: each.cell == "low")
    assert verdicts(course) == ["none", "none", "faster", "slower"]


def test_what_is_known_of_the_course_stands_before_what_the_values_show() -> None:
    known = Doubt(code="voided", message="seen", advice="look")
    found = analyse_table(table(blocks_of_new=0), REQUEST, Course(counts=COUNTS, doubts=(known,)))
    assert [doubt.code for doubt in found.doubts][:2] == ["voided", "missing"]
    assert found.counts == COUNTS


def test_an_arm_without_values_has_no_summary_and_no_comparison_but_keeps_its_place() -> None:
    found = analyse_table(table(blocks_of_new=0), REQUEST, Course(counts=COUNTS))
    low, high = found.cells
    assert [summary.arm for summary in high.summaries["tpm"]] == ["old"]
    assert high.comparisons["tpm"] == ()
    assert low.comparisons["tpm"][0].family_size == 2


@pytest.mark.parametrize(("paired", "method"), [(True, "paired t on log ratios over blocks"), (False, "Welch on logs")])
def test_pairs_are_made_where_blocks_mean_something(paired: bool, method: str) -> None:  # noqa: FBT001
    found = analyse_table(table(), replace(REQUEST, paired=paired), Course(counts=COUNTS))
    assert {each.method for cell in found.cells for (each,) in cell.comparisons.values()} == {method}
