"""Scalars of an open loop against hand-computed figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from fairtrial.errors import RecordError
from fairtrial.metrics import drive
from fairtrial.record.models import Window
from fairtrial.workloads.engine import arrival_scalars as arrivals
from fairtrial.workloads.engine import oltp_scalars as oltp

WINDOW = Window(start_ns=1_000_000_000, end_ns=5_000_000_000)  # 4 s


def result(directory: Path, *, opened: bool = True, timed_out: int | None = None) -> Path:
    outcomes = {"committed": 90, "rolled_back": 0, "failed": 0, "retried": 0, "statements": 90}
    found: dict[str, Any] = {"window": WINDOW.model_dump(), "transactions": {"point_select": outcomes}, "errors": []}
    if opened:
        found["arrivals"] = {"offered": 100, "waiting": 3, "waiting_most": 8, "under_way": 2}
    if timed_out is not None:
        found["arrivals"]["timed_out"] = timed_out
    (directory / drive.FILE).write_text(json.dumps(found), encoding="utf-8")
    return directory


def late(directory: Path) -> None:
    """Two intervals: nine transactions of 1 ms, one of 20 ms."""
    lines = []
    for start_s, latenesses in ((1, np.full(9, 1_000_000)), (2, np.array([20_000_000]))):
        histogram = HdrHistogram(1, 3_600_000_000_000, 3)
        for each in latenesses:
            histogram.record_value(int(each))
        encoded = histogram.encode().decode()
        lines.append(f"Tag=lateness,{start_s}.000,1.000,20.000,{encoded}")
    (directory / arrivals.FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_lateness_is_merged_and_the_queue_is_taken_from_the_result(tmp_path: Path) -> None:
    late(result(tmp_path))
    found = arrivals.compute(tmp_path, drive.read(tmp_path), window=WINDOW)
    assert found.pop("lateness_ns_p50") == pytest.approx(1e6, rel=1e-3)
    assert found.pop("lateness_ns_p99") == pytest.approx(20e6, rel=1e-3)
    assert found.pop("lateness_ns_max") == pytest.approx(20e6, rel=1e-3)
    assert found == {"offered_per_s": 25, "queue_length_max": 8, "queue_length_end": 3, "unfinished_share": 0.05}


def test_every_scalar_is_defined_and_part_of_the_workloads_own(tmp_path: Path) -> None:
    late(result(tmp_path))
    found = arrivals.compute(tmp_path, drive.read(tmp_path), window=WINDOW)
    assert set(found) == set(arrivals.DEFINITIONS)
    assert found.items() <= oltp.compute(tmp_path, window=WINDOW).items()


def test_a_closed_loop_has_none_of_them(tmp_path: Path) -> None:
    result(tmp_path, opened=False)
    assert arrivals.compute(tmp_path, drive.read(tmp_path), window=WINDOW) == {}


def test_an_open_loop_in_which_nothing_ended_has_a_queue_and_no_lateness(tmp_path: Path) -> None:
    found = arrivals.compute(result(tmp_path), drive.read(tmp_path), window=WINDOW)
    assert set(found) == {"offered_per_s", "queue_length_max", "queue_length_end", "unfinished_share"}


def test_a_queue_of_the_ramp_up_that_is_longer_than_the_windows_offer_is_all_of_it(tmp_path: Path) -> None:
    arrived = drive.ArrivalCounts(offered=1000, waiting=1800, waiting_most=1900, under_way=4)
    driven = drive.read(result(tmp_path)).model_copy(update={"arrivals": arrived})
    assert arrivals.compute(tmp_path, driven, window=WINDOW)["unfinished_share"] == 1


def test_an_older_engine_did_not_count_who_was_under_way(tmp_path: Path) -> None:
    path = result(tmp_path) / drive.FILE
    path.write_text(path.read_text(encoding="utf-8").replace(', "under_way": 2', ""), encoding="utf-8")
    assert "unfinished_share" not in arrivals.compute(tmp_path, drive.read(tmp_path), window=WINDOW)


def test_who_was_given_up_is_a_share_of_all_who_came(tmp_path: Path) -> None:
    found = arrivals.compute(result(tmp_path, timed_out=7), drive.read(tmp_path), window=WINDOW)
    assert found["timed_out_share"] == 0.07
    assert set(found) - set(arrivals.DEFINITIONS) == set(arrivals.TIMED_OUT)


def test_a_cut_file_is_an_error(tmp_path: Path) -> None:
    late(result(tmp_path))
    path = tmp_path / arrivals.FILE
    path.write_text(path.read_text(encoding="utf-8")[:-40], encoding="utf-8")
    with pytest.raises(RecordError, match="lateness"):
        arrivals.compute(tmp_path, drive.read(tmp_path), window=WINDOW)
