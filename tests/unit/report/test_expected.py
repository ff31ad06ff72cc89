"""Expectations as the report shows them: every arm's mean, and what each means for the verdict."""

from __future__ import annotations

import pytest

from fairtrial.analyse.models import Analysis, ArmMean, ExpectationResult
from fairtrial.record import Record
from fairtrial.report import expected, page, text
from fairtrial.report.scene import Scene
from fairtrial.study.catalogue import MetricDefinition


def with_means(analysis: Analysis, baseline: float | None, arm: float | None) -> Analysis:
    """The analysis with 5 to 15 % expected of its first cell, and these means there."""

    def mean(name: str, value: float | None) -> ArmMean:
        inside = value is not None and 0.05 <= value <= 0.15
        return ArmMean(arm=name, mean=value, n=0 if value is None else 6, inside=inside)

    by_arm = mean("delete", baseline), mean("wal", arm)
    first, *others = analysis.cells
    result = ExpectationResult(
        cell=first.cell,
        metric="inactive_file_share",
        text="5..15 %",
        mean=baseline,
        n=by_arm[0].n,
        met=by_arm[0].inside,
        by_arm=by_arm,
    )
    others = [cell.model_copy(update={"expectations": ()}) for cell in others]
    return analysis.model_copy(update={"cells": (first.model_copy(update={"expectations": (result,)}), *others)})


@pytest.mark.parametrize(
    ("means", "outcomes"),
    [
        ((0.1, 0.12), ["met", "inside"]),
        ((0.07, 0.007), ["met", "OUTSIDE"]),
        ((0.007, 0.098), ["NOT MET: no verdict", "inside"]),
        ((0.1, None), ["met", "–"]),
        ((None, 0.1), ["NOT MET: no verdict", "inside"]),
    ],
)
def test_every_arm_has_a_row_and_the_baseline_decides(
    analysis: Analysis, means: tuple[float | None, float | None], outcomes: list[str]
) -> None:
    rows = expected.rows(with_means(analysis, *means), {})
    assert [row[2:4] for row in rows] == [["5..15 %", "delete"], ["5..15 %", "wal"]]
    assert [row[-1] for row in rows] == outcomes
    assert all(len(row) == len(expected.HEADER) for row in rows)


def test_means_are_in_the_unit_of_what_is_expected(analysis: Analysis) -> None:
    definition = MetricDefinition(
        name="inactive_file_share", label="inactive file pages", unit="share", better="lower", kind="count"
    )
    rows = expected.rows(with_means(analysis, 0.07, None), {definition.name: definition})
    assert [row[4] for row in rows] == ["7.000 %", "–"]


def test_text_and_page_show_the_means_of_both_arms(record: Record, analysis: Analysis) -> None:
    moved = with_means(analysis, 0.07, 0.007)
    lines = [line.split() for line in text.render(Scene(record, moved)).splitlines() if "inactive_file_share" in line]
    assert [line[-4:] for line in lines] == [["delete", "0.07", "6", "met"], ["wal", "0.007", "6", "OUTSIDE"]]
    html = page.render(Scene(record=record, analysis=moved), ratios=[], cells=[])
    for arm, mean, outcome in (("delete", "0.07", "met"), ("wal", "0.007", "OUTSIDE")):
        row = f'<td>5..15 %</td><td>{arm}</td><td class="n">{mean}</td><td class="n">6</td><td>{outcome}</td>'
        assert row in html
