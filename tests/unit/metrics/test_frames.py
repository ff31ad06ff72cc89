"""Rates of telemetry; frames of whole records are shown in `tests/unit/report/test_api.py`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from fairtrial.imports import STOPPED_BY
from fairtrial.metrics import frames
from fairtrial.record import read
from fairtrial.record.models import Window
from fairtrial.study.catalogue import TRIAL_COLUMNS

ROOT = Path(__file__).parents[3]
WINDOW = Window(start_ns=10_000_000_000, end_ns=12_000_000_000)


def test_counters_become_rates_over_the_time_between_samples() -> None:
    raw = pl.DataFrame(
        {
            "time_ns": [9_000_000_000, 11_500_000_000, 11_000_000_000],  # out of order on purpose
            "pgfault": pl.Series([100, 350, 300], dtype=pl.UInt64),
            "nr_free_pages": pl.Series([5, 3, 4], dtype=pl.UInt64),
        }
    )
    frame = frames.telemetry_rates(raw, source="vmstat", window=WINDOW)
    assert frame["second"].to_list() == [-1.0, 1.0, 1.5]
    assert frame["pgfault_per_s"].to_list() == [None, 100.0, 100.0]
    assert frame["nr_free_pages"].to_list() == [5, 4, 3]
    assert "nr_free_pages_per_s" not in frame.columns


def test_a_counter_that_steps_back_gives_a_negative_rate_not_an_overflow() -> None:
    raw = pl.DataFrame({"time_ns": [0, 1_000_000_000], "iowait": pl.Series([10, 9], dtype=pl.UInt64)})
    assert frames.telemetry_rates(raw, source="cpu", window=WINDOW)["iowait_per_s"].to_list() == [None, -1.0]


@pytest.mark.parametrize(
    ("source", "column", "counter"),
    [
        ("cpu", "user", True),
        ("memory", "MemAvailable", False),
        ("vmstat", "nr_dirty", False),
        ("vmstat", "pgscan_direct", True),
        ("disks", "vda.sectors_read", True),
        ("disks", "vda.in_flight", False),
        ("pressure", "io.some.total_us", True),
        ("process-server", "user_ticks", True),
        ("process-server", "resident_bytes", False),
        ("process-server", "read_bytes", True),
        ("process-server", "rchar", True),
        ("process-server", "threads", False),
        ("process-server", "main_thread_voluntary_switches", True),
        ("cpu", "running", False),
        ("cpu", "blocked", False),
        ("cpu", "forks", True),
        ("vmstat", "nr_dirtied", True),
        ("vmstat", "nr_dirty_threshold", False),
        ("vmstat", "nr_written", True),
        ("vmstat", "nr_writeback", False),
        ("vmstat", "nr_vmscan_write", True),
        ("vmstat", "workingset_nodes", False),
        ("vmstat", "workingset_nodereclaim", True),
    ],
)
def test_levels_have_no_rate(source: str, column: str, *, counter: bool) -> None:
    assert frames.counts(source, column) is counter


def test_a_server_s_levels_are_those_that_the_sampler_s_list_calls_so() -> None:
    listed = json.loads((ROOT / "crates/sample/src/server/counters.json").read_text())
    assert {each["kind"] for each in listed} == {"counter", "level"}
    for each in listed:
        assert frames.counts("server", each["column"]) is (each["kind"] == "counter"), each["column"]
    assert not frames.counts("lock_waits", "waited_ms")


def test_every_column_of_a_governor_is_a_counter_or_a_level() -> None:
    listed = (ROOT / "crates/govern/src/log.rs").read_text().partition("const COLUMNS")[2].partition("];")[0]
    columns = {*re.findall(r'"(\w+)"', listed), "at_4_ns"}
    levels = {column for column in columns if not frames.counts("governor", column)}
    assert columns - levels == {
        *("looks", "missed_looks", "decisions", "sets", "refused", "cpu_ns", "held_ns", "at_4_ns"),
    }
    server = json.loads((ROOT / "crates/sample/src/server/counters.json").read_text())
    assert levels <= {"answer_ns", "threads", "batch_size", *(each["column"] for each in server)}


def test_what_steps_back_in_a_real_file_is_a_level(real_run: Path) -> None:
    """Kernels let two counters of time step back (proc_stat(5)); nothing else that falls is a counter.

    But for those of devices that tests beside this one make, and make again under the same name.
    """
    may_step_back = {("cpu", "iowait"), ("cpu", "idle")}
    made_anew = re.compile(r"(dm-|loop|zram|nullb)\d")
    fallen, risen = set(), set()
    for path in sorted(real_run.glob("trials/*/telemetry-*.parquet")):
        source = path.stem.removeprefix("telemetry-")
        frame = pl.read_parquet(path).drop("time_ns").cast(pl.Int64)
        steps = frame.select(pl.all().diff())  # a device that goes leaves nulls
        fallen |= {(source, name) for name in frame.columns if (steps[name].min() or 0) < 0}
        risen |= {(source, name) for name in frame.columns if (steps[name].max() or 0) > 0}
    assert ("memory", "MemFree") in fallen
    assert ("cpu", "context_switches") in risen
    counters = [column for column in fallen - may_step_back if frames.counts(*column)]
    assert [(source, name) for source, name in counters if source != "disks" or not made_anew.match(name)] == []


def test_a_counter_of_a_real_file_has_a_rate_and_a_level_has_none(real_run: Path) -> None:
    record = read(real_run)
    for source, counter, level in (
        ("cpu", "user", "running"),
        ("vmstat", "pgfault", "nr_dirty"),
    ):
        columns = frames.telemetry(record, source).columns
        assert {counter, f"{counter}_per_s", level} <= set(columns)
        assert f"{level}_per_s" not in columns


def test_a_factor_called_like_a_column_keeps_both() -> None:
    assert frames.factor_column("users") == "users"
    assert frames.factor_column("block") == "factor_block"


def test_no_study_calls_a_metric_like_a_column_of_every_trial() -> None:
    assert {*frames.IDENTITY, STOPPED_BY} == set(TRIAL_COLUMNS)
