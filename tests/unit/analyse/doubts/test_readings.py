"""Readings that took long are a doubt beyond the margin, readings that are missing always."""

from __future__ import annotations

from support.records import planned, tiny_plan, trial_record

from fairtrial.analyse.doubts import readings
from fairtrial.analyse.models import DOUBT_CODES, Doubt
from fairtrial.record.models import Plan
from fairtrial.study.service_counters import CounterMetric


def plan() -> Plan:
    own = {"requests": CounterMetric(prometheus="rate(requests_total)", better="higher", unit="1/s")}
    made = tiny_plan()
    definitions = {**made.metrics.definitions, "requests": own["requests"].definition("requests")}
    return made.model_copy(update={"metrics": made.metrics.model_copy(update={"own": own, "definitions": definitions})})


def found(*scalars: dict[str, float], of: Plan | None = None) -> list[Doubt]:
    used = [
        trial_record(planned(block, "a")).model_copy(update={"scalars": each})
        for block, each in enumerate(scalars, start=1)
    ]
    return list(readings.about(of or plan(), used))


def test_an_error_beyond_the_margin_is_a_doubt_about_its_metric() -> None:
    (doubt,) = found({"requests": 100.0, "requests_error": 1.9}, {"requests": -100.0, "requests_error": 3.1})
    assert doubt.code == "slow_readings"
    assert doubt.code in DOUBT_CODES
    assert doubt.metric == "requests"
    assert "in 1 of 2 used trials" in doubt.message
    assert "more than the margin of 2 %, in all.b02.a by up to 3.1 %" in doubt.message


def test_within_the_margin_or_without_growth_there_is_none() -> None:
    quiet = ({"requests": 100.0, "requests_error": 2.0}, {"requests": 0.0, "requests_error": 0.0}, {"elapsed_s": 1.0})
    assert found(*quiet) == []
    slow = {"requests": 100.0, "requests_error": 50.0}
    assert found(slow, of=tiny_plan()) == [], "nobody judges it"


def test_a_metric_of_the_places_own_counters_is_doubted_alike() -> None:
    (name,) = tiny_plan().metrics.definitions
    (doubt,) = found({name: 100.0, f"{name}_error": 3.0}, of=tiny_plan())
    assert (doubt.code, doubt.metric) == ("slow_readings", name)


def test_missed_readings_are_counted() -> None:
    (doubt,) = found({"series_samples_missed": 3.0}, {"series_samples_missed": 0.0}, {})
    assert doubt.code == "missed_readings"
    assert doubt.code in DOUBT_CODES
    assert "in 1 of 3 used trials" in doubt.message
    assert "in all.b01.a at 3" in doubt.message
