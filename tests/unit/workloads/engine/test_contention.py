"""Scalars of threads that take locks, from files given: known answers, and what disagrees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.errors import RecordError
from fairtrial.record.models import Window
from fairtrial.workloads.engine import contention
from fairtrial.workloads.engine.locks import Locks, LocksParameters

LOCKS = Locks(LocksParameters(duration=2.0))
WINDOW = Window(start_ns=1_000_000_000, end_ns=3_000_000_000)
THREADS = (
    {"acquisitions": 600, "handed": 100, "sampled": 6, "contended": 3, "longest_gap_ns": 40_000},
    {"acquisitions": 200, "handed": 100, "sampled": 2, "contended": 1, "longest_gap_ns": 900_000},
    {"acquisitions": 0, "handed": 0, "sampled": 0, "contended": 0, "longest_gap_ns": 2_000_000_000},
    {"acquisitions": 0, "handed": 0, "sampled": 0, "contended": 0, "longest_gap_ns": 2_000_000_000},
)
WAITS_NS = (20, 30, 30, 40, 40, 50, 1_000, 900_000)


def written(here: Path, *, done: int = 800, waits: tuple[int, ...] = WAITS_NS, **other: Any) -> Path:
    """The files of a trial of four threads, two of which got nothing."""
    told = {
        "threads": THREADS,
        "sample_every": 100,
        "turn_ns": 1.75,
        "clock_ns": 25.0,
        "lock_bytes": 128,
        "acquired": 1_000,
        "guarded": 1_000,
        "intruded": 0,
        "torn_lines": 0,
        **other,
    }
    (here / "contention.json").write_text(json.dumps(told))
    outcomes = {"committed": done, "rolled_back": 0, "failed": 0, "retried": 0}
    result = {
        "window": WINDOW.model_dump(),
        "transactions": {"acquisition": outcomes},
        "client": {"user_s": 0.0003, "system_s": 0.0001, "voluntary_switches": 80, "involuntary_switches": 4},
        "errors": [],
    }
    (here / "result.json").write_text(json.dumps(result))
    histogram = HdrHistogram(1, 3_600_000_000_000, 3)
    for wait in waits:
        histogram.record_value(wait)
    line = f"Tag=acquisition,1.000,2.000,0,{histogram.encode().decode()}\n"
    (here / "latency.hlog").write_text("#[Histogram log format version 1.3]\n" + line)
    return here


def test_every_scalar_has_the_value_that_was_worked_out_by_hand(tmp_path: Path) -> None:
    found = contention.compute(written(tmp_path), window=WINDOW)
    assert found["acquisitions"] == 800
    assert found["acquisitions_per_s"] == 400
    assert found["fairness_jain"] == pytest.approx(800**2 / (4 * (600**2 + 200**2)))
    assert (found["least_thread_share"], found["most_thread_share"]) == (0.0, 3.0)
    assert found["handed_over_share"] == 0.25
    assert found["contended_share"] == 0.5
    assert found["starvation_ns"] == 2e9
    assert found["cpu_ns_per_acquisition"] == pytest.approx(500)
    assert found["voluntary_switches_per_acquisition"] == 0.1
    assert found["involuntary_switches_per_acquisition"] == 0.005
    assert found["turn_ns"] == 1.75


def test_waits_are_those_of_timed_acquisitions(tmp_path: Path) -> None:
    found = contention.compute(written(tmp_path), window=WINDOW)
    assert found["latency_count"] == 8
    assert found["latency_ns_p50"] == 40
    assert found["latency_ns_max"] == pytest.approx(900_000, rel=0.001)
    assert "acquisition_latency_ns_p50" not in found


def test_a_window_without_acquisitions_has_no_shares(tmp_path: Path) -> None:
    nothing = [THREADS[2], THREADS[3]]
    found = contention.compute(written(tmp_path, done=0, waits=(), threads=nothing), window=WINDOW)
    assert (found["acquisitions"], found["acquisitions_per_s"]) == (0, 0)
    assert found["starvation_ns"] == 2e9
    assert not {"fairness_jain", "contended_share", "cpu_ns_per_acquisition", "latency_ns_p50"} & found.keys()


def test_what_is_defined_is_what_is_computed(tmp_path: Path) -> None:
    defined = contention.definitions()
    assert contention.compute(written(tmp_path), window=WINDOW).keys() <= defined.keys()
    assert defined["latency_ns_p99"].label == "p99 wait"
    assert defined["latency_count"].label == "timed acquisitions"


def test_only_what_needs_no_clock_is_evidence_under_emulation() -> None:
    counts = {name for name, each in contention.definitions().items() if each.kind == "count"}
    assert counts == {
        "acquisitions",
        "voluntary_switches_per_acquisition",
        "involuntary_switches_per_acquisition",
        "latency_count",
    }


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40).filter(any))
def test_jains_index_lies_between_one_thread_alone_and_all_alike(counts: list[int]) -> None:
    assert 1 / len(counts) * (1 - 1e-12) <= contention.jain(counts) <= 1 + 1e-12


@given(st.integers(1, 500), st.integers(1, 10**9))
def test_jains_index_is_the_share_of_threads_where_the_others_get_nothing(threads: int, each: int) -> None:
    assert contention.jain([each] * threads) == pytest.approx(1)
    assert contention.jain([each] * threads + [0] * threads) == pytest.approx(0.5)


def test_files_that_agree_contradict_nothing(tmp_path: Path) -> None:
    assert LOCKS.contradictions(written(tmp_path)) == []


def test_threads_that_got_more_than_the_result_says_are_named(tmp_path: Path) -> None:
    (found,) = LOCKS.contradictions(written(tmp_path, done=799))
    assert found == "contention.json: threads got 800 acquisitions, result.json says 799"


def test_a_wait_that_was_lost_is_named(tmp_path: Path) -> None:
    (found,) = LOCKS.contradictions(written(tmp_path, waits=WAITS_NS[1:]))
    assert found == "latency.hlog: 7 waits, contention.json says 8 were timed"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"guarded": 999}, "of 1000 acquisitions 999 were counted under it"),
        ({"intruded": 2}, "2 times another thread was inside"),
        ({"torn_lines": 1}, "1 guarded lines lost an addition"),
    ],
)
def test_a_lock_that_did_not_exclude_is_said_to(tmp_path: Path, wrong: dict[str, int], said: str) -> None:
    told, _ = contention.read(written(tmp_path, **wrong))
    assert said in told.not_excluded


def test_locks_that_excluded_leave_nothing_to_say(tmp_path: Path) -> None:
    told, _ = contention.read(written(tmp_path))
    assert told.not_excluded == ""


@pytest.mark.parametrize("file", ["contention.json", "result.json"])
def test_a_file_that_is_cut_is_named(tmp_path: Path, file: str) -> None:
    path = written(tmp_path) / file
    path.write_text(path.read_text()[:40])
    with pytest.raises(RecordError, match=file):
        contention.compute(tmp_path, window=WINDOW)


def test_a_window_without_length_is_no_trial(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no length"):
        contention.compute(written(tmp_path), window=Window(start_ns=5, end_ns=5))
