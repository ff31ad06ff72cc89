"""`file_access`: what a study may ask for, what reaches the agent, and real accesses through a real agent."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from pydantic import ValidationError
from support.driven import driven_of
from support.machines.places import place_here, place_in_memory, spawned

from fairtrial.errors import PlaceError
from fairtrial.metrics import drive as drive_scalars
from fairtrial.protocol import generated as wire
from fairtrial.protocol.endpoints import FilesEndpoint
from fairtrial.protocol.generated import FileCounters, FileDrive, Medium
from fairtrial.run.trial import sampling as telemetry
from fairtrial.study.resolved import Section
from fairtrial.wire.fake import FakeProgram
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import WORKLOADS, Drive, DriveOutcome, workload_of
from fairtrial.workloads.engine.file_access import FileAccess, FileAccessParameters

BLOCKS = 64
SIZE = BLOCKS * 4096
OUT = PurePosixPath("/w/out")
EFFECTIVE = {"block_bytes": "4096"}
RESULT = driven_of(effective=EFFECTIVE, transactions={"read": {"committed": 3}, "write": {}})
EDGE = FileCounters(
    time_ns=1,
    vmstat={},
    devices={},
    accounts_processes=True,
    medium=Medium(file_system="xfs", options="rw", device="pmem0", is_dax=True, is_counted=False),
)
COUNTERS = json.dumps([EDGE.model_dump(mode="json")] * 2).encode()


def workload(**given: Any) -> FileAccess:
    asked = {"accesses": 500, "size": SIZE, **given}
    asked = {name: value for name, value in asked.items() if value is not None}
    return FileAccess(FileAccessParameters.model_validate(asked))


def drive_of(
    endpoint: FilesEndpoint,
    out: PurePosixPath,
    *,
    processors: tuple[int, ...] | None = None,
    groups: tuple[str, ...] = (),
) -> Drive:
    return Drive(
        endpoint=endpoint,
        seed=99,
        directory=out,
        work_directory=out,
        environment={},
        processors=processors,
        groups=groups,
        on_progress=lambda _line: None,
    )


def asked(result: wire.Driven = RESULT, **given: Any) -> tuple[FileDrive, DriveOutcome]:
    with place_in_memory(lambda _spawn: FakeProgram(stdout=["{}"])) as (place, fake):
        fake.files[str(OUT / "result.json")] = result.model_dump_json().encode()
        fake.files[str(OUT / "counters.json")] = COUNTERS
        driven = workload(**given).drive(place, drive_of(FilesEndpoint(directory="/d"), OUT))
        return FileDrive.model_validate_json(spawned(fake, "file-drive").stdin or ""), driven


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"engine": "libaio"}, "engine"),
        ({"iodepth": 4}, "only `io_uring`"),
        ({"engine": "mmap", "direct": True}, "`mmap` goes through the page cache"),
        ({"duration": "5s"}, "exactly one of `accesses` and `duration`"),
        ({"distribution": "zipf"}, "expected `random`"),
        ({"distribution": "zipf:0.8:0.5"}, "expected `random`"),
        ({"distribution": "zipf:0"}, "not a valid parameter of `zipf`"),
        ({"distribution": "pareto:1.5"}, "not a valid parameter of `pareto`"),
        ({"write_share": "101 %"}, "write_share"),
        ({"block_size": 4097}, "a multiple of 512"),
        ({"size": "12KiB", "block_size": "8KiB"}, "a multiple of `block_size`"),
    ],
)
def test_mistakes_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        workload(**wrong)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "distribution"),
    [
        ("random", {"kind": "random"}),
        ("zipf:0.8", {"kind": "zipf", "theta": 0.8}),
        ("pareto:0.2", {"kind": "pareto", "h": 0.2}),
        ("normal:14", {"kind": "normal", "deviation_percent": 14.0}),
    ],
)
def test_the_agent_is_asked_for_the_same_distribution(text: str, distribution: dict[str, Any]) -> None:
    found, _ = asked(distribution=text)
    assert found.distribution.model_dump() == distribution


def test_it_starts_on_the_processors_and_in_the_groups_of_the_trial() -> None:
    with place_in_memory(lambda _spawn: FakeProgram(stdout=["{}"])) as (place, fake):
        fake.files[str(OUT / "result.json")] = RESULT.model_dump_json().encode()
        fake.files[str(OUT / "counters.json")] = COUNTERS
        drive = drive_of(FilesEndpoint(directory="/d"), OUT, processors=(1, 2), groups=("/sys/fs/cgroup/client",))
        workload().drive(place, drive)
        started = spawned(fake, "file-drive")
    assert started.processors == [1, 2]
    assert started.groups == ["/sys/fs/cgroup/client"]


def test_the_agent_is_asked_for_everything_the_study_says() -> None:
    found, driven = asked(
        jobs=3, engine="io_uring", iodepth=8, direct=True, write_share="25 %", warm_up_accesses=70, interval="250ms"
    )
    assert (found.jobs, found.depth, found.engine, found.direct) == (3, 8, "io_uring", True)
    assert (found.bytes, found.block_bytes, found.write_share) == (SIZE, 4096, 0.25)
    assert (found.accesses, found.duration_s, found.warm_up_accesses) == (500, None, 70)
    assert (found.seed, found.interval_ms, found.directory) == (99, 250, "/d")
    assert found.output_directory == str(OUT)
    assert driven.effective["dax"] == "yes"
    assert driven.effective["block_bytes_from"].startswith("pgpgin")
    assert driven.invalid_reason == ""


def test_a_window_without_an_access_is_no_trial() -> None:
    _, driven = asked(driven_of(effective=EFFECTIVE, transactions={"read": {}, "write": {}}))
    assert driven.invalid_reason == "no access ended inside the measurement window"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[OpenPlace]:
    (tmp_path / "data").mkdir()
    (tmp_path / "out").mkdir()
    with place_here(tmp_path) as found:
        yield found


def accessed(place: OpenPlace, here: Path, **given: Any) -> tuple[DriveOutcome, dict[str, float]]:
    """Real files, really accessed; the trial's scalars."""
    endpoint = FilesEndpoint(directory=str(here / "data"))
    workload(**given).load(place, endpoint, on_progress=lambda _line: None)
    return again(place, here, **given)


def again(place: OpenPlace, here: Path, **given: Any) -> tuple[DriveOutcome, dict[str, float]]:
    endpoint = FilesEndpoint(directory=str(here / "data"))
    asked = workload(**given)
    driven = asked.drive(place, drive_of(endpoint, PurePosixPath(here / "out")))
    telemetry.to_parquet(here / "out")
    return driven, asked.scalars(here / "out", driven.window)


@pytest.mark.parametrize("engine", ["pread", "mmap"])
def test_every_access_is_counted_once_in_every_file(place: OpenPlace, tmp_path: Path, engine: str) -> None:
    _, scalars = accessed(place, tmp_path, jobs=2, engine=engine, write_share=0.3, warm_up_accesses=40)
    assert scalars["accesses"] == 2 * 500
    assert scalars["latency_count"] == 1000
    assert 0.2 < scalars["write_latency_count"] / 1000 < 0.4
    assert scalars["application_read_bytes"] == 4096 * scalars["read_latency_count"]
    assert scalars["application_written_bytes"] == 4096 * scalars["write_latency_count"]
    assert scalars["footprint_share"] == 1.0
    assert drive_scalars.read(tmp_path / "out").done == 1000


def test_what_was_just_written_is_in_the_page_cache(place: OpenPlace, tmp_path: Path) -> None:
    """Whoever drops this machine's page cache meanwhile adds misses, of the program itself too, and never takes one."""
    found = [accessed(place, tmp_path)[1] for _ in range(3)]
    for name in ("miss_ratio", "uncached_bytes", "storage_read_bytes"):
        assert min(scalars[name] for scalars in found) == 0, name


def test_direct_access_has_no_miss_ratio_and_its_bytes_bypass_the_cache(place: OpenPlace, tmp_path: Path) -> None:
    try:
        found = [accessed(place, tmp_path, direct=True)[1] for _ in range(3)]
    except PlaceError as error:
        if "Invalid argument" in str(error):
            pytest.skip("this file system has no direct access")
        raise
    assert not any("miss_ratio" in scalars for scalars in found)
    least = {name: min(scalars[name] for scalars in found) for name in ("uncached_bytes", "storage_read_bytes")}
    assert set(least.values()) == {500 * 4096}, "and the program itself once more where its pages were dropped"


def test_defined_metrics_are_those_that_are_measured(place: OpenPlace, tmp_path: Path) -> None:
    _, scalars = accessed(place, tmp_path)
    definitions = workload().metrics()
    assert scalars.keys() <= definitions.keys()
    assert all(math.isfinite(value) for value in scalars.values())
    assert {name for name in definitions if name.endswith("_per_access")} <= scalars.keys()


def test_it_says_when_its_window_begins() -> None:
    assert FileAccess.announces
    assert not FileAccess.is_native
    assert not WORKLOADS["command"].announces


def test_a_plan_gives_the_same_parameters_back() -> None:
    asked = workload(accesses=None, duration="200ms", write_share="25 %", distribution="zipf:0.8").parameters
    assert workload_of(Section({"file_access": asked.model_dump(mode="json")})).parameters == asked


def test_a_timed_window_ends_by_the_clock(place: OpenPlace, tmp_path: Path) -> None:
    driven, scalars = accessed(place, tmp_path, accesses=None, duration="200ms", interval="50ms")
    assert driven.window.end_ns - driven.window.start_ns == 200_000_000
    assert scalars["throughput_iops"] == scalars["accesses"] / 0.2


def test_a_block_of_another_place_is_found(place: OpenPlace, tmp_path: Path) -> None:
    accessed(place, tmp_path)
    held = bytearray((tmp_path / "data" / "job.0").read_bytes())
    held[5 * 4096 : 6 * 4096] = held[9 * 4096 : 10 * 4096]  # as a disk does that loses one write and repeats another
    (tmp_path / "data" / "job.0").write_bytes(held)
    with pytest.raises(PlaceError, match=r"job\.0 holds at byte 20480 a block that belongs at byte 36864 of job\.0"):
        again(place, tmp_path)


def test_a_missing_file_is_named(place: OpenPlace, tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match=r"cannot open .*job\.0: No such file"):
        again(place, tmp_path)


def test_the_seed_decides_which_blocks_are_met(place: OpenPlace, tmp_path: Path) -> None:
    """Equal seeds draw equal shares of writes, to the last one."""
    _, first = accessed(place, tmp_path, write_share=0.5)
    _, second = again(place, tmp_path, write_share=0.5)
    assert first["write_latency_count"] == second["write_latency_count"]
