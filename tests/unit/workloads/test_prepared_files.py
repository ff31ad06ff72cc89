"""Files of workloads: how a distribution is said, how they are loaded, and what they lie on."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support.facts import facts_of
from support.machines.places import place_here, place_in_memory, spawned

from fairtrial.errors import PlaceError
from fairtrial.protocol.endpoints import FilesEndpoint
from fairtrial.protocol.generated import FileLoad, SqliteEndpoint
from fairtrial.systems import Launch
from fairtrial.systems.files import Files, FilesParameters
from fairtrial.wire.fake import FakeProgram
from fairtrial.workloads import prepared_files
from fairtrial.workloads.engine.file_access import FileAccess, FileAccessParameters
from fairtrial.workloads.prepared_files import FileWorkload, skewed


def workload(**given: Any) -> FileWorkload[FileAccessParameters]:
    asked = {"jobs": 2, "size": 8192, "data_seed": 3, "accesses": 5_000, "warm_up_accesses": 10_000, **given}
    return FileAccess(FileAccessParameters.model_validate(asked))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("zipf:0.8", ("zipf", 0.8, None)),
        ("zipf:0.8:0.25", ("zipf", 0.8, 0.25)),
        ("pareto:0.2", ("pareto", 0.2, None)),
        ("normal:40", ("normal", 40.0, None)),
        ("random", None),
        ("zoned:60/10", None),
        ("zipf", None),
        ("zipf:-1", None),
        ("zipf:0.8:", None),
    ],
)
def test_a_skew_is_a_shape_its_parameter_and_perhaps_a_centre(
    text: str, found: tuple[str, float, float | None] | None
) -> None:
    assert skewed(text) == found


def test_loading_asks_for_a_file_per_job() -> None:
    loaded = {"content_sha256": "e" * 64, "rows": {"files": 2, "bytes": 16384}}
    with place_in_memory(lambda _spawn: FakeProgram(stdout=[json.dumps(loaded)])) as (place, fake):
        found = workload().load(place, FilesEndpoint(directory="/d"), on_progress=lambda _: None)
        asked = FileLoad.model_validate_json(spawned(fake, "file-load").stdin or "")
    assert asked == FileLoad(directory="/d", files=2, bytes=8192, seed=3)
    assert (found.content_sha256, found.rows["bytes"]) == ("e" * 64, 16384)


def test_the_real_loader_stamps_every_512_bytes_with_their_place(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        endpoint = FilesEndpoint(directory=str(tmp_path))
        first = workload().load(place, endpoint, on_progress=lambda _: None)
        held = (tmp_path / "job.1").read_bytes()
        again = workload().load(place, endpoint, on_progress=lambda _: None)
        other = workload(data_seed=4).load(place, endpoint, on_progress=lambda _: None)
    assert len(held) == 8192
    places = [int.from_bytes(held[at : at + 8], "little") for at in range(0, 8192, 512)]
    assert places == list(range(16))
    assert held != (tmp_path / "job.0").read_bytes()
    assert first == again
    assert first.content_sha256 != other.content_sha256


def test_counters_say_what_the_files_lie_on(tmp_path: Path) -> None:
    (tmp_path / "job.0").write_bytes(b"x")
    with place_here(tmp_path) as place:
        found = prepared_files.counters(place, PurePosixPath(tmp_path))
    assert found.vmstat["pgpgin"] > 0
    assert found.medium.file_system
    assert not found.medium.is_dax


def test_a_system_without_files_is_refused_with_the_one_to_name() -> None:
    with pytest.raises(PlaceError) as raised:
        prepared_files.directory(SqliteEndpoint(path="/d", busy_timeout_ms=1))
    assert "system: {files: {}}" in raised.value.hint
    with pytest.raises(PlaceError):
        prepared_files.directory(None)


def test_a_window_by_count_is_guessed_with_its_warm_up() -> None:
    assert workload().duration_s() == 3
    assert workload(duration=7.0, accesses=None).duration_s() == 9
    assert workload().disk_bytes() == 16384


def test_the_system_is_a_directory_and_nothing_runs() -> None:
    here = PurePosixPath("/data")
    launch = Launch(data_directory=here, work_directory=here, log_path=here / "log")
    files = Files(FilesParameters())
    with place_in_memory() as (place, fake):
        files.create(place, launch)
        instance = files.start(place, launch)
        files.stop(place, instance, settled=True)
        assert files.identity(place).sha256 == ""
        assert not [each for each in fake.requests if each.request == "spawn"]
    assert instance.process is None
    assert prepared_files.directory(instance.endpoint) == here
    assert not files.has_server()
    assert files.initial() == {}
    assert files.for_loading(facts_of()) is files
