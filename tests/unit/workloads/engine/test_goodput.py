"""Goodput: commits only, and only those in time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from fairtrial.metrics import latency
from fairtrial.metrics.drive import DriveResult, TransactionOutcomes
from fairtrial.record.models import Window
from fairtrial.workloads.engine import goodput

SECOND_NS = 1_000_000_000


def driven(**outcomes: tuple[int, int, int]) -> DriveResult:
    return DriveResult(
        window=Window(start_ns=1, end_ns=2),
        transactions={
            kind: TransactionOutcomes(committed=committed, rolled_back=rolled_back, failed=failed, retried=9)
            for kind, (committed, rolled_back, failed) in outcomes.items()
        },
        errors=[],
    )


def log(directory: Path, **latencies_s: list[float]) -> Path:
    lines = ["#[Histogram log format version 1.3]"]
    for kind, values in latencies_s.items():
        histogram = HdrHistogram(1, 3_600_000_000_000, 3)
        for value in values:
            histogram.record_value(int(value * SECOND_NS))
        lines.append(f"Tag={kind},1.000,1.000,0,{histogram.encode().decode()}")
    (directory / latency.FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return directory


def test_without_an_objective_every_commit_counts_and_nothing_else(tmp_path: Path) -> None:
    found = driven(new_order=(98, 2, 5), payment=(50, 0, 1))
    assert goodput.committed(tmp_path, found, None) == 148
    assert goodput.committed(tmp_path, found, None) == 148


def test_with_an_objective_late_commits_do_not_count(tmp_path: Path) -> None:
    found = driven(payment=(4, 0, 3), delivery=(2, 0, 0))
    directory = log(tmp_path, payment=[0.01, 0.1, 0.5, 2.0], delivery=[3.0, 4.0])
    assert goodput.committed(directory, found, 1.0) == 3
    assert goodput.committed(directory, found, 0.1) == 2, "an objective is met by what equals it"
    assert goodput.committed(directory, found, 60) == 6
    assert goodput.committed(directory, found, 0.001) == 0


def test_rollbacks_by_rule_are_taken_out_in_proportion(tmp_path: Path) -> None:
    directory = log(tmp_path, new_order=[0.1] * 6 + [2.0] * 2)
    found = goodput.committed(directory, driven(new_order=(6, 2, 0)), 1)
    assert found == pytest.approx(6 * 6 / 8)


def test_a_window_without_latencies_has_no_goodput(tmp_path: Path) -> None:
    assert goodput.committed(tmp_path, driven(payment=(0, 0, 7)), 1) == 0
