"""What the report says of the inside of trials: verdicts by arm, dips as bands, shift curves from raw histograms."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from fairtrial.analyse.models import Analysis
from fairtrial.metrics import frames, latency
from fairtrial.metrics.series.stability import Dip
from fairtrial.record import Record
from fairtrial.record.models import TrialRecord
from fairtrial.report import shifts, within
from fairtrial.report.figures import dips, series, telemetry
from fairtrial.report.figures import shift as shift_figure
from fairtrial.report.scene import Scene


@pytest.fixture(scope="module")
def scene(record: Record, analysis: Analysis) -> Scene:
    return Scene(record=record, analysis=analysis)


def rows_of(spec: dict[str, Any], layer: int) -> list[dict[str, Any]]:
    """A layer's rows, wherever Altair put them: in it, above it, or by name."""
    data = spec["layer"][layer].get("data", spec.get("data"))
    found: list[dict[str, Any]] = data["values"] if "values" in data else spec["datasets"][data["name"]]
    return found


def test_trials_are_counted_by_verdict_arm_by_arm(analysis: Analysis) -> None:
    rows = within.rows(analysis)
    assert [row[:2] for row in rows] == [["low", row[1]] for row in rows]
    counts = np.array([[int(word) for word in row[2:5]] for row in rows])
    assert counts.sum(axis=0).tolist() == [4, 1, 1]
    assert all(len(row) == len(within.HEADER) for row in rows)


def test_a_record_without_judged_trials_has_no_rows(analysis: Analysis) -> None:
    assert within.rows(analysis.model_copy(update={"steadiness": ()})) == []


def test_shift_curves_pair_the_blocks_that_are_used_and_merge_their_counts(scene: Scene) -> None:
    curves = shifts.of_record(scene.record, scene.analysis, scene.whole_distributions)
    assert [(curve.cell, curve.arm, curve.n) for curve in curves] == [("low", "wal", 6), ("high", "wal", 6)]
    used = [trial for trial in frames.used_trials(scene.record) if trial.trial.cell == "high"]
    for arm, name in (("delete", "baseline_ns"), ("wal", "arm_ns")):
        parts = [frames.distributions(scene.record)[each.trial.id] for each in used if each.trial.arm == arm]
        merged = latency.merged(one for part in parts for one in part.values())
        for point in curves[1].points:
            assert getattr(point, name) == pytest.approx(merged.percentile_ns(100 * point.quantile))
    assert all(point.low is not None for curve in curves for point in curve.points)
    assert curves[0].seed != curves[1].seed


def test_latencies_of_all_trials_of_a_boot_are_merged(scene: Scene) -> None:
    record, slow = scene.record, latency.Distribution(*np.full((3, 1), 10**12))

    def again(trial: TrialRecord) -> TrialRecord:
        return trial.model_copy(
            update={"trial": trial.trial.model_copy(update={"id": f"{trial.trial.id}+2", "repeat": 2})}
        )

    booted = dataclasses.replace(record)
    booted.__dict__["trials"] = (*record.trials, *map(again, record.trials))
    slower = {f"{name}+2": slow for name in scene.whole_distributions if "-wal-" in name}
    found = shifts.of_record(booted, scene.analysis, {**scene.whole_distributions, **slower})
    assert [curve.n for curve in found] == [6, 6]
    assert all(point.arm_ns == pytest.approx(1e12) for curve in found for point in curve.points)
    assert [point.baseline_ns for point in found[0].points] == [point.baseline_ns for point in scene.curves[0].points]


def test_the_figure_has_every_point_of_its_cell_s_curves(scene: Scene) -> None:
    figure = shift_figure.shift(scene, scene.analysis.cells[0])
    assert figure is not None
    rows = rows_of(figure.spec, 1)
    assert len(rows) == len(scene.curves[0].points)
    assert "95 %" in figure.note
    without = Scene(record=scene.record, analysis=scene.analysis)
    without.__dict__["curves"] = ()
    assert shift_figure.shift(without, scene.analysis.cells[0]) is None


def dipped(scene: Scene, count: int) -> Scene:
    """The same scene, with dips of one trial of the first cell."""
    trial = scene.of(scene.analysis.cells[0])[0].trial.trial.id
    found = Scene(record=scene.record, analysis=scene.analysis)
    found.__dict__["dips"] = {
        trial: [Dip(start_s=at, end_s=at + 0.5, lowest_share=0.4, recovered_s=at + 1) for at in range(count)]
    }
    return found


def test_dips_are_bands_in_the_chart_of_throughput_and_in_every_chart_of_telemetry(scene: Scene) -> None:
    some = dipped(scene, 2)
    cell = scene.analysis.cells[0]
    figure = series.timelines(some, cell)
    assert figure is not None
    assert "2 dips below 80 %" in figure.note
    drawn = [figure, *telemetry.figures(some, cell)]
    assert len(drawn) > 3
    for each in drawn:
        band = each.spec["layer"][0]
        assert band["mark"]["type"] == "rect"
        assert [(row["from"], row["to"]) for row in rows_of(each.spec, 0)] == [(0.0, 0.5), (1.0, 1.5)]


def test_where_no_trial_dips_there_is_neither_band_nor_word(scene: Scene) -> None:
    calm = dipped(scene, 0)
    figure = series.timelines(calm, scene.analysis.cells[0])
    assert figure is not None
    assert "dip" not in figure.note
    assert figure.spec["layer"][0]["mark"]["type"] == "rule"


def test_of_many_dips_the_costliest_are_drawn_and_all_are_counted(scene: Scene) -> None:
    many = dipped(scene, 100)
    (trial,) = many.dips
    many.dips[trial][7] = dataclasses.replace(many.dips[trial][7], lowest_share=0.0)
    found = dips.dips(many, scene.analysis.cells[0])
    assert len(found.shown) == dips.MARKED
    assert any(row["from"] == 7 for row in found.shown)
    assert "100 dips" in found.note
