"""`fairtrial.read` on a real record: the frames are the raw files' and trial.json's, typed and named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fairtrial
from fairtrial.errors import FairtrialError, InputError, RecordError

TRIAL = "contended.b02.wal"
KINDS = ("new_order", "payment", "order_status", "delivery", "stock_level")


@pytest.fixture(scope="module")
def run(real_run: Path) -> fairtrial.RunFrames:
    return fairtrial.read(real_run)


def trial_json(run: fairtrial.RunFrames, trial: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run.record.trial_directory(trial) / "trial.json").read_bytes())
    return content


def test_trials_has_typed_columns_and_every_trials_scalars(run: fairtrial.RunFrames) -> None:
    schema = run.trials.schema
    assert {name: schema[name] for name in ("id", "cell", "arm", "journal", "users")} == dict.fromkeys(
        ("id", "cell", "arm", "journal", "users"), pl.String
    )
    assert schema["block"] == schema["position"] == pl.Int64
    assert schema["seed"] == pl.UInt64
    assert schema["valid"] == schema["used"] == pl.Boolean
    for row in run.trials.iter_rows(named=True):
        stored = trial_json(run, row["id"])
        assert {name: row[name] for name in stored["scalars"]} == stored["scalars"]
        assert (row["seed"], row["position"]) == (stored["trial"]["seed"], stored["trial"]["position"])
    scalars = [name for name in run.trials.columns if name in trial_json(run, TRIAL)["scalars"]]
    assert {schema[name] for name in scalars} == {pl.Float64}


def test_a_reader_computes_the_reports_means_in_a_line(run: fairtrial.RunFrames, real_run: Path) -> None:
    means = run.trials.filter("used").group_by("cell", "arm").agg(pl.col("throughput_tpm").mean())
    report = json.loads((real_run / "report" / "report.json").read_bytes())["analysis"]
    expected = {
        (cell["cell"], summary["arm"]): summary["mean"]
        for cell in report["cells"]
        for summary in cell["summaries"]["throughput_tpm"]
    }
    assert {(cell, arm): mean for cell, arm, mean in means.iter_rows()} == pytest.approx(expected, rel=1e-12)


def test_timelines_hold_every_interval_of_every_trial_ramp_up_included(run: fairtrial.RunFrames) -> None:
    timelines = run.timelines
    assert set(timelines["trial"]) == set(run.trials["id"])
    assert timelines.filter(~pl.col("measured"))["second"].max() < 0
    for (trial,), frame in timelines.filter("measured").group_by("trial"):
        done = (frame["transactions_per_s"] * frame["width_s"]).sum()
        assert done == pytest.approx(trial_json(run, str(trial))["scalars"]["transactions"], rel=1e-9)
        assert frame["width_s"].sum() == pytest.approx(2.5)


def test_rates_of_telemetry_are_the_raw_counters_over_the_time_between_samples(run: fairtrial.RunFrames) -> None:
    raw = pl.read_parquet(run.record.trial_directory(TRIAL) / "telemetry-vmstat.parquet").sort("time_ns")
    frame = run.telemetry("vmstat").filter(trial=TRIAL)
    assert frame.columns[:4] == ["trial", "cell", "arm", "second"]
    seconds = np.diff(raw["time_ns"].to_numpy()) / 1e9
    faults = np.diff(raw["pgfault"].to_numpy().astype(np.int64)) / seconds
    assert frame["pgfault_per_s"][0] is None
    assert frame["pgfault_per_s"][1:].to_list() == pytest.approx(faults.tolist(), rel=1e-9)
    assert frame["nr_dirty"].to_list() == raw["nr_dirty"].to_list()
    window = trial_json(run, TRIAL)["window"]
    assert frame["second"].to_list() == pytest.approx(((raw["time_ns"] - window["start_ns"]) / 1e9).to_list())


@pytest.mark.parametrize("source", ["cpu", "memory", "vmstat", "disks", "pressure"])
def test_every_source_has_every_trial(run: fairtrial.RunFrames, source: str) -> None:
    assert set(run.telemetry(source)["trial"]) == set(run.trials["id"])
    assert source in trial_json(run, TRIAL)["telemetry"]


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_latency_counts_what_the_result_counts(run: fairtrial.RunFrames, kind: str | None) -> None:
    outcomes = json.loads((run.record.trial_directory(TRIAL) / "result.json").read_bytes())["transactions"]
    expected = sum(each["committed"] + each["rolled_back"] for name, each in outcomes.items() if kind in (None, name))
    frame = run.latency(TRIAL, kind) if kind else run.latency(TRIAL)
    assert frame["count"].sum() == expected > 0
    assert frame["share_up_to"].is_sorted()
    assert frame["share_up_to"][-1] == pytest.approx(1.0)
    assert (frame["lowest_ns"] <= frame["highest_ns"]).all()
    rank = max(1, int(0.99 * expected + 0.5))  # HdrHistogram rounds the rank half up
    p99 = frame.filter(pl.col("count").cum_sum() >= rank)["highest_ns"][0]
    name = f"{kind}_latency_ns_p99" if kind else "latency_ns_p99"
    assert p99 == trial_json(run, TRIAL)["scalars"][name]


def test_latency_without_a_trial_is_that_of_all_together(run: fairtrial.RunFrames) -> None:
    assert run.latency()["count"].sum() == run.trials["transactions"].sum()
    by_kind = [run.latency(type=kind)["count"].sum() for kind in KINDS]
    assert sum(by_kind) == run.latency()["count"].sum()


def test_analyse_gives_what_the_report_holds_for_both_contrasts(run: fairtrial.RunFrames, real_run: Path) -> None:
    stored = json.loads((real_run / "report" / "report.json").read_bytes())["analysis"]
    assert json.loads(run.analyse().model_dump_json()) == stored
    assert run.analyse("users").levels == ("alone", "contended")


@pytest.mark.parametrize(
    ("ask", "known"),
    [
        (lambda run: run.telemetry("cpus"), "cpu, disks, memory, pressure, vmstat"),
        (lambda run: run.latency("contended.b99.wal"), TRIAL),
        (lambda run: run.latency(TRIAL, "neworder"), "new_order"),
        (lambda run: run.latency(type="neworder"), "new_order"),
    ],
    ids=["source", "trial", "type of a trial", "type"],
)
def test_a_wrong_name_is_answered_with_the_right_ones(run: fairtrial.RunFrames, ask: Any, known: str) -> None:
    with pytest.raises(InputError) as wrong:
        ask(run)
    assert known in wrong.value.hint


def test_a_factor_that_is_none_is_the_callers_mistake(run: fairtrial.RunFrames) -> None:
    with pytest.raises(FairtrialError, match="jurnal"):
        run.analyse("jurnal")


def test_a_frame_is_made_once_and_the_record_is_left_as_it_was(real_copy: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in real_copy.rglob("*")}
    opened = fairtrial.read(str(real_copy))
    assert opened.trials is opened.trials
    assert opened.timelines is opened.timelines
    opened.latency()
    opened.telemetry("cpu")
    opened.analyse()
    assert {path: path.stat().st_mtime_ns for path in real_copy.rglob("*")} == before


def test_damage_is_told_where_it_is_read_not_before(real_copy: Path) -> None:
    path = real_copy / "trials" / TRIAL / "telemetry-cpu.parquet"
    path.write_bytes(path.read_bytes()[:100])
    opened = fairtrial.read(real_copy)
    assert opened.trials.height == 12
    with pytest.raises(RecordError, match=r"telemetry-cpu\.parquet"):
        opened.telemetry("cpu")


def test_a_run_that_is_not_finished_can_be_read(real_copy: Path) -> None:
    journal = real_copy / "journal.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:6]), encoding="utf-8")
    opened = fairtrial.read(real_copy)
    assert not opened.record.finished
    assert opened.trials.height == 2
    assert opened.analyse().finished is False
