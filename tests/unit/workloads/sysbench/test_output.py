"""sysbench's output becomes our files without loss: `printed.txt` is what a run of 1.0.20 printed on a MariaDB."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.errors import PlaceError
from fairtrial.metrics import latency
from fairtrial.record.models import Window
from fairtrial.workloads.sysbench import output
from fairtrial.workloads.sysbench.output import SysbenchCounts

PRINTED = (Path(__file__).parent / "printed.txt").read_text(encoding="utf-8")
WITHOUT_INTERVALS = "".join(line for line in PRINTED.splitlines(keepends=True) if not line.startswith("fairtrial: "))
START_NS = 1346593251768 - 1000226486
END_NS = START_NS + 3_046_400_000
WINDOW = Window(start_ns=START_NS, end_ns=END_NS)


def window(text: str, *, ended_ns: int) -> tuple[int, int]:
    found = output.result(text, ended_ns=ended_ns).window
    return found.start_ns, found.end_ns


def result(text: str) -> dict[str, Any]:
    return output.result(text, ended_ns=0).figures()


def printed(bins: str) -> str:
    """A report with other bins."""
    before, _, rest = PRINTED.partition(" distribution ------------- count\n")
    return f"{before} distribution ------------- count\n{bins} \n{rest[rest.index('SQL statistics') :]}"


def test_the_report_is_read_to_the_last_figure() -> None:
    told = output.report(PRINTED)
    assert told.counts == SysbenchCounts(events=13394, reads=0, writes=13394, others=0, errors=0, reconnects=0)
    assert told.total_s == 3.0464
    assert told.latency_ms == {"min": 0.09, "max": 19.73, "sum": 6002.32}


def test_intervals_are_whole_numbers_at_times_of_the_places_clock() -> None:
    found = output.intervals(PRINTED)
    assert [each.counts.events for each in found] == [5651, 4605, 3136]
    assert [each.end_ns for each in found] == [1346593251768, 1347593028463, 1348593015842]


def test_the_window_is_sysbenchs_own_time_on_the_places_clock() -> None:
    assert window(PRINTED, ended_ns=0) == (START_NS, END_NS)


def test_without_an_interval_the_window_ends_with_the_process() -> None:
    assert window(WITHOUT_INTERVALS, ended_ns=10**12) == (10**12 - 3_046_400_000, 10**12)


def test_a_report_on_the_last_intervals_edge_does_not_end_before_it() -> None:
    early = PRINTED.replace("3.0464s", "2.9990s")
    start_ns, end_ns = window(early, ended_ns=0)
    assert (start_ns, end_ns) == (START_NS, 1348593015842)


def test_the_timeline_adds_up_to_the_report() -> None:
    found = pl.read_parquet(io.BytesIO(output.timeline(PRINTED, window=WINDOW)))
    assert found["event_committed"].to_list() == [5651, 4605, 3136, 2]
    assert found["time_ns"].to_list() == [START_NS, 1346593251768, 1347593028463, 1348593015842]
    assert found["measured"].all()


def test_a_timeline_without_a_rest_has_no_empty_interval_at_its_end() -> None:
    whole = PRINTED.replace("events:              13394", "events:              13392").replace(
        "                           13394", "                           13392"
    )
    found = pl.read_parquet(io.BytesIO(output.timeline(whole, window=WINDOW)))
    assert found["event_committed"].to_list() == [5651, 4605, 3136]


def test_without_intervals_the_window_is_the_one_interval() -> None:
    found = pl.read_parquet(io.BytesIO(output.timeline(WITHOUT_INTERVALS, window=Window(start_ns=1, end_ns=2))))
    assert found["event_committed"].to_list() == [13394]
    assert found["time_ns"].to_list() == [1]


def test_intervals_with_more_than_the_report_are_refused() -> None:
    with pytest.raises(PlaceError, match="count more than its report"):
        output.timeline(
            PRINTED.replace("events:              13394", "events:              9"), window=Window(start_ns=1, end_ns=2)
        )


def test_the_histogram_has_every_event_and_sysbenchs_own_percentile(tmp_path: Path) -> None:
    (tmp_path / latency.FILE).write_text(output.latency_log(PRINTED, window=WINDOW))
    (found,) = latency.read(tmp_path).values()
    assert found.n == 13394
    # sysbench prints the middle of the bin in two decimals, ours is its upper end.
    assert 1.955e6 <= found.percentile_ns(95) <= 1.965e6 * (1 + output.RESOLUTION)
    assert found.mean_ns == pytest.approx(6002.32e6 / 13394, rel=output.RESOLUTION)


@given(st.floats(min_value=0.0011, max_value=99_000))
def test_a_latency_lies_in_its_bin_and_less_than_a_bins_width_below_its_upper_end(latency_ms: float) -> None:
    mult = (1024 - 1) / math.log(100_000 / 0.001)  # sb_histogram.c, `sb_histogram_init`
    index = math.floor((math.log(latency_ms) - math.log(0.001)) * mult + 0.5)  # … `sb_histogram_update`
    middle = math.exp(index / mult + math.log(0.001))
    ((upper_ns, count),) = output.bins(f"{middle:12.3f} |{'*' * 40:40} 7\n")
    assert count == 7
    assert latency_ms * 1e6 <= upper_ns <= latency_ms * 1e6 * (1 + output.RESOLUTION) + 1100  # 1 µs: three decimals


def test_bins_that_print_alike_are_one() -> None:
    assert output.bins(f"{0.001:12.3f} |{'':40} 3\n{0.001:12.3f} |{'*':40} 4\n") == [
        (output.bins(f"{0.001:12.3f} |{'':40} 1\n")[0][0], 7)
    ]


def test_the_result_is_in_the_shape_of_the_load_engines() -> None:
    found = result(
        PRINTED.replace("ignored errors:                      0 ", "ignored errors:                      5 ")
    )
    assert found["transactions"]["event"] == {
        "committed": 13394,
        "rolled_back": 0,
        "failed": 0,
        "retried": 5,
        "statements": 13394,
    }
    assert found["errors"] == [{"kind": "ignored", "count": 5}]


def test_a_script_without_statements_has_none() -> None:
    before, _, rest = PRINTED.partition("SQL statistics:")
    found = result(before + rest[rest.index("General statistics") :])
    assert found["transactions"]["event"]["statements"] == 0
    assert found["transactions"]["event"]["committed"] == 13394


def test_an_empty_histogram_is_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / latency.FILE).write_text(output.latency_log(printed(""), window=Window(start_ns=1, end_ns=2)))
    assert latency.read(tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("FATAL: no connection\n", "did not print a report"),
        (PRINTED.replace("total time:", "total tome:"), "did not print a report"),
        ("fairtrial: 12 1.5\n" + PRINTED, "damaged line: fairtrial: 12 1.5"),
        ("fairtrial: x 1.5 1 2 3 4 5 6\n" + PRINTED, "damaged line"),
        ("fairtrial: 12 1.5 1 2 3 4 5 -6\n" + PRINTED, "damaged line"),
        ("fairtrial: 12 inf 1 2 3 4 5 6\n" + PRINTED, "damaged line"),
        (f"fairtrial: {'9' * 19} 1.5 1 2 3 4 5 6\n" + PRINTED, "damaged line"),
    ],
)
def test_an_output_that_is_none_is_refused_with_what_there_is(text: str, said: str) -> None:
    with pytest.raises(PlaceError, match=said):
        output.timeline(text, window=Window(start_ns=1, end_ns=2))


@pytest.mark.parametrize("line", ["1000000000 1.5 1 2 3 4 5 6", f"{'9' * 18} {'9' * 18} 1 2 3 4 5 6"])
def test_times_that_no_clock_tells_are_refused(line: str) -> None:
    with pytest.raises(PlaceError, match="expected a window between 0 and"):
        output.result(f"fairtrial: {line}\n{PRINTED}", ended_ns=1 << 40)
    report = "".join(line for line in PRINTED.splitlines(keepends=True) if not line.startswith("fairtrial: "))
    with pytest.raises(PlaceError, match="found -"):
        output.result(report, ended_ns=1)
