"""Dips and stalls of a throughput series, each against a slow count written out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.metrics.series import stability, throughput, timeline
from fairtrial.metrics.series.throughput import Throughput
from fairtrial.record.models import Window


def by_second(values: list[float]) -> Throughput:
    n = len(values)
    return Throughput(starts_s=np.arange(n, dtype=float), widths_s=np.ones(n), per_s=np.array(values, dtype=float))


def slow_median(values: list[float], at: int) -> float:
    half = stability.ROLLING_INTERVALS // 2
    return float(np.median(values[max(0, at - half) : at + half + 1]))


def slow_level(values: list[float]) -> float:
    ranked = sorted(values)
    at = 0.9 * (len(ranked) - 1)
    best = ranked[int(at)] + (at - int(at)) * (ranked[min(int(at) + 1, len(ranked) - 1)] - ranked[int(at)])
    median = float(np.median(ranked))
    if best <= 2 * median + 2 * max(2 * median, 1) ** 0.5:
        return median
    return float(np.median([value for value in ranked if value >= best / 2]))


def is_low(value: float, median: float, *, share: float) -> bool:
    return value == 0 or (value < share * median and value < median - 4 * median**0.5)


def slowly(values: list[float]) -> dict[str, float]:
    """The same figures second by second, in plain loops."""
    whole = slow_level(values)
    medians = [median if (median := slow_median(values, at)) >= 0.5 * whole else whole for at in range(len(values))]
    low = [is_low(value, median, share=0.8) for value, median in zip(values, medians, strict=True)]
    longest = run = 0
    recovery = 0
    for at, dipped in enumerate(low):
        run = run + 1 if dipped else 0
        longest = max(longest, run)
        if dipped and run == 1:
            end = at
            while end < len(values) and low[end]:
                end += 1
            while end < len(values) and (values[end] == 0 or values[end] < 0.95 * medians[end]):
                end += 1
            recovery = max(recovery, end - at)
    return {
        "zero_throughput_s": values.count(0),
        "below_80_percent_s": sum(low),
        "below_50_percent_s": sum(is_low(v, m, share=0.5) for v, m in zip(values, medians, strict=True)),
        "longest_dip_s": longest,
        "recovery_s": recovery,
        "lost_transactions": sum((m - v) for v, m, d in zip(values, medians, low, strict=True) if d),
    }


@given(st.lists(st.integers(0, 100) | st.integers(0, 9000), min_size=stability.SMALLEST_N, max_size=150))
def test_a_slow_count_by_hand_gives_the_same(values: list[int]) -> None:
    found = stability.scalars(by_second([float(value) for value in values]))
    for name, expected in slowly([float(value) for value in values]).items():
        assert found[name] == pytest.approx(expected), name


@pytest.mark.parametrize("length", [20, 25, 30, 31, 40, 60, 120, 190])
@pytest.mark.parametrize("rate", [0.0, 300.0])
def test_a_stall_is_as_long_as_it_is_however_long_it_is(length: int, rate: float) -> None:
    """Longer than half of the rolling window it is its own median, and must not vanish by that."""
    found = stability.scalars(by_second([1000.0] * 100 + [rate] * length + [1000.0] * (300 - length)))
    assert found["longest_dip_s"] == length
    assert found["recovery_s"] == length
    assert found["below_80_percent_s"] == found["below_50_percent_s"] == length
    assert found["lost_transactions"] == pytest.approx(length * (1000 - rate))
    assert found["zero_throughput_s"] == (length if rate == 0 else 0)


def test_a_level_that_falls_by_less_than_half_is_a_level_and_no_dip() -> None:
    found = stability.scalars(by_second([1000.0] * 200 + [600.0] * 200))
    assert found["longest_dip_s"] <= stability.ROLLING_INTERVALS // 2 + 1


def test_a_dip_of_three_seconds_and_its_way_back() -> None:
    values = [10_000.0] * 50 + [7000.0, 4000.0, 0.0, 8500.0, 9000.0] + [10_000.0] * 45
    found = stability.scalars(by_second(values))
    assert found["zero_throughput_s"] == 1
    assert found["below_80_percent_s"] == found["longest_dip_s"] == 3
    assert found["below_50_percent_s"] == 2
    assert found["recovery_s"] == 5
    assert found["lost_transactions"] == 3000 + 6000 + 10_000
    assert found["throughput_p5_share"] == pytest.approx(np.percentile(values, 5) / 10_000)
    (dip,) = stability.dips(by_second(values))
    assert (dip.start_s, dip.end_s, dip.lowest_share, dip.recovered_s) == (50, 53, 0, 55)


def test_a_dip_at_the_end_lasts_until_the_end() -> None:
    (dip,) = stability.dips(by_second([100.0] * 20 + [10.0] * 3))
    assert (dip.end_s, dip.recovered_s) == (23, 23)


def test_what_rises_steadily_has_no_dips_and_only_its_noise_counts() -> None:
    random = np.random.default_rng(5)
    noise = random.normal(0, 2, 300)
    rising = np.linspace(100, 200, 300) + noise
    found = stability.scalars(by_second(list(rising)))
    assert found["below_80_percent_s"] == 0
    left = rising - np.polyval(np.polyfit(np.arange(300), rising, 1), np.arange(300))
    assert found["throughput_cv"] == pytest.approx(np.sqrt((left**2).sum() / 298) / rising.mean())


@given(st.floats(100, 1e6))
def test_seconds_and_shares_of_many_transactions_do_not_depend_on_how_many_and_losses_scale(factor: float) -> None:
    values = np.array([100.0, 90, 30, 0, 110, 100, 95, 60, 105, 100])
    one, other = (stability.scalars(by_second(list(values * each))) for each in (100.0, factor))
    for name, value in one.items():
        expected = value * factor / 100 if name == "lost_transactions" else value
        assert other[name] == pytest.approx(expected), name


@pytest.mark.parametrize(("up", "down", "rate"), [(11, 14, 0.0), (10, 15, 300.0), (4, 21, 0.0), (40, 200, 100.0)])
def test_a_collapse_of_most_of_the_window_is_the_dip_and_not_the_level(up: int, down: int, rate: float) -> None:
    """Its own median it would be, and the window as even as none."""
    values = [4000.0] * up + [rate] * down
    found = stability.scalars(by_second(values))
    assert stability.scalars(by_second(values[::-1])) | {"throughput_cv": 0} == found | {"throughput_cv": 0}
    assert found["longest_dip_s"] == found["recovery_s"] == down
    assert found["below_80_percent_s"] == found["below_50_percent_s"] == down
    assert found["lost_transactions"] == pytest.approx(down * (4000 - rate))
    assert found["throughput_p5_share"] == pytest.approx(rate / 4000)
    assert found["throughput_cv"] > 0.2
    (dip,) = stability.dips(by_second(values))
    assert dip.lowest_share == pytest.approx(rate / 4000)


def test_a_collapse_in_pieces_is_all_of_them() -> None:
    found = stability.scalars(by_second(([4000.0] * 2 + [0.0] * 3) * 6))
    assert found["below_80_percent_s"] == found["zero_throughput_s"] == 18
    assert found["longest_dip_s"] == 3
    assert found["throughput_p5_share"] == 0


@given(st.lists(st.floats(500, 1000), min_size=stability.SMALLEST_N, max_size=150))
def test_the_level_of_a_window_that_has_not_collapsed_is_its_median(values: list[float]) -> None:
    """However uneven: what is at most twice as quick as the rest makes nothing of the rest a collapse."""
    assert stability.level(np.array(values)) == np.median(values)
    found = stability.scalars(by_second(values))
    assert found["throughput_p5_share"] == pytest.approx(np.percentile(values, 5) / np.median(values))


@pytest.mark.parametrize("rate", [0.3, 1, 2, 3, 5, 10])
def test_a_few_transactions_per_second_vary_by_factors_and_have_not_collapsed(rate: float) -> None:
    """As in a guest under emulation: counting alone makes a tenth of the seconds twice as quick as the median."""
    random = np.random.default_rng(3)
    for _ in range(50):
        counts = random.poisson(rate, 60).astype(float)
        assert stability.level(counts) == np.median(counts)


def test_a_collapse_of_few_transactions_per_second_is_one() -> None:
    for quick, slow in ((8.0, 0.0), (8.0, 1.0), (100.0, 40.0)):
        assert stability.level(np.array([quick] * 10 + [slow] * 15)) == quick


def test_single_quick_seconds_do_not_make_a_collapse_of_the_others() -> None:
    values = [1000.0] * 92 + [5000.0] * 8
    assert stability.level(np.array(values)) == 1000
    assert stability.scalars(by_second(values))["longest_dip_s"] == 0


def test_a_window_without_any_throughput_is_one_dip_and_has_no_deviation() -> None:
    found = stability.scalars(by_second([0.0] * 30))
    assert found["zero_throughput_s"] == found["below_80_percent_s"] == found["below_50_percent_s"] == 30
    assert found["longest_dip_s"] == found["recovery_s"] == 30
    assert found["lost_transactions"] == 0, "there is no telling what it would have done"
    assert found["throughput_p5_share"] == 0
    assert "throughput_cv" not in found
    (dip,) = stability.dips(by_second([0.0] * 30))
    assert (dip.start_s, dip.end_s, dip.lowest_share) == (0, 30, 0)


def test_a_window_that_hardly_begins_is_a_stall_although_nothing_says_of_what() -> None:
    """Less than a tenth of the window is up: no level can be told, and nothing is nothing all the same."""
    found = stability.scalars(by_second([4000.0] * 2 + [0.0] * 23))
    assert found["longest_dip_s"] == found["below_80_percent_s"] == 23
    assert found["throughput_p5_share"] == 0


def test_too_few_seconds_have_no_median() -> None:
    assert stability.scalars(by_second([1.0] * 4)) == {}
    assert stability.dips(by_second([1.0] * 4)) == []


def written(directory: Path, counts: list[int], *, interval_ns: int) -> Window:
    start = 7_000_000_000
    times = [start + index * interval_ns for index in range(len(counts))]
    pl.DataFrame(
        {"time_ns": times, "measured": [True] * len(counts), "read_committed": pl.Series(counts, dtype=pl.UInt64)}
    ).write_parquet(directory / timeline.FILE)
    return Window(start_ns=start, end_ns=start + len(counts) * interval_ns)


def test_tenths_of_a_second_are_added_up_to_seconds_and_nothing_is_lost(tmp_path: Path) -> None:
    counts = [int(value) for value in np.random.default_rng(1).poisson(9, 123)]
    window = written(tmp_path, counts, interval_ns=100_000_000)
    seconds = stability.seconds(tmp_path, window=window)
    assert seconds.n == 12  # three tenths of a second at the end are part of the twelfth
    assert (seconds.per_s * seconds.widths_s).sum() == pytest.approx(sum(counts))
    assert seconds.length_s == pytest.approx(12.3)
    assert seconds.per_s[0] == pytest.approx(sum(counts[:10]))
    assert throughput.read(tmp_path, window=window).n == 123


@pytest.mark.parametrize("rate", [20, 40, 100, 400])
def test_a_steady_trial_has_no_dips_however_few_its_transactions(rate: float, tmp_path: Path) -> None:
    """Counting alone puts one second in six below 80 % of a median of 20."""
    counts = np.random.default_rng(4).poisson(rate / 10, 3000)
    found = stability.compute(tmp_path, window=written(tmp_path, counts.tolist(), interval_ns=100_000_000))
    names = ("zero_throughput_s", "below_80_percent_s", "below_50_percent_s", "longest_dip_s", "lost_transactions")
    assert {name: found[name] for name in names} == dict.fromkeys(names, 0)


def test_a_stall_is_found_where_counting_does_not_explain_it(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    counts = np.concatenate([random.poisson(40, 100), random.poisson(4, 3), random.poisson(40, 197)])
    window = written(tmp_path, counts.astype(int).tolist(), interval_ns=1_000_000_000)
    assert stability.compute(tmp_path, window=window)["longest_dip_s"] == 3


def test_intervals_longer_than_a_second_stay_as_they_are(tmp_path: Path) -> None:
    window = written(tmp_path, [50, 0, 55, 60, 52, 51], interval_ns=5_000_000_000)
    assert stability.compute(tmp_path, window=window)["zero_throughput_s"] == 5


def test_a_trial_without_a_timeline_has_no_such_scalars(tmp_path: Path) -> None:
    assert stability.compute(tmp_path, window=Window(start_ns=0, end_ns=10**9)) == {}


def test_the_median_of_long_intervals_is_over_as_many_and_the_metrics_say_so() -> None:
    values = np.r_[np.full(120, 100.0), np.full(30, 50.0), np.full(50, 100.0)]
    slow = Throughput(starts_s=np.arange(200) * 10.0, widths_s=np.full(200, 10.0), per_s=values)
    assert [(dip.start_s, dip.end_s) for dip in stability.dips(slow)] == [(1200, 1500)], "it is no level"
    for name in ("below_80_percent_s", "recovery_s", "lost_transactions"):
        assert "61 seconds, or intervals of the timeline" in stability.DEFINITIONS[name].source
