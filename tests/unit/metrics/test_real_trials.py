"""Every scalar of a real trial, computed again from its raw files by other means than `fairtrial.metrics`.

The raw files are those of the Rust load engine and sampler; arithmetic here is in whole numbers and fractions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl
import pytest
from hdrh.histogram import HdrHistogram

from fairtrial.metrics.series import timeline
from fairtrial.metrics.telemetry.window import ERROR_SHARE

HOUR_NS = 3_600_000_000_000
EXACT = 1e-9
MADE = ("dm-", "loop", "zram")  # on other devices or in memory, and perhaps no longer there: other tests make some


def trials(run: Path) -> list[Path]:
    return sorted((run / "trials").iterdir())


def stored(trial: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((trial / "trial.json").read_bytes())
    return content


def result(trial: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((trial / "result.json").read_bytes())
    return content


def histograms(trial: Path) -> dict[str, HdrHistogram]:
    """The log's lines decoded one by one and added up by the library, by transaction type."""
    found: dict[str, HdrHistogram] = {}
    for line in (trial / "latency.hlog").read_text(encoding="ascii").splitlines():
        if line.startswith("Tag="):
            tag, _start, _length, _maximum, encoded = line.removeprefix("Tag=").split(",")
            whole = found.setdefault(tag, HdrHistogram(1, HOUR_NS, 3))
            whole.add(HdrHistogram.decode(encoded))
    return found


class Counters:
    """One source of telemetry, read between samples by straight lines, in fractions."""

    def __init__(self, trial: Path, source: str) -> None:
        frame = pl.read_parquet(trial / f"telemetry-{source}.parquet")
        told = [column for column in frame.columns if not frame[column].null_count()]  # of no device that goes
        self._columns: dict[str, list[int]] = frame.select(told).to_dict(as_series=False)
        self._times = self._columns.pop("time_ns")
        self._ends = self._columns.pop("end_ns")
        window = stored(trial)["window"]
        self.start, self.end = window["start_ns"], window["end_ns"]
        self.names = list(self._columns)

    def at(self, values: Sequence[int | Fraction], time_ns: int) -> Fraction:
        if time_ns <= self._times[0]:
            return Fraction(values[0])
        for index in range(1, len(self._times)):
            left, right = self._times[index - 1], self._times[index]
            if time_ns <= right:
                return values[index - 1] + Fraction(time_ns - left, right - left) * (values[index] - values[index - 1])
        return Fraction(values[-1])

    def grown(self, *columns: str) -> Fraction:
        return sum(
            (
                max(Fraction(0), self.at(self._columns[name], self.end) - self.at(self._columns[name], self.start))
                for name in columns
                if name in self._columns
            ),
            Fraction(0),
        )

    def unsure(self, column: str) -> Fraction:
        """At each edge the rate there for as long as the slower of the readings beside it took, and a possible burst.

        That is what lies between the readings beyond what usually does, all on the larger side of the edge.
        """
        values = self._columns[column]
        inside = [value for value, time in zip(values, self._times, strict=True) if self.start <= time <= self.end]
        usual = median(after - before for before, after in pairwise(inside)) if len(inside) > 1 else 0
        total = Fraction(0)
        for edge in (self.start, self.end):
            right = next(index for index, time in enumerate(self._times) if time >= edge)
            between = slice(right - 1, right + 1)
            times, grown = self._times[between], abs(values[right] - values[right - 1])
            took = max(end - time for end, time in zip(self._ends[between], times, strict=True))
            total += Fraction(grown * took, times[1] - times[0])
            if edge < times[1]:
                larger = max(edge - times[0], times[1] - edge)
                total += Fraction(larger, times[1] - times[0]) * max(Fraction(grown - usual), 0)
        return total

    def mean(self, of: Callable[..., Fraction], *columns: str) -> Fraction:
        """Mean over the window of what `of` makes of columns at every sample; trapezia."""
        values = [of(*row) for row in zip(*(self._columns[name] for name in columns), strict=True)]
        inside = [time for time in self._times if self.start < time < self.end]
        times = [self.start, *inside, self.end]
        heights = [self.at(values, time) for time in times]
        area = sum(
            (
                Fraction(right - left) * (one + other) / 2
                for left, right, one, other in zip(times, times[1:], heights, heights[1:], strict=False)
            ),
            Fraction(0),
        )
        return area / (self.end - self.start)


def test_the_record_is_whole_and_every_trial_measured_what_its_window_says(real_run: Path) -> None:
    assert len(trials(real_run)) == 2 * 2 * 3
    for trial in trials(real_run):
        said = stored(trial)
        assert said["valid"]
        assert said["window"] == result(trial)["window"]
        assert said["window"]["end_ns"] - said["window"]["start_ns"] == 2_500_000_000


def test_every_transaction_of_the_window_has_its_latency(real_run: Path) -> None:
    for trial in trials(real_run):
        recorded = histograms(trial)
        for kind, outcome in result(trial)["transactions"].items():
            done = outcome["committed"] + outcome["rolled_back"]
            observed = recorded[kind].get_total_count() if kind in recorded else 0
            assert observed == done, (trial.name, kind)


def test_latency_scalars_are_those_of_the_library(real_run: Path) -> None:
    percentiles = {"p50": 50, "p95": 95, "p99": 99, "p999": 99.9}
    for trial in trials(real_run):
        scalars = stored(trial)["scalars"]
        recorded = histograms(trial)
        whole = HdrHistogram(1, HOUR_NS, 3)
        for one in recorded.values():
            whole.add(one)
        for prefix, histogram in {"": whole, **{f"{kind}_": one for kind, one in recorded.items()}}.items():
            if not histogram.get_total_count():  # a short window may meet none of a rare type
                assert f"{prefix}latency_count" not in scalars
                continue
            assert scalars[f"{prefix}latency_count"] == histogram.get_total_count()
            for name, percent in percentiles.items():
                assert scalars[f"{prefix}latency_ns_{name}"] == histogram.get_value_at_percentile(percent), prefix
            assert scalars[f"{prefix}latency_ns_max"] == histogram.get_max_value()
            assert scalars[f"{prefix}latency_ns_mean"] == pytest.approx(histogram.get_mean_value(), rel=EXACT)


def test_the_timeline_adds_up_to_the_result_and_starts_with_the_ramp_up(real_run: Path) -> None:
    for trial in trials(real_run):
        window = stored(trial)["window"]
        frame = pl.read_parquet(trial / "timeline.parquet")
        measured = frame.filter("measured")
        assert measured["time_ns"].min() == window["start_ns"]
        assert frame.filter(~pl.col("measured"))["time_ns"].max() < window["start_ns"]
        for kind, outcomes in result(trial)["transactions"].items():
            assert outcomes["statements"] >= 2 * outcomes["committed"], kind  # BEGIN and COMMIT at least
            for outcome in timeline.OUTCOMES:
                count = outcomes[outcome]
                assert measured[f"{kind}_{outcome}"].sum() == count, (trial.name, kind, outcome)


def test_throughput_and_failures_follow_from_the_counts(real_run: Path) -> None:
    for trial in trials(real_run):
        found, scalars = result(trial), stored(trial)["scalars"]
        counted = found["transactions"].values()
        done = sum(each["committed"] + each["rolled_back"] for each in counted)
        failed = sum(each["failed"] for each in counted)
        minutes = Fraction(found["window"]["end_ns"] - found["window"]["start_ns"], 60_000_000_000)
        assert done > 0
        assert scalars["transactions"] == done
        assert scalars["throughput_tpm"] == pytest.approx(float(done / minutes), rel=EXACT)
        new_orders = found["transactions"]["new_order"]["committed"]
        assert scalars["throughput_nopm"] == pytest.approx(float(new_orders / minutes), rel=EXACT)
        committed = sum(each["committed"] for each in counted)
        assert scalars["goodput_tpm"] == pytest.approx(float(committed / minutes), rel=EXACT)
        assert scalars["saturated_latencies"] == 0
        assert scalars["retries"] == sum(each["retried"] for each in counted)
        assert scalars["errors"] == sum(error["count"] for error in found["errors"])
        deadlocks = [error["count"] for error in found["errors"] if error["kind"] == "deadlock"]
        assert scalars["deadlocks"] == sum(deadlocks)
        assert scalars["failed_share"] == pytest.approx(failed / (done + failed), rel=EXACT)


def test_processor_shares_are_ticks_of_a_class_over_ticks_of_all(real_run: Path) -> None:
    shares = {
        "cpu_user_share": ("user", "nice"),
        "cpu_system_share": ("system", "irq", "softirq"),
        "cpu_iowait_share": ("iowait",),
        "cpu_steal_share": ("steal",),
        "cpu_idle_share": ("idle",),
    }
    every = [name for classes in shares.values() for name in classes]
    for trial in trials(real_run):
        scalars, cpu = stored(trial)["scalars"], Counters(trial, "cpu")
        assert cpu.grown(*every) > 0
        for name, classes in shares.items():
            expected = float(cpu.grown(*classes) / cpu.grown(*every))
            assert scalars[name] == pytest.approx(expected, rel=EXACT, abs=1e-12), (trial.name, name)
        switches, unsure = cpu.grown("context_switches"), cpu.unsure("context_switches")
        assert scalars["context_switches"] == pytest.approx(float(switches), rel=EXACT)
        said = unsure if unsure > ERROR_SHARE * switches else 0
        assert scalars.get("context_switches_error", 0) == pytest.approx(float(said), rel=EXACT)


def test_paging_disks_and_stalls_are_what_the_kernels_counters_grew_by(real_run: Path) -> None:
    pages = {
        "swapped_out_pages": ("pswpout",),
        "swapped_in_pages": ("pswpin",),
        "major_faults": ("pgmajfault",),
        "refaults": ("workingset_refault_anon", "workingset_refault_file", "workingset_refault"),
        "pages_scanned_direct": ("pgscan_direct",),
        "pages_reclaimed": ("pgsteal_anon", "pgsteal_file"),  # the kernels that tests run on have these
    }
    for trial in trials(real_run):
        scalars, vmstat = stored(trial)["scalars"], Counters(trial, "vmstat")
        expected = {name: vmstat.grown(*columns) for name, columns in pages.items() if {*columns} & {*vmstat.names}}
        pressure = Counters(trial, "pressure")
        window_us = Fraction(pressure.end - pressure.start, 1000)
        for what in ("cpu", "memory", "io"):
            expected[f"{what}_stall_share"] = pressure.grown(f"{what}.some.total_us") / window_us
        for name, value in expected.items():
            assert scalars[name] == pytest.approx(float(value), rel=EXACT, abs=1e-12), (trial.name, name)


def test_disk_traffic_is_that_of_whole_devices_of_this_machine(real_run: Path) -> None:
    """Whole devices as this machine's kernel lists them: partitions and devices on devices have a sign in sysfs."""

    def whole(device: str) -> bool:
        node = Path("/sys/class/block") / device
        stacked = any((node / "slaves").glob("*")) or (node / "loop").exists() or device.startswith(MADE)
        return not (node / "partition").exists() and not stacked

    for trial in trials(real_run):
        scalars, disks = stored(trial)["scalars"], Counters(trial, "disks")
        devices = [device for device in {name.rpartition(".")[0] for name in disks.names} if whole(device)]
        for metric, field in (("disk_read_bytes", "sectors_read"), ("disk_written_bytes", "sectors_written")):
            sectors = disks.grown(*(f"{device}.{field}" for device in devices))
            assert scalars[metric] == pytest.approx(float(512 * sectors), rel=EXACT), trial.name


def test_memory_levels_are_averaged_over_the_window(real_run: Path) -> None:
    for trial in trials(real_run):
        scalars, memory = stored(trial)["scalars"], Counters(trial, "memory")
        cache = memory.mean(
            lambda cached, buffers, shared: Fraction(cached + buffers - shared), "Cached", "Buffers", "Shmem"
        )
        assert scalars["page_cache_bytes_mean"] == pytest.approx(float(cache), rel=EXACT)
        inactive = memory.mean(Fraction, "Inactive(file)", "MemTotal")
        swapped = memory.mean(
            lambda total, free, cached, anonymous, shared: Fraction(
                total - free - cached, total - free - cached + anonymous + shared
            ),
            *("SwapTotal", "SwapFree", "SwapCached", "AnonPages", "Shmem"),
        )
        assert scalars["swapped_out_share"] == pytest.approx(float(swapped), rel=EXACT)
        assert scalars["inactive_file_share"] == pytest.approx(float(inactive), rel=EXACT)


def test_what_a_transaction_cost_is_the_count_over_the_transactions(real_run: Path) -> None:
    for trial in trials(real_run):
        scalars = stored(trial)["scalars"]
        per = {name: value for name, value in scalars.items() if name.endswith("_per_transaction")}
        spent_ms = per.pop("server_cpu_ms_per_transaction", None)
        assert (spent_ms is None) == ("server_cpu_s" not in scalars)
        if spent_ms is not None:
            assert spent_ms == pytest.approx(1000 * scalars["server_cpu_s"] / scalars["transactions"], rel=EXACT)
        assert len(per) >= 9
        assert "retries_per_transaction" in per
        for name, value in per.items():
            count = scalars[name.removesuffix("_per_transaction")]
            assert value == pytest.approx(count / scalars["transactions"], rel=EXACT), (trial.name, name)


def test_no_scalar_escapes_these_checks(real_run: Path) -> None:
    checked = (
        "latency_",
        "cpu_",
        "throughput_",
        "goodput_",
        "_per_transaction",
        "_pages",
        "pages_",
        "_stall_share",
        "disk_",
    )
    named = {
        *(
            "transactions",
            "errors",
            "retries",
            "deadlocks",
            "failed_share",
            "saturated_latencies",
            "context_switches",
            "major_faults",
        ),
        *("refaults", "page_cache_bytes_mean", "inactive_file_share", "swapped_out_share"),
    }
    for trial in trials(real_run):
        scalars = stored(trial)["scalars"]
        plain = [name.removesuffix("_error") for name in scalars]  # slow readings leave errors of what is made of them
        assert not [name for name in plain if name not in named and not any(part in name for part in checked)]
        assert all(math.isfinite(value) for value in scalars.values())
