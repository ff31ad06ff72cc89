"""Steadiness, stability and shift curves on a real run of SQLite: run, report, verify, and a curve changed by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.command_line import Desk, desk

STUDY = """
    study: within
    question: Is a write-ahead log faster than a rollback journal?
    place: {local: {}}
    system: {sqlite: {}}
    workload:
      oltp: {table_size: 1000, virtual_users: 2, rate: 100, ramp_up: 500ms, duration: 5500ms, interval: 100ms}
    factors:
      journal:
        delete: {system: {sqlite: {pragmas: {journal_mode: delete}}}}
        wal: {system: {sqlite: {pragmas: {journal_mode: wal}}}}
    arm: journal
    trials: {blocks: 5, seed: 3}
    metrics:
      primary: throughput_tps
      secondary: [zero_throughput_s, longest_dip_s, throughput_cv, unsteady]
"""


pytestmark = pytest.mark.waits  # a hundred transactions a second


@pytest.fixture(scope="module")
def here() -> Any:
    with desk() as found:
        found.fairtrial("run", found.study(STUDY), drawn=True)
        yield found


def report_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "report" / "report.json").read_bytes())
    return found


def test_every_trial_is_judged_and_its_stalls_are_those_of_its_timeline(here: Desk) -> None:
    judged = report_of(here.run)["analysis"]["steadiness"]
    assert len(judged) == 10
    for each in judged:
        directory = here.run / "trials" / each["trial"]
        scalars = json.loads((directory / "trial.json").read_bytes())["scalars"]
        assert each["settled_from_s"] == scalars["settled_from_s"] <= 6
        assert 1 <= each["effective_n"] <= 56
        timeline = pl.read_parquet(directory / "timeline.parquet").filter("measured")
        done = timeline.select(pl.sum_horizontal(pl.col("^.*_(committed|rolled_back)$"))).to_series()
        assert math.isclose(done.sum(), scalars["transactions"])
        whole_seconds = [done[at : at + 10].sum() for at in range(0, len(done) // 10 * 10, 10)]
        assert scalars["zero_throughput_s"] == whole_seconds.count(0)


def test_the_report_has_a_curve_with_a_band_and_a_table_of_trials(here: Desk) -> None:
    (curve,) = report_of(here.run)["latency_shift"]
    assert (curve["n"], curve["arm"]) == (5, "wal")
    assert all(point["low"] < point["ratio"] < point["high"] for point in curve["points"])
    text = (here.run / "report" / "report.txt").read_text(encoding="utf-8")
    assert "Within trials" in text
    page = (here.run / "report" / "report.html").read_text(encoding="utf-8")
    assert "Shift of latency against delete" in page
    assert list((here.run / "report" / "figures").glob("*latency-shift.svg"))


def test_verify_computes_all_of_it_again_and_names_a_point_that_was_changed(here: Desk) -> None:
    here.fairtrial("verify", here.run)
    path = here.run / "report" / "report.json"
    content = report_of(here.run)
    content["latency_shift"][0]["points"][0]["low"] *= 1.01
    path.write_text(json.dumps(content), encoding="utf-8")
    said = here.fairtrial("verify", here.run, code=None)
    assert said.returncode != 0
    assert "latency_shift[0].points[0].low" in said.stdout + said.stderr
