from __future__ import annotations

from dataclasses import replace

import pytest

from fairtrial.analyse.models import Analysis, Doubt
from fairtrial.report.concerns import Concern, Scope, concerns, doubts, kinds


def about(metric: str, cell: str, arm: str, *, message: str = "all 2 values are 0") -> Doubt:
    return Doubt(code="zero_variance", message=message, advice="measure more finely", metric=metric, cell=cell, arm=arm)


def test_equal_doubts_are_one_concern_with_all_its_places() -> None:
    found = [
        Doubt(code="unequal_n", message="2 without partner", advice="prefer the ratio", metric=metric, cell="high")
        for metric in ("a", "b", "a")
    ]
    other = Doubt(code="drift", message="Values rise.", advice="Look!")
    one, two = concerns([*found, other])
    spots = (Scope(metric="a", cell="high", arm=""), Scope(metric="b", cell="high", arm=""))
    assert one == Concern("unequal_n", "2 without partner.", "Prefer the ratio.", spots)
    assert one.where == one.briefly == "a: high; b: high"
    assert two == Concern("drift", "Values rise.", "Look!", ())
    assert two.where == two.briefly == ""


def test_a_metric_that_is_zero_everywhere_is_one_concern_over_arms_and_cells() -> None:
    (one,) = concerns([about("failed", cell, arm) for cell in ("alone", "many") for arm in ("delete", "wal")])
    assert one.where == "failed: alone (delete, wal), many (delete, wal)"


@pytest.mark.parametrize(
    ("doubt", "where"),
    [
        (about("failed", "", "wal"), "failed: (wal)"),
        (about("", "alone", ""), "alone"),
        (about("", "alone", "wal"), "alone (wal)"),
        (about("failed", "", ""), "failed"),
    ],
)
def test_a_place_is_said_as_far_as_it_is_known(doubt: Doubt, where: str) -> None:
    (one,) = concerns([doubt])
    assert one.where == where


def test_many_places_are_counted_where_room_is_short() -> None:
    four = [about("failed", cell, arm) for cell in "abcd" for arm in ("delete", "wal")]
    assert concerns(four)[0].briefly == "failed, 4 comparisons"
    assert concerns([*four, about("p99", "a", "wal")])[0].briefly == "2 metrics, 5 comparisons"
    assert concerns([about("", cell, "") for cell in "abcd"])[0].briefly == "4 comparisons"


def test_doubts_that_differ_in_their_figures_only_are_of_one_kind() -> None:
    messages = ["all 2 values are 0", "all 3 values are 0", "all 2 values are 1"]
    found = concerns([about("failed", "a", "wal", message=message) for message in messages])
    other = Concern("zero_variance", "All.", "Do something else.", ())
    assert len(found) == 3
    assert kinds([*found, other]) == (replace(found[0], alike=2), other)
    assert [each.sentence for each in kinds([*found, other])] == [
        f"{found[0].message} (2 more like this in the report)",
        other.message,
    ]


def test_doubts_of_comparisons_follow_those_of_the_run(analysis: Analysis) -> None:
    cell = analysis.cells[1]
    doubt = Doubt(code="quantised", message="m", advice="a", cell=cell.cell)
    (one,) = cell.comparisons["throughput_tpm"]
    doubted = cell.model_copy(
        update={"comparisons": {"throughput_tpm": (one.model_copy(update={"doubts": (doubt,)}),)}}
    )
    found = doubts(analysis.model_copy(update={"cells": (analysis.cells[0], doubted)}))
    assert [each.code for each in found if each.code != "few_exceedances"] == ["voided", "quantised"]
