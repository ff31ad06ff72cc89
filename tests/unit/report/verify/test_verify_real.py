"""A real record changed by somebody who also put the journal's hashes right: recomputation still sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hdrh.histogram import HdrHistogram
from support.real_record import adjust_hash

from fairtrial import verify
from fairtrial.metrics.telemetry import counters
from fairtrial.record import read, verify_hashes
from fairtrial.record.models import Window

TRIAL = "alone.b02.wal"
HOUR_NS = 3_600_000_000_000


def recount_result(path: Path) -> None:
    content = json.loads(path.read_bytes())
    content["transactions"]["payment"]["committed"] += 1
    path.write_text(json.dumps(content), encoding="utf-8")


def add_an_error(path: Path) -> None:
    content = json.loads(path.read_bytes())
    content["errors"].append({"transaction": "payment", "code": "5", "kind": "busy", "message": "locked", "count": 1})
    path.write_text(json.dumps(content), encoding="utf-8")


def add_a_latency(path: Path) -> None:
    lines = path.read_text(encoding="ascii").splitlines(keepends=True)
    at = next(index for index, line in enumerate(lines) if line.startswith("Tag=payment,"))
    *head, encoded = lines[at].strip().split(",")
    histogram = HdrHistogram(1, HOUR_NS, 3)
    histogram.add(HdrHistogram.decode(encoded))
    histogram.record_value(1_000_000)
    lines[at] = ",".join([*head, histogram.encode().decode()]) + "\n"
    path.write_text("".join(lines), encoding="ascii")


def more_of(*names: str, by: int = 1) -> Callable[[Path], None]:
    """Columns raised from the middle of the window on, as a counter moves."""

    def change(path: Path) -> None:
        frame = pl.read_parquet(path)
        window = json.loads((path.parent / "trial.json").read_bytes())["window"]
        later = pl.col("time_ns") >= (window["start_ns"] + window["end_ns"]) // 2
        columns = [column for column in frame.columns if column.endswith(names)]
        assert columns
        frame.with_columns(pl.when(later).then(pl.col(columns) + by).otherwise(pl.col(columns))).write_parquet(path)

    return change


def changed(path: Path, change: Callable[[Any], None]) -> None:
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def test_the_record_as_written_has_no_mismatch(real_run: Path) -> None:
    found = read(real_run)
    assert verify_hashes(found) == []
    assert verify.recompute(found) == []


def test_a_record_that_was_renamed_has_no_mismatch(real_copy: Path) -> None:
    assert "fairtrial verify " in (real_copy / "report" / "report.txt").read_text(encoding="utf-8")
    renamed = real_copy.rename(real_copy.with_name("renamed"))
    assert verify.recompute(read(renamed)) == []


@pytest.mark.parametrize(
    ("name", "change", "metric"),
    [
        ("result.json", recount_result, "throughput_tpm"),
        ("result.json", add_an_error, "errors"),
        ("latency.hlog", add_a_latency, "payment_latency_count"),
        ("telemetry-cpu.parquet", more_of("context_switches"), "context_switches"),
        ("telemetry-memory.parquet", more_of("Cached", by=4096), "page_cache_bytes_mean"),
        ("telemetry-vmstat.parquet", more_of("pgmajfault"), "major_faults"),
        ("telemetry-disks.parquet", more_of("sectors_written"), "disk_written_bytes"),
        ("telemetry-pressure.parquet", more_of("cpu.some.total_us"), "cpu_stall_share"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_count_more_in_a_raw_file_is_found(
    real_copy: Path, name: str, change: Callable[[Path], None], *, metric: str
) -> None:
    change(real_copy / "trials" / TRIAL / name)
    assert verify_hashes(read(real_copy)) != []
    adjust_hash(real_copy, TRIAL, name)
    found = read(real_copy)
    assert verify_hashes(found) == []
    mismatches = verify.recompute(found)
    assert any(text.startswith(f"trials/{TRIAL}/trial.json: {metric} is ") for text in mismatches), mismatches
    assert not [text for text in mismatches if text.startswith("trials/") and TRIAL not in text]


def test_a_timeline_that_no_longer_adds_up_to_the_result_is_found(real_copy: Path) -> None:
    name = "timeline.parquet"
    path = real_copy / "trials" / TRIAL / name
    frame = pl.read_parquet(path)
    frame.with_columns(pl.col("payment_committed") + pl.col("measured").cast(pl.UInt64)).write_parquet(path)
    adjust_hash(real_copy, TRIAL, name)
    (found,) = verify.recompute(read(real_copy))
    assert found.startswith(f"trials/{TRIAL}/{name}: payment_committed adds up to ")


def test_a_result_that_no_longer_agrees_with_its_latencies_is_found(real_copy: Path) -> None:
    """Both files say how many transactions ended; a consistent lie needs both, and the timeline, and every scalar."""
    trial = real_copy / "trials" / TRIAL
    add_a_latency(trial / "latency.hlog")
    found = verify.recompute(read(real_copy))
    assert any("latency.hlog" in text and "payment" in text for text in found), found


@pytest.mark.parametrize(
    "file", ["latency.hlog", "result.json", "timeline.parquet", "telemetry-cpu.parquet", "telemetry-vmstat.parquet"]
)
def test_a_cut_raw_file_is_named_not_a_crash(real_copy: Path, file: str) -> None:
    path = real_copy / "trials" / TRIAL / file
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    found = verify.recompute(read(real_copy))
    assert found
    assert not [text for text in found if TRIAL not in text and not text.startswith("report/")]
    assert any(file in text for text in found), found


@pytest.mark.parametrize(
    "metric", ["throughput_tpm", "latency_ns_p99", "cpu_user_share", "disk_written_bytes", "delivery_latency_count"]
)
def test_a_scalar_changed_in_its_last_digits_is_found(real_copy: Path, metric: str) -> None:
    def improve(content: Any) -> None:
        content["scalars"][metric] *= 1 + 1e-6

    changed(real_copy / "trials" / TRIAL / "trial.json", improve)
    adjust_hash(real_copy, TRIAL, "trial.json")
    assert verify_hashes(read(real_copy)) == []
    (found,) = verify.recompute(read(real_copy))
    assert found.startswith(f"trials/{TRIAL}/trial.json: {metric} is ")


def test_a_window_that_was_shortened_is_found(real_copy: Path) -> None:
    """Counters per second rise with nothing but one number changed, and the sums over it."""
    trial = real_copy / "trials" / TRIAL

    def shorten(content: Any) -> None:
        content["window"]["end_ns"] -= 200_000_000

    changed(trial / "trial.json", shorten)
    content = json.loads((trial / "trial.json").read_bytes())
    counters.write(trial, window=Window(**content["window"]), sources=content["telemetry"])
    (found,) = [text for text in verify.recompute(read(real_copy)) if "window" in text]
    assert found.startswith(f"trials/{TRIAL}/trial.json: window is {{'start_ns': ")
    assert "but result.json says" in found


def test_a_trial_whose_validity_is_not_the_journals_is_found(real_copy: Path) -> None:
    def leave_out(content: Any) -> None:
        content.update(valid=False, invalid_reason="too slow")

    changed(real_copy / "trials" / TRIAL / "trial.json", leave_out)
    adjust_hash(real_copy, TRIAL, "trial.json")
    (found,) = verify_hashes(read(real_copy))
    assert found == f"trials/{TRIAL}/trial.json: invalid (too slow), but the journal says valid"


def test_a_finished_run_without_one_of_its_blocks_is_found(real_copy: Path) -> None:
    journal = real_copy / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    kept = [line for line in lines if ".b02." not in json.dumps(line["entry"].get("trial"))]
    for number, line in enumerate(kept):
        line["sequence"] = number
    journal.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
    (found,) = [text for text in verify.recompute(read(real_copy)) if text.startswith("journal")]
    assert ".b02." in found
    assert found.endswith("and 3 other trials are still to run")


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of every number in a JSON tree."""
    if isinstance(tree, dict | list):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        return [leaf for key, value in items for leaf in leaves(value, (*path, key))]
    return [path] if isinstance(tree, int | float) and not isinstance(tree, bool) else []


def test_any_number_of_the_reports_analysis_that_was_changed_is_found(real_copy: Path) -> None:
    """Not a sample: every number of the whole analysis, one after the other."""
    stored = json.loads((real_copy / "report" / "report.json").read_bytes())["analysis"]
    numbers = leaves(stored)
    assert len(numbers) > 200
    for path in numbers:
        edited = json.loads(json.dumps(stored))
        node = edited
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = (node[path[-1]] + 1) * 1.001
        assert len(verify.differences(edited, stored)) == 1, path


def test_a_changed_number_in_the_report_is_found(real_copy: Path) -> None:
    def flatter(content: Any) -> None:
        content["analysis"]["cells"][0]["comparisons"]["throughput_tpm"][0]["ratio"]["estimate"] *= 1.01

    changed(real_copy / "report" / "report.json", flatter)
    (found,) = verify.recompute(read(real_copy))
    assert found.startswith("report/report.json: cells[0].comparisons.throughput_tpm[0].ratio.estimate is ")


def test_the_report_of_a_run_that_was_not_finished_then_is_stale_now(real_copy: Path) -> None:
    """Two reports: one from when the run had an end, one from before. Neither fits the other's journal."""
    journal = real_copy / "journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    assert '"run_finished"' in lines[-1]
    journal.write_text("".join(lines[:-1]), encoding="utf-8")
    found = verify.recompute(read(real_copy))
    assert any(text.startswith("report/report.json: finished is True but recomputed False") for text in found), found


def test_the_report_of_a_run_that_went_on_is_stale(real_copy: Path) -> None:
    """One trial more than the report knew."""
    journal = real_copy / "journal.jsonl"
    whole = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    last = max(index for index, line in enumerate(whole) if '"trial_finished"' in line)
    journal.write_text("".join(whole[:last]), encoding="utf-8")
    found = verify.recompute(read(real_copy))
    assert any("counts.finished is 12 but recomputed 11" in text for text in found), found
