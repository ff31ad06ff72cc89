from __future__ import annotations

from dataclasses import replace

from fairtrial.analyse.models import Analysis, Doubt
from fairtrial.record import Record
from fairtrial.report.concerns import Concern, concerns, doubts, tail_doubts


def test_equal_doubts_are_one_concern_with_all_its_places() -> None:
    found = [
        Doubt(code="unequal_n", message="2 without partner", advice="prefer the ratio", metric=metric, cell="high")
        for metric in ("a", "b", "a")
    ]
    other = Doubt(code="drift", message="Values rise.", advice="Look!")
    one, two = concerns([*found, other])
    assert one == Concern("unequal_n", "2 without partner.", "Prefer the ratio.", ("a, high", "b, high"))
    assert one.where == one.briefly == "a, high; b, high"
    assert two == Concern("drift", "Values rise.", "Look!", ())


def test_many_places_are_counted_where_room_is_short() -> None:
    assert Concern("x", "m.", "a.", ("1", "2", "3")).briefly == "3 comparisons"


def test_doubts_of_comparisons_follow_those_of_the_run(analysis: Analysis) -> None:
    cell = analysis.cells[1]
    doubt = Doubt(code="quantised", message="m", advice="a", cell=cell.cell)
    (one,) = cell.comparisons["throughput_tpm"]
    doubted = cell.model_copy(
        update={"comparisons": {"throughput_tpm": (one.model_copy(update={"doubts": (doubt,)}),)}}
    )
    found = doubts(analysis.model_copy(update={"cells": (analysis.cells[0], doubted)}))
    assert [each.code for each in found] == ["voided", "quantised"]


def test_a_percentile_on_few_observations_is_doubted(record: Record, analysis: Analysis) -> None:
    (doubt,) = tail_doubts(record, analysis)
    least = min(trial.scalars["latency_count"] for trial in record.trials if trial.valid)
    assert doubt.metric == "latency_ns_p99"
    assert f"{least / 100:.0f} observations" in doubt.message


def test_a_percentile_on_many_observations_is_not(record: Record, analysis: Analysis) -> None:
    many = replace(record)
    many.__dict__["trials"] = tuple(
        trial.model_copy(update={"scalars": trial.scalars | {"latency_count": 1e6}}) for trial in record.trials
    )
    assert tail_doubts(many, analysis) == ()
