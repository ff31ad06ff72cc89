"""Endpoints and commands beside a trial, by the real sampler: what they tell, and what happens when they go wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl
import pytest
from support.command_line import eventually
from support.machines.exporter import FAULTS, exporter
from support.machines.places import place_here
from support.records import tiny_plan

from fairtrial.errors import SystemStartError
from fairtrial.metrics.telemetry import stream
from fairtrial.protocol.endpoints import ServiceEndpoint
from fairtrial.run.trial import sampling
from fairtrial.study.service_counters import CounterCommand, Exporter
from fairtrial.systems import Instance

NONE = Instance(endpoint=None, process=None)
FAST_S = 0.2


def a_while() -> None:
    time.sleep(0.5)


def sampled(directory: Path, *, instance: Instance = NONE, until: Callable[[], object] = a_while, **given: Any) -> str:
    """Samples for a while and makes Parquet of it; returns the sampler's log."""
    (directory / "out" / "log").mkdir(parents=True)
    plan = tiny_plan().model_copy(update=given)
    with place_here(directory) as place:
        request = sampling.request(PurePosixPath(directory / "out"), instance, plan=plan)
        sampler = sampling.Sampler(place, request)
        until()
        assert sampler.stop() == ""
    sampling.to_parquet(directory / "out")
    return (directory / "out" / "log" / "sampler.log").read_text()


def read_thrice(directory: Path) -> None:
    """Returns once the first endpoint has been read three times."""

    def times() -> int:
        found = stream.read(directory / "out" / "telemetry-prometheus-1.arrows")
        return 0 if found is None else found["time_ns"].n_unique()

    eventually(lambda: times() >= 3, "no third reading")


def rows(directory: Path, source: str = "prometheus-1") -> pl.DataFrame:
    return pl.read_parquet(directory / "out" / f"telemetry-{source}.parquet")


def test_an_endpoint_is_read_with_declared_types_and_both_times_of_each_reading(tmp_path: Path) -> None:
    with exporter() as (url, _):
        host, port = url.removeprefix("http://").removesuffix("/metrics").split(":")
        handed_in = Instance(endpoint=ServiceEndpoint(handed_in={"host": host, "numbers": port}), process=None)
        named = Exporter(url="http://{host}:{numbers}/metrics", interval=FAST_S)
        both = [named, named.model_copy(update={"match": ["lev*"]})]
        sampled(tmp_path, instance=handed_in, exporters=both, until=lambda: read_thrice(tmp_path))
    told = rows(tmp_path)
    assert set(told.select("series", "type").iter_rows()) == {
        ('ticks_total{kind="a"}', "counter"),
        ("level", "gauge"),
        ("fairtrial_up", "gauge"),
        ("fairtrial_missed_samples_total", "counter"),
    }
    assert (told["end_ns"] > told["time_ns"]).all()
    assert told["time_ns"].n_unique() >= 3
    assert "level" in rows(tmp_path, "prometheus-2")["series"]
    assert 'ticks_total{kind="a"}' not in rows(tmp_path, "prometheus-2")["series"]


def test_a_command_gives_one_value_at_each_reading(tmp_path: Path) -> None:
    commands = [
        CounterCommand(run="cat /proc/uptime", name="uptime", type="counter", regex=r"^\S+", interval=FAST_S),
        CounterCommand(run="echo '{\"a\": [3]}'", name="three", json_path="a[0]", interval=FAST_S),
    ]
    sampled(tmp_path, counter_commands=commands)
    uptime = rows(tmp_path, "command-1").filter(pl.col("series") == "uptime")
    assert uptime["type"].unique().to_list() == ["counter"]
    assert uptime["value"].is_sorted()
    assert rows(tmp_path, "command-2").filter(pl.col("series") == "three")["value"].unique().to_list() == [3.0]


@pytest.mark.parametrize("fault", list(FAULTS))
def test_what_goes_wrong_is_counted_as_missed_and_explained(tmp_path: Path, fault: str) -> None:
    with exporter(fault, after=2) as (url, went_wrong):

        def until() -> None:
            for _ in range(3):  # of the last one nobody has heard yet
                went_wrong()

        log = sampled(tmp_path, exporters=[Exporter(url=url, interval=0.4)], until=until)
    told = rows(tmp_path)
    missed = told.filter(pl.col("series") == "fairtrial_missed_samples_total")["value"].to_list()
    assert missed[0] == 0
    assert missed[-1] >= 2
    assert told.filter(pl.col("series") == "fairtrial_up")["value"].to_list()[-1] == 0
    assert f"{url} gave no sample for" in log
    assert FAULTS[fault] in log


def test_an_endpoint_that_never_answers_is_an_error_before_the_load(tmp_path: Path) -> None:
    with pytest.raises(SystemStartError, match=r"http://127\.0\.0\.1:1/metrics gives no sample: .*refused") as raised:
        sampled(tmp_path, exporters=[Exporter(url="http://127.0.0.1:1/metrics")])
    assert "telemetry" in raised.value.hint


def test_authorities_are_those_of_an_encrypted_endpoint() -> None:
    urls = ("http://h:1/metrics", "https://h:1/metrics")
    plan = tiny_plan().model_copy(update={"exporters": [Exporter(url=url, authorities="/ca.pem") for url in urls]})
    request = sampling.request(PurePosixPath("/out"), NONE, plan=plan)
    assert [each.authorities for each in request.exporters or ()] == [None, "/ca.pem"]
