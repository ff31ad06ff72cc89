"""fio's output becomes our histograms without loss: bins as fio counts them, intervals that add up to the whole run."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.errors import PlaceError
from fairtrial.metrics import latency
from fairtrial.metrics.series import timeline
from fairtrial.record.models import Window
from fairtrial.workloads.fio import output
from fairtrial.workloads.fio.document import Document
from fairtrial.workloads.fio.output import BINS

LIFE = Window(start_ns=5_000_000_000, end_ns=5_350_000_000)


def side(bins: dict[str, int], *, mean: float = 0.0, largest: int = 0) -> dict[str, Any]:
    count = sum(bins.values())
    return {
        "total_ios": count,
        "io_bytes": 4096 * count,
        "iops": 10.0 * count,
        "bw": 40.0 * count,
        "clat_ns": {"N": count, "mean": mean, "max": largest, **({"bins": bins} if bins else {})},
    }


def job(read: dict[str, int], write: dict[str, int] | None = None, **given: Any) -> dict[str, Any]:
    return {
        "jobname": "job",
        "error": 0,
        "job_runtime": 350,
        "usr_cpu": 20.0,
        "sys_cpu": 40.0,
        "read": side(read, mean=given.pop("mean", 100.0), largest=given.pop("largest", 900)),
        "write": side(write or {}),
        **given,
    }


def document(*jobs: dict[str, Any]) -> Document:
    return Document.model_validate({"jobs": jobs})


def result(*jobs: dict[str, Any]) -> dict[str, Any]:
    return output.result(document(*jobs), life=LIFE).figures()


def line(at_ms: int, counts: dict[int, int], *, direction: int = 0) -> str:
    bins = [0] * BINS
    for latency_ns, count in counts.items():
        bins[output.index_of(latency_ns)] += count
    return ", ".join(map(str, [at_ms, direction, 4096, *bins])) + "\n"


def middle(value: int) -> str:
    """What fio prints for the bin of a latency: stat.c, `plat_idx_to_val`, written down again."""
    index = output.index_of(value)
    if index < 128:
        return str(index)
    error_bits = (index >> 6) - 1
    return str(int((1 << (error_bits + 6)) + ((index % 64) + 0.5) * (1 << error_bits)))


@pytest.mark.parametrize(
    ("latency_ns", "index"),
    [
        (0, 0),
        (1, 1),
        (127, 127),
        (128, 128),  # from here on a bin is wider than a nanosecond
        (129, 128),
        (130, 129),
        (255, 191),
        (256, 192),
        (1 << 20, (15 << 6)),
        (1 << 60, BINS - 1),  # beyond the last
    ],
)
def test_a_latency_falls_into_fios_bin(latency_ns: int, index: int) -> None:
    assert output.index_of(latency_ns) == index


@given(st.integers(0, output.upper_end(BINS - 2)))
def test_a_bin_holds_its_latencies_up_to_its_end_and_no_more(latency_ns: int) -> None:
    index = output.index_of(latency_ns)
    end = output.upper_end(index)
    assert latency_ns <= end
    assert output.index_of(end) == index
    assert output.index_of(end + 1) == index + 1
    assert end - latency_ns <= latency_ns * output.RESOLUTION


def test_fio_tells_no_latencies_beyond_seventeen_seconds_apart() -> None:
    assert output.upper_end(BINS - 1) == (1 << 34) - 1
    assert output.index_of(1 << 34) == output.index_of(1 << 40) == BINS - 1


def test_what_fio_prints_for_a_bin_leads_back_to_it() -> None:
    for index in range(BINS - 1):
        assert output.index_of(int(middle(output.upper_end(index)))) == index


def test_bins_of_all_jobs_are_added_up_by_direction() -> None:
    found = document(job({middle(1000): 2}, {middle(70): 1}), job({middle(1000): 3, middle(5000): 1}))
    total = output.whole(found)
    assert total["read"][output.index_of(1000)] == 5
    assert total["read"].sum() == 6
    assert total["write"][70] == 1
    assert total["write"].sum() == 1


def test_intervals_of_all_jobs_are_added_and_the_rest_of_the_run_is_the_last() -> None:
    total = output.whole(document(job({middle(1000): 10}), job({middle(1000): 4, middle(9000): 2})))
    logs = [
        line(101, {1000: 3}) + line(203, {1000: 4}) + line(301, {1000: 3}),
        line(104, {1000: 4}) + line(198, {9000: 1}),  # stamps are ends, of which fio is a little late
    ]
    found = output.intervals(logs, total, width_ms=100, life=LIFE)
    assert [int(each.bins["read"].sum()) for each in found] == [7, 5, 3, 1]
    assert found[-1].bins["read"][output.index_of(9000)] == 1
    assert [each.start_ns - LIFE.start_ns for each in found] == [0, 100_000_000, 200_000_000, 300_000_000]
    assert found[-1].end_ns == LIFE.end_ns
    assert sum(each.bins["read"] for each in found).tolist() == total["read"].tolist()


def test_an_interval_in_which_nothing_ended_is_one_without_accesses() -> None:
    """fio logs none; between its neighbours it would have their throughput."""
    total = output.whole(document(job({middle(1000): 5})))
    found = output.intervals([line(201, {1000: 3}) + line(500, {1000: 2})], total, width_ms=100, life=LIFE)
    assert [int(each.bins["read"].sum()) for each in found] == [0, 3, 0, 0, 2]
    assert [(each.start_ns - LIFE.start_ns) // 1_000_000 for each in found] == [0, 100, 200, 300, 400]


def test_an_interval_after_the_end_of_a_run_is_no_measurement() -> None:
    total = output.whole(document(job({middle(1000): 1})))
    with pytest.raises(PlaceError, match="when it had ended"):
        output.intervals([line(10**15, {1000: 1})], total, width_ms=100, life=LIFE)


def test_a_run_shorter_than_an_interval_is_one() -> None:
    total = output.whole(document(job({middle(1000): 10})))
    (found,) = output.intervals([""], total, width_ms=1000, life=LIFE)
    assert (found.start_ns, found.end_ns) == (LIFE.start_ns, LIFE.end_ns)
    assert found.bins["read"].sum() == 10


def test_logs_that_hold_more_than_the_whole_run_are_no_measurement() -> None:
    total = output.whole(document(job({middle(1000): 2})))
    with pytest.raises(PlaceError, match="more than its whole run"):
        output.intervals([line(100, {1000: 3})], total, width_ms=100, life=LIFE)


def test_a_log_of_other_bins_is_refused() -> None:
    total = output.whole(document(job({middle(1000): 2})))
    with pytest.raises(PlaceError, match="4 fields, expected 1859"):
        output.intervals(["100, 0, 4096, 2\n"], total, width_ms=100, life=LIFE)


def test_trims_in_a_log_are_no_reads() -> None:
    total = output.whole(document(job({middle(1000): 1})))
    logs = [line(100, {1000: 1}) + line(100, {1000: 5}, direction=2)]
    assert [int(each.bins["read"].sum()) for each in output.intervals(logs, total, width_ms=100, life=LIFE)] == [1]


def written(directory: Path, jobs: list[dict[str, Any]], logs: list[str]) -> None:
    total = output.whole(document(*jobs))
    found = output.intervals(logs, total, width_ms=100, life=LIFE)
    (directory / "latency.hlog").write_text(output.latency_log(found))
    (directory / "timeline.parquet").write_bytes(output.timeline(found))


def test_our_log_gives_fios_bins_back_and_percentiles_at_their_ends(tmp_path: Path) -> None:
    values = [65, 1000, 15_008_000, 9_000_000_000]
    jobs = [job({middle(value): 10 * (place + 1) for place, value in enumerate(values)}, {middle(3000): 7})]
    written(tmp_path, jobs, [line(100, {1000: 5}) + line(200, {3000: 2}, direction=1)])
    read = latency.read(tmp_path)
    assert read.keys() == {"read", "write"}
    ends = [output.upper_end(output.index_of(value)) for value in values]
    assert read["read"].highest_ns.tolist() == ends  # our classes are finer and end where fio's do
    assert read["read"].counts.tolist() == [10, 20, 30, 40]
    assert read["write"].n == 7
    scalars = latency.compute(tmp_path)
    assert scalars["read_latency_ns_p50"] == ends[2]
    assert scalars["latency_count"] == 107


def test_the_bin_of_fifteen_milliseconds_is_131_microseconds_wide() -> None:
    """What made ten published values equal."""
    index = output.index_of(15_008_000)
    assert output.upper_end(index) - output.upper_end(index - 1) == 131_072
    assert middle(15_008_000) == "15007744"


def test_the_timeline_counts_what_ended_in_each_interval(tmp_path: Path) -> None:
    written(
        tmp_path,
        [job({middle(1000): 9}, {middle(1000): 4})],
        [line(100, {1000: 5}) + line(200, {1000: 1}, direction=1)],
    )
    frame = timeline.read(tmp_path)
    assert frame["read_committed"].to_list() == [5, 0, 4]
    assert frame["write_committed"].to_list() == [0, 1, 3]
    assert frame["measured"].all()
    rates = timeline.rates(tmp_path, window=LIFE)
    assert rates["transactions_per_s"].to_list() == pytest.approx([50, 10, 7 / 0.15])


def test_the_timeline_has_the_columns_of_the_load_engines() -> None:
    (found,) = output.intervals([], output.whole(document(job({middle(9): 1}))), width_ms=10, life=LIFE)
    frame = pl.read_parquet(io.BytesIO(output.timeline([found])))
    assert frame.columns[:6] == [
        "time_ns",
        "measured",
        "read_committed",
        "read_rolled_back",
        "read_failed",
        "read_retried",
    ]
    assert frame.schema["read_committed"] == pl.UInt64
    assert frame.schema["time_ns"] == pl.Int64


def test_the_result_adds_jobs_up_and_weighs_their_means() -> None:
    jobs = [
        job({middle(1000): 3}, mean=1000.0, largest=2000),
        job({middle(3000): 1}, {middle(10): 2}, mean=3000.0, largest=3500, job_runtime=420, total_err=2),
    ]
    found = result(*jobs)
    assert found["transactions"]["read"]["committed"] == 4
    assert found["transactions"]["write"]["committed"] == 2
    assert found["bytes_moved"] == {"read": 4 * 4096, "written": 2 * 4096}
    assert found["iops"] == 60.0
    assert found["latency"]["read"] == {"n": 4, "mean_ns": 1500.0, "max_ns": 3500.0}
    assert found["runtime_ms"] == 420
    assert found["client"]["user_s"] == pytest.approx(0.2 * (0.350 + 0.420))
    assert found["client"]["system_s"] == pytest.approx(0.4 * (0.350 + 0.420))
    assert found["errors"] == [{"kind": "io", "count": 2}]


def test_a_direction_without_accesses_has_no_mean() -> None:
    assert result(job({middle(5): 1}))["latency"]["write"] == {}


def test_a_failed_job_is_named_with_fios_number() -> None:
    assert output.failure(document(job({}), job({}, error=5))) == "fio: error 5 in 1 of 2 jobs"
    assert output.failure(document(job({}))) == ""
    assert output.failure(document()) == "fio reports no job"


@pytest.mark.parametrize("text", ["", "fio: something went wrong\n", '{"jobs": ['])
def test_output_without_a_document_is_shown(text: str) -> None:
    with pytest.raises(PlaceError, match="did not print a complete JSON document"):
        output.document(text)


def test_a_document_without_a_figure_of_its_io_names_it_on_one_line() -> None:
    with pytest.raises(PlaceError, match=r"^cannot read fio's JSON document: jobs\.0: [^\n]*missing: read\.iops$"):
        output.document('{"jobs": [{"jobname": "w", "read": {"total_ios": 1, "bw": 4}}]}')
    failed = output.document('{"jobs": [{"jobname": "w", "error": 5, "read": {"total_ios": 1}}]}')
    assert output.failure(failed) == "fio: error 5 in 1 of 1 jobs"


def test_notes_before_the_document_are_passed_over() -> None:
    assert output.document('note: both iodepth >= 1 and sync\n{"jobs": []}\n') == document()


def test_counts_stay_whole_numbers() -> None:
    total = output.whole(document(job({middle(1000): 2**40})))
    assert total["read"].dtype == np.int64
    assert total["read"].sum() == 2**40


def test_what_was_spent_before_an_access_was_the_kernels_is_a_share_of_its_whole_time() -> None:
    of_side = {"lat_ns": {"N": 3, "mean": 1000.0, "max": 2000}}
    read, write = side({"100": 3}, mean=250.0, largest=900), side({"100": 1}, mean=500.0, largest=900)
    both = job({"100": 3}) | {
        "read": read | of_side,
        "write": write | {"lat_ns": {"N": 1, "mean": 1000.0, "max": 1000}},
    }
    assert output.submission_share(document(both)) == pytest.approx(1 - (3 * 250 + 500) / 4000)
    assert output.submission_share(document(job({"100": 3}))) is None, "of a version that does not say"
