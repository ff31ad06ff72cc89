"""HammerDB's own output, as it printed it here: 4.12 on MariaDB 10.11, two users, a window of a minute."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairtrial.errors import PlaceError
from fairtrial.workloads.hammerdb import output
from fairtrial.workloads.hammerdb.output import HammerdbClock

PRINTED = (Path(__file__).parent / "printed.txt").read_text(encoding="utf-8")
CLOCK = HammerdbClock(before_ns=1_795_000_000_000_000_000, after_ns=1_795_000_000_000_000_200)


def result(text: str) -> dict[str, Any]:
    return output.result(text, CLOCK).figures()


def test_the_result_is_hammerdbs_own() -> None:
    told = result(PRINTED)
    assert (told["nopm"], told["tpm"], told["minutes"]) == (15794, 36823, 1)
    assert told["transactions"]["transaction"]["committed"] == 36823
    assert told["errors"] == []


def test_the_window_lies_between_the_two_counts() -> None:
    edges, counting_ns = output.edges(PRINTED, CLOCK)
    assert (edges.end_ns - edges.start_ns) / 1e9 == pytest.approx(60.080, abs=0.001)
    assert counting_ns == 5_709_000
    begun = next(note for note in output.notes(PRINTED) if note.name == "begun")
    assert edges.start_ns == begun.time_us * 1000 - 1_795_000_000_000_000_100


def test_a_clock_that_was_set_is_seen() -> None:
    assert CLOCK.moved_ns == 200
    assert HammerdbClock(before_ns=10**9, after_ns=0).moved_ns == 10**9


def test_a_run_of_several_minutes_counts_them_all() -> None:
    longer = PRINTED.replace("Timing test period of 1 in minutes", "Timing test period of 5 in minutes")
    assert result(longer)["transactions"]["transaction"]["committed"] == 5 * 36823


def test_both_ways_to_word_a_result_are_known() -> None:
    other = PRINTED.replace(
        "System achieved 15794 NOPM from 36823 MySQL TPM", "System achieved 36823 MySQL TPM at 15794 NOPM"
    )
    assert other != PRINTED
    assert result(other) == result(PRINTED)
    postgres = PRINTED.replace("MySQL TPM", "PostgreSQL TPM")
    assert result(postgres)["tpm"] == 36823


def test_output_without_a_result_or_without_a_window_is_an_error() -> None:
    cut = PRINTED.partition("Vuser 1:TEST RESULT")[0]
    with pytest.raises(PlaceError, match="did not print a TEST RESULT"):
        result(cut)
    unmarked = "".join(line for line in PRINTED.splitlines(keepends=True) if not line.endswith(" ended\n"))
    with pytest.raises(PlaceError, match="lacks the line `ended`"):
        result(unmarked)


def test_intervals_are_counts_of_the_counter_and_measured_where_they_lie_in_the_window_whole() -> None:
    frame = pl.read_parquet(io.BytesIO(output.timeline(PRINTED, CLOCK, interval_s=1)))
    edges, _counting_ns = output.edges(PRINTED, CLOCK)
    measured = frame.filter("measured")
    assert measured.height == 59
    assert measured["time_ns"].min() >= edges.start_ns  # type: ignore[operator]
    assert frame["time_ns"].max() < edges.end_ns  # type: ignore[operator]
    assert measured["transaction_committed"].sum() <= 36823
    assert measured["transaction_committed"].sum() == pytest.approx(36823, rel=0.02)
    assert frame["measured"].to_list()[-1] is False, "the one that the window's end cuts"


def test_a_wider_interval_has_as_many_of_a_counter_in_minutes() -> None:
    def committed(interval_s: int) -> list[int]:
        frame = pl.read_parquet(io.BytesIO(output.timeline(PRINTED, CLOCK, interval_s=interval_s)))
        return frame["transaction_committed"].to_list()

    assert [10 * each for each in committed(1)] == committed(10)  # by 6 where by 60


def test_the_time_profile_is_of_all_users_and_its_calls_are_not_counted_twice() -> None:
    found = output.profile(PRINTED)
    assert set(found) == {"new_order", "payment", "delivery", "order_status", "stock_level"}
    assert found["new_order"]["calls"] == 16414
    assert found["new_order"]["p95"] == 10.012
    assert found["new_order"]["p50"] < found["new_order"]["avg"] < found["new_order"]["p99"] < found["new_order"]["max"]
    assert sum(each["calls"] for each in found.values()) == pytest.approx(36823, rel=0.05)


def test_without_a_time_profile_there_is_no_latency() -> None:
    assert output.profile(PRINTED.partition("MySQL Hammerdb Time Profile")[0]) == {}


DEADLOCK = "Vuser 2:Deadlock found when trying to get lock; try restarting transaction\n"


def test_errors_that_users_went_on_after_are_counted_inside_the_window_only() -> None:
    begun = "Vuser 1:Timing test period of 1 in minutes\n"
    ended = "Vuser 1:Test complete, Taking end Transaction Count.\n"
    text = PRINTED.replace(begun, begun + DEADLOCK + DEADLOCK.replace("2:", "3:")).replace(ended, ended + DEADLOCK)
    text = text.replace("Vuser 1:Beginning", DEADLOCK + "Vuser 1:Beginning")
    assert output.errors(text) == [DEADLOCK.partition(":")[2].strip()] * 2
    assert result(text)["errors"] == [{"kind": "transaction", "count": 2}]
