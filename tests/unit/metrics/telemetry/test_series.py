"""Long files of endpoints and commands: growth, means and their error bars over the window, by expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest

from fairtrial.errors import RecordError
from fairtrial.metrics.telemetry import counters, series
from fairtrial.record.models import PlannedMetrics, Window
from fairtrial.study.service_counters import CounterMetric

S = 1_000_000_000
WINDOW = Window(start_ns=2 * S, end_ns=6 * S)
Reading = Mapping[str, float]


def write(
    directory: Path, readings: Sequence[Reading | None], *, source: str = "prometheus-1", took_ns: Sequence[int] = ()
) -> None:
    """One reading a second from second 0 on, whose middle is the second; None is one that is missed."""
    rows, missed = [], 0
    for second, reading in enumerate(readings):
        half_ns = (took_ns[second] if took_ns else 0) // 2
        missed += reading is None
        told = {**(reading or {}), series.UP: float(reading is not None), series.MISSED: float(missed)}
        for name, value in told.items():
            kind = "counter" if "_total" in name else "gauge"
            rows.append((second * S - half_ns, second * S + half_ns, name, kind, value))
    columns = ["time_ns", "end_ns", "series", "type", "value"]
    pl.DataFrame(rows, schema=columns, orient="row").write_parquet(directory / f"telemetry-{source}.parquet")


def computed(directory: Path, *, source: str = "prometheus", **expressions: str) -> series.CounterScalars:
    own = {
        name: CounterMetric.model_validate({source: expression, "better": "lower"})
        for name, expression in expressions.items()
    }
    definitions = {name: metric.definition(name) for name, metric in own.items()}
    metrics = PlannedMetrics(primary=list(own), own=own, definitions=definitions)
    return series.compute(directory, window=WINDOW, metrics=metrics)


def value(directory: Path, expression: str, *, source: str = "prometheus") -> float:
    found = computed(directory, source=source, wanted=expression)
    assert found.lacking == ""
    return found.scalars["wanted"]


def reason(directory: Path, expression: str) -> str:
    found = computed(directory, wanted=expression)
    assert "wanted" not in found.scalars
    return found.lacking


def steady(**rates: float) -> list[Reading]:
    names = {name: f'{name}_total{{code="{code}"}}' for name, code in (("a", "200"), ("b", "500"))}
    return [{names[name]: 7 + rate * second for name, rate in rates.items()} for second in range(9)]


def test_rate_and_delta_are_growth_inside_the_window_and_unnamed_labels_are_summed(tmp_path: Path) -> None:
    readings = [{'a_total{code="200"}': 5 + 10.0 * second, 'a_total{code="500"}': 2.0 * second} for second in range(9)]
    write(tmp_path, readings)
    assert value(tmp_path, "rate(a_total)") == pytest.approx(12)
    assert value(tmp_path, "delta(a_total)") == pytest.approx(48)
    assert value(tmp_path, 'delta(a_total{code="500"})') == pytest.approx(8)
    assert value(tmp_path, 'delta(a_total{code!~"5.."})') == pytest.approx(40)
    assert value(tmp_path, 'delta(a_total{code="404"})') == 0.0


def test_edges_between_readings_are_interpolated(tmp_path: Path) -> None:
    write(tmp_path, [{"a_total": each} for each in (0.0, 0.0, 0.0, 10.0, 10.0, 10.0, 10.0, 30.0, 30.0)])
    own = {"wanted": CounterMetric(prometheus="delta(a_total)", better="lower")}
    metrics = PlannedMetrics(primary=["wanted"], own=own, definitions={})
    window = Window(start_ns=int(2.5 * S), end_ns=int(6.25 * S))
    found = series.compute(tmp_path, window=window, metrics=metrics).scalars
    assert found["wanted"] == pytest.approx(5 + 5)
    assert found["wanted_error"] == pytest.approx(5 + 15), "it may be 10 + 20 or nothing: what grew beside the edges"


def test_a_counter_that_begins_anew_or_joins_others_counts_from_zero_and_one_that_goes_keeps_what_it_had(
    tmp_path: Path,
) -> None:
    write(tmp_path, [{"a_total": each} for each in (90.0, 100.0, 110.0, 120.0, 3.0, 13.0, 23.0, 33.0)])
    assert value(tmp_path, "delta(a_total)") == pytest.approx(10 + 3 + 20)
    other: Reading = {'a_total{x="1"}': 1.0}
    write(tmp_path, [other] * 4 + [{**other, 'a_total{x="2"}': each} for each in (4.0, 5.0)] + [other] * 3)
    assert value(tmp_path, "delta(a_total)") == pytest.approx(5)


def test_a_counter_without_another_of_its_metric_before_has_an_unknown_past(tmp_path: Path) -> None:
    x: Reading = {"x": 1.0}
    known = [{**x, "a_total": 99_000 + 10.0 * second} for second in range(9)]
    write(tmp_path, [x, *known[1:]])
    assert value(tmp_path, "rate(a_total)") == pytest.approx(10), "told before the window"
    write(tmp_path, [x, x, x, *known[3:]])
    assert "a_total appears inside the measurement window with an unknown past" in reason(tmp_path, "rate(a_total)")
    counters.write(tmp_path, window=WINDOW, sources=["prometheus-1"])
    summary = pl.read_json(tmp_path / counters.FILE).to_dicts()[0]
    assert "prometheus-1:a_total" not in summary["grown"]


def test_gauges_have_a_mean_and_a_maximum_of_their_sum_and_may_fall(tmp_path: Path) -> None:
    write(tmp_path, [{'g{a="1"}': float(second), 'g{a="2"}': 10.0 - 2 * second} for second in range(9)])
    assert value(tmp_path, "mean(g)") == pytest.approx(10 - 4)
    assert value(tmp_path, "max(g)") == pytest.approx(8)
    assert value(tmp_path, 'max(g{a="1"})') == pytest.approx(6)
    assert value(tmp_path, "delta(g)") == pytest.approx(-4)
    write(tmp_path, [{"g": 4.0}, {"x": 0.0}] * 4 + [{"g": 4.0}])
    assert value(tmp_path, "mean(g)") == pytest.approx(4), "a reading without the metric says nothing of it"
    write(tmp_path, [{'g{a="1"}': 4.0, 'g{a="2"}': 2.0}, {'g{a="1"}': 4.0}] * 4 + [{'g{a="1"}': 4.0, 'g{a="2"}': 2.0}])
    assert value(tmp_path, "mean(g)") == pytest.approx(5), "a series that is missing where others are told is 0"


def test_several_endpoints_are_summed_and_commands_are_apart(tmp_path: Path) -> None:
    write(tmp_path, [{"a_total": 3.0 * second, "g": 1.0} for second in range(9)])
    write(tmp_path, [{"a_total": 4.0 * second, "g": 2.0} for second in range(9)], source="prometheus-2")
    write(tmp_path, [{"a_total": 5.0 * second} for second in range(9)], source="command-1")
    assert value(tmp_path, "rate(a_total)") == pytest.approx(7)
    assert value(tmp_path, "max(g)") == pytest.approx(3)
    assert value(tmp_path, "rate(a_total)", source="command") == pytest.approx(5)


def test_readings_that_take_time_leave_an_error_of_what_grows_meanwhile(tmp_path: Path) -> None:
    readings = [{"a_total": 10.0 * second, "g": 1.0} for second in range(9)]
    write(tmp_path, readings)
    exact = computed(tmp_path, wanted="rate(a_total)", level="mean(g)").scalars
    assert exact["wanted_error"] == 0.0
    assert "level_error" not in exact
    took_ns = [0, 0, S // 5, 0, 0, 0, S // 10, 0, 0]
    write(tmp_path, readings, took_ns=took_ns)
    slow = computed(tmp_path, wanted="delta(a_total)", rate="rate(a_total)").scalars
    assert slow["wanted"] == pytest.approx(40)
    assert slow["wanted_error"] == pytest.approx(10 * 0.1 + 10 * 0.05)
    assert slow["rate_error"] == pytest.approx(slow["wanted_error"] / 4)
    assert slow["series_reading_s_max"] == pytest.approx(0.2)


def test_readings_that_are_missed_are_counted_and_a_hole_across_an_edge_makes_the_metric_impossible(
    tmp_path: Path,
) -> None:
    readings: list[Reading | None] = [{"a_total": 10.0 * second} for second in range(9)]
    readings[4] = None
    write(tmp_path, readings)
    found = computed(tmp_path, wanted="rate(a_total)")
    assert found.scalars["wanted"] == pytest.approx(10)
    assert found.scalars["series_samples_missed"] == 1.0
    write(tmp_path, [*readings[:6], *[None] * 3])
    assert reason(tmp_path, "rate(a_total)") == (
        "metric wanted cannot be computed: readings are missing at an edge of the measurement window"
    )


def test_one_endpoint_that_stops_makes_a_sum_impossible(tmp_path: Path) -> None:
    write(tmp_path, [{"a_total": 3.0 * second} for second in range(9)])
    write(tmp_path, [*[{"a_total": 4.0}] * 4, *[None] * 5], source="prometheus-2")
    assert "readings are missing" in reason(tmp_path, "rate(a_total)")


def test_what_cannot_be_computed_says_why(tmp_path: Path) -> None:
    assert "nothing that was read is called a_total" in reason(tmp_path, "rate(a_total)")
    write(tmp_path, steady(a=1))
    assert "nothing that was read is called c_total" in reason(tmp_path, "rate(c_total)")
    assert "no series of a_total has the label status" in reason(tmp_path, 'rate(a_total{status="200"})')
    assert "a_total is a counter, which has no mean; use `rate`" in reason(tmp_path, "mean(a_total)")
    path = tmp_path / "telemetry-prometheus-1.parquet"
    named = pl.col("series").str.replace(r"^a_total.*", "a_total{a.b}")
    pl.read_parquet(path).with_columns(named).write_parquet(path)
    assert "a series of a_total has no readable labels" in reason(tmp_path, "rate(a_total)")
    pl.read_parquet(path).with_columns(value=pl.lit("many")).write_parquet(path)
    with pytest.raises(RecordError, match="cannot be read"):
        computed(tmp_path, wanted="rate(a_total)")
    path.write_bytes(b"no file")
    with pytest.raises(RecordError, match="cannot be read"):
        computed(tmp_path, wanted="rate(a_total)")


def test_a_metric_in_no_role_is_computed_and_does_not_matter(tmp_path: Path) -> None:
    own = {"wanted": CounterMetric(prometheus="rate(a_total)", better="lower")}
    metrics = PlannedMetrics(primary=[], own=own, definitions={})
    assert series.compute(tmp_path, window=WINDOW, metrics=metrics) == series.CounterScalars({}, "")
    write(tmp_path, steady(a=2))
    assert series.compute(tmp_path, window=WINDOW, metrics=metrics).scalars["wanted"] == pytest.approx(2)


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_a_reading_that_is_no_number_makes_its_metric_impossible_and_matters_in_a_role_only(
    tmp_path: Path, odd: float
) -> None:
    """A summary's quantile is NaN while it has observed nothing."""
    readings: list[Reading] = [{"g": 1.0, "h": 1.0} for _ in range(9)]
    readings[4] = {"g": odd, "h": 1.0}
    write(tmp_path, readings)
    for expression in ("mean(g)", "max(g)"):
        assert reason(tmp_path, expression) == "metric wanted cannot be computed: a reading of g is NaN or infinite"
    assert value(tmp_path, "mean(h)") == 1.0
    own = {"wanted": CounterMetric(prometheus="mean(g)", better="lower")}
    metrics = PlannedMetrics(primary=[], own=own, definitions={})
    found = series.compute(tmp_path, window=WINDOW, metrics=metrics)
    assert "wanted" not in found.scalars
    assert found.lacking == ""


def test_every_series_is_a_candidate_reason_and_those_of_the_sampler_are_not(tmp_path: Path) -> None:
    readings = [{"a_total": 2.0 * second, 'g{x="1"}': float(second), "odd": float("nan")} for second in range(9)]
    write(tmp_path, readings)
    counters.write(tmp_path, window=WINDOW, sources=["prometheus-1"])
    summary = pl.read_json(tmp_path / counters.FILE).to_dicts()[0]
    assert summary["grown"] == {"prometheus-1:a_total": pytest.approx(8)}
    assert summary["levels"] == {'prometheus-1:g{x="1"}': pytest.approx(4)}
    assert counters.contradictions(tmp_path, window=WINDOW, sources=["prometheus-1"]) == []


def test_a_thousand_new_names_at_every_reading_are_no_table_of_them_all(tmp_path: Path) -> None:
    readings = [{f'a_total{{id="{second}-{each}"}}': 1.0 for each in range(1000)} for second in range(60)]
    write(tmp_path, readings)
    found = series.read(tmp_path / "telemetry-prometheus-1.parquet")
    assert found is not None
    assert found.values.shape == (60_000,)
    assert value(tmp_path, "delta(a_total)") == pytest.approx(4000)
