"""The sampler's life in a trial: waited for, ended by SIGTERM, believed if it ended well."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path, PurePosixPath

import polars as pl
from support.machines.places import place_here, place_in_memory, spawned
from support.records import tiny_plan

from fairtrial.metrics import telemetry as telemetry_files
from fairtrial.metrics.telemetry.measures import shown_columns
from fairtrial.protocol import generated as wire
from fairtrial.run.trial import sampling as telemetry
from fairtrial.systems import Instance
from fairtrial.wire.fake import FakeProgram

OUT = PurePosixPath("/var/lib/fairtrial/work/x/out")
SAMPLING = '{"sampling":["cpu"]}'
MONITORING = wire.MysqlEndpoint(socket="/s", user="root", database="mysql")
NONE = Instance(endpoint=None, process=None)


def asked(instance: Instance = NONE, *, out: PurePosixPath = OUT, interval_ms: int = 250) -> wire.Sample:
    plan = tiny_plan().model_copy(update={"telemetry_interval_ms": interval_ms, "telemetry_lock_waits": True})
    return telemetry.request(out, instance, plan=plan)


def test_it_is_asked_for_every_source_and_ended_by_a_signal() -> None:
    with place_in_memory(lambda _spawn: FakeProgram(code=None, stdout=[SAMPLING])) as (place, fake):
        sampler = telemetry.Sampler(place, asked())
        sent = wire.Sample.model_validate_json(spawned(fake, "sampler").stdin or "")
        everything = wire.Sample(
            interval_ms=250, sources=list(telemetry.SOURCES), shown=shown_columns(), output_directory=str(OUT)
        )
        assert sent == everything
        sampler.stop()
        assert [request.signal for request in fake.requests if isinstance(request, wire.Signal)] == [signal.SIGTERM]
        assert fake.files[str(OUT / "log" / "sampler.log")].decode() == SAMPLING


def test_a_server_is_asked_over_its_own_endpoint_and_not_too_often() -> None:
    def server(interval_ms: int) -> wire.SampledServer | None:
        return asked(Instance(endpoint=None, process=None, monitoring=MONITORING), interval_ms=interval_ms).server

    shortest_ms = telemetry.SHORTEST_SERVER_INTERVAL_MS
    assert server(10) == wire.SampledServer(endpoint=MONITORING, interval_ms=shortest_ms, lock_waits=True)
    assert server(2000) == wire.SampledServer(endpoint=MONITORING, interval_ms=2000, lock_waits=True)
    assert asked().server is None


def test_a_sampler_that_failed_makes_its_telemetry_unbelievable_in_its_own_words() -> None:
    with place_in_memory(lambda _spawn: FakeProgram(code=1, stderr=["no such directory"])) as (place, _fake):
        reason = telemetry.Sampler(place, asked()).stop()
    assert "code 1" in reason
    assert "no such directory" in reason


def test_a_real_sampler_leaves_streams_that_become_parquet(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        out = PurePosixPath(tmp_path / "out")
        (tmp_path / "out" / "log").mkdir(parents=True)
        sampler = telemetry.Sampler(place, asked(out=out, interval_ms=10))
        assert (tmp_path / "out" / "telemetry-cpu.arrows").exists(), "the first sample is there once it is started"
        assert sampler.stop() == ""
    (tmp_path / "out" / "telemetry-empty.arrows").touch()
    sources = telemetry.to_parquet(tmp_path / "out")
    assert {"cpu", "memory", "vmstat"} <= set(sources)
    assert "empty" not in sources
    assert list((tmp_path / "out").glob("*.arrows")) == []
    times = telemetry_files.readings(tmp_path / "out", "cpu")
    assert times.height >= 1
    assert (times["end_ns"] >= times["time_ns"]).all()
    assert "end_ns" not in telemetry_files.read(tmp_path / "out", "cpu").columns


def test_a_server_of_many_processes_is_followed_with_its_children() -> None:
    with place_in_memory(lambda _spawn: FakeProgram(code=None)) as (place, _fake):
        process = place.agent.spawn("server", ["server"])
        one = Instance(endpoint=None, process=process)
        alone, family = asked(one), asked(replace(one, is_one_process=False))
    assert (alone.processes, alone.process_trees) == ({"server": process.pid}, {})
    assert (family.processes, family.process_trees) == ({}, {"server": process.pid})


def test_another_clocks_times_are_shifted_and_the_loads_own_are_not(tmp_path: Path) -> None:
    times = pl.DataFrame({"time_ns": [100, 200], "end_ns": [110, 210], "counter": [1, 2]})
    for name in ("telemetry-cpu.arrows", "telemetry-server.arrows", "timeline.arrows"):
        times.write_ipc_stream(tmp_path / name)
    assert telemetry.to_parquet(tmp_path, shift_ns=-50) == ["cpu", "server"]
    read = {path.stem: pl.read_parquet(path).rows() for path in tmp_path.glob("*.parquet")}
    shifted = [(50, 60, 1), (150, 160, 2)]
    assert read == {"telemetry-cpu": shifted, "telemetry-server": shifted, "timeline": [(100, 110, 1), (200, 210, 2)]}


def test_a_stream_of_the_load_that_cannot_be_read_stays_and_one_of_telemetry_goes(tmp_path: Path) -> None:
    for name in ("telemetry-cpu.arrows", "timeline.arrows"):
        (tmp_path / name).write_bytes(b"no stream")
    assert telemetry.to_parquet(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ["timeline.arrows"]
