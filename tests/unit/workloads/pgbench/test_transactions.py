"""pgbench's log becomes our files without loss: sums, histograms and intervals are those of its every line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import example, given
from hypothesis import strategies as st
from support.pgbench import ASKED, BOOTED_NS, Kept, kept

from fairtrial.errors import PlaceError
from fairtrial.metrics import consistency, latency
from fairtrial.record.models import Window
from fairtrial.workloads.pgbench import agreeing
from fairtrial.workloads.pgbench.transactions import FILE, TransactionHistograms, edges, sums, tallied
from fairtrial.workloads.pgbench.transactions import kept as keep

NAMES = list(ASKED)


def lines(run: Kept) -> list[list[str]]:
    return [line.split() for log in run.logs for line in log.read_text().splitlines()]


def result(run: Kept) -> dict[str, Any]:
    content = run.measured().files["result.json"]
    assert isinstance(content, bytes)
    found: dict[str, Any] = json.loads(content)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_what_the_log_adds_up_to_is_what_pgbench_reports(tmp_path: Path, name: str) -> None:
    trial = kept(name, tmp_path).trial()
    assert agreeing.contradictions(trial, kept(name, tmp_path).parameters) == []
    assert consistency.contradictions(trial) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_line_is_kept(tmp_path: Path, name: str) -> None:
    run = kept(name, tmp_path)
    run.measured()
    table = pl.read_parquet(tmp_path / FILE)
    assert sorted(table["time_us"].to_list()) == sorted(end_ns // 1000 for end_ns in run.ends_ns())
    words = [line[2] for line in lines(run)]
    assert table["outcome"].drop_nulls().sort().to_list() == sorted(word for word in words if not word.isdigit())
    assert table["latency_us"].sum() == sum(int(word) for word in words if word.isdigit())
    assert table["latency_us"].null_count() == sum(not word.isdigit() for word in words)


def test_failures_and_retries_are_told_by_script(tmp_path: Path) -> None:
    found = result(kept("mixed", tmp_path))
    told = {
        kind: [outcome[name] for name in ("committed", "failed", "retried")]
        for kind, outcome in found["transactions"].items()
    }
    assert told == {"pay": [39, 5, 30], "dead": [29, 1, 16], "select_only": [46, 0, 0]}
    assert found["errors"] == [
        {"kind": "serialization", "count": 5},
        {"kind": "deadlock", "count": 1},
        {"kind": "retried", "count": 46},
    ]


def test_an_open_loop_has_lateness_and_tells_what_it_skipped(tmp_path: Path) -> None:
    run = kept("rated", tmp_path)
    found = result(run)
    assert (found["skipped"], found["late"]) == (147, 67)
    lags = [int(line[6]) for line in lines(run) if line[2].isdigit()]
    assert found["lag_us"]["sum"] == sum(lags)
    (late,) = latency.read(run.trial(), file="lateness.hlog").values()
    assert late.n == len(lags) == 151
    assert late.max_ns == pytest.approx(max(lags) * 1000, rel=0.001)


@pytest.mark.parametrize("name", NAMES)
def test_intervals_add_up_and_have_the_transactions_that_ended_in_them(tmp_path: Path, name: str) -> None:
    run = kept(name, tmp_path)
    measured = run.measured()
    content = measured.files["timeline.parquet"]
    assert isinstance(content, bytes)
    frame = pl.read_parquet(io.BytesIO(content))
    starts = frame["time_ns"].to_list()
    assert measured.window is not None
    assert starts[0] == measured.window.start_ns
    committed = frame.select(pl.sum_horizontal(pl.selectors.ends_with("_committed"))).to_series().to_list()
    expected = [0] * len(starts)
    for line, end_ns in zip(lines(run), run.ends_ns(), strict=True):
        if line[2].isdigit():
            expected[max(number for number, start in enumerate(starts) if start <= end_ns)] += 1
    assert committed == expected


@pytest.mark.parametrize(
    ("name", "kinds", "many"), [("mixed", ("pay", "dead", "select_only"), 3), ("rated", ("pay",), 4)]
)
def test_the_latency_log_has_a_line_for_each_interval_and_script(
    tmp_path: Path, *, name: str, kinds: tuple[str, ...], many: int
) -> None:
    trial = kept(name, tmp_path).trial()
    tags = [line.split(",")[0] for line in (trial / "latency.hlog").read_text().splitlines() if line.startswith("Tag=")]
    assert set(tags) == {f"Tag={kind}" for kind in kinds}
    frame = pl.read_parquet(trial / "timeline.parquet")
    assert len(tags) == sum(int((frame[f"{kind}_committed"] > 0).sum()) for kind in kinds) == many


def test_percentiles_are_of_the_logged_latencies(tmp_path: Path) -> None:
    run = kept("plain", tmp_path)
    (found,) = latency.read(run.trial()).values()
    exact = sorted(int(line[2]) for line in lines(run))
    assert found.percentile_ns(50) == pytest.approx(exact[29] * 1000, rel=0.001)
    assert found.percentile_ns(95) == pytest.approx(exact[56] * 1000, rel=0.001)


def test_a_rest_of_less_than_half_an_interval_belongs_to_the_last_one(tmp_path: Path) -> None:
    run = kept("plain", tmp_path)
    keep(run.logs, tmp_path / FILE, parameters=run.parameters, shift_us=BOOTED_NS // 1000)
    found = edges(tmp_path / FILE)
    assert found is not None
    for length_ns, many in ((1_400_000_000, 1), (1_600_000_000, 2), (100_000, 1)):
        window = Window(start_ns=found.start_ns, end_ns=found.start_ns + length_ns)
        assert len(TransactionHistograms.of(tmp_path / FILE, run.parameters, window=window).starts_ns) == many


def test_a_thread_without_a_transaction_has_an_empty_log(tmp_path: Path) -> None:
    run = kept("plain", tmp_path)
    (tmp_path / "plain-2.log").touch()
    assert result(run)["transactions"]["tpcb_like"]["committed"] == 60


@pytest.mark.parametrize("damage", ["0 1 x7 0 1795340843 55989\n", "0 1\n", "0 1 12 0 1795340843 5598x\n"])
def test_a_damaged_log_is_refused(tmp_path: Path, damage: str) -> None:
    run = kept("plain", tmp_path)
    run.logs[1].write_text(run.logs[1].read_text() + damage)
    with pytest.raises(PlaceError, match="damaged"):
        keep(run.logs, tmp_path / FILE, parameters=run.parameters, shift_us=0)


def test_a_log_that_is_cut_is_not_what_pgbench_reports(tmp_path: Path) -> None:
    run = kept("plain", tmp_path)
    run.logs[0].write_text("".join(run.logs[0].read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(PlaceError, match=r"differs from its report: result.json: 59 committed of all, but"):
        run.measured()


def test_a_log_without_a_transaction_is_no_log_of_this_run(tmp_path: Path) -> None:
    run = kept("plain", tmp_path)
    ran = run.ran()
    for log in run.logs[1:]:
        log.write_text("")
    run.logs[0].write_text("0 1 skipped 0 1795340843 55989\n")
    assert ran.lines
    with pytest.raises(PlaceError, match="none of the transactions that it reports"):
        run.measured()


NUMBERS = st.lists(st.integers(0, 3_600_000_000), max_size=60)


def tally(numbers: list[int]) -> pl.DataFrame:
    return tallied(pl.LazyFrame({"latency_us": numbers}, schema={"latency_us": pl.Int64}), "latency_us", by=[])


@given(NUMBERS)
def test_sums_are_exact_however_long_transactions_took(numbers: list[int]) -> None:
    assert sums(tally(numbers)).model_dump() == {
        "n": len(numbers),
        "sum": sum(numbers),
        "squares": sum(number * number for number in numbers),
        "max": max(numbers, default=0),
    }


POWERS = sorted({(1 << bits) + by for bits in range(2, 32) for by in (-1, 0, 1)} - {(1 << 31) + by for by in (0, 1)})


@given(NUMBERS)
@example(POWERS)
def test_a_class_of_the_tally_is_one_of_the_histogram(numbers: list[int]) -> None:
    whole, classes = HdrHistogram(1, 3_600_000_000_000, 3), HdrHistogram(1, 3_600_000_000_000, 3)
    for number in numbers:
        whole.record_value(number * 1000)
    for lowest_ns, n in tally(numbers).select("class_ns", "n").iter_rows():
        classes.record_value(lowest_ns, n)
    assert classes.encode() == whole.encode()


def test_many_latencies_are_few_rows() -> None:
    assert len(tally(list(range(200_000)))) < 15_000
