"""The real fio, driven by a real agent over prepared files; skipped where there is no fio."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support.machines.places import place_here, place_in_memory

from fairtrial.errors import AgentError, PlaceError
from fairtrial.metrics import consistency, latency
from fairtrial.protocol.endpoints import FilesEndpoint
from fairtrial.protocol.generated import MeasuringProgress
from fairtrial.protocol.progress import ProgressLine
from fairtrial.wire.fake import FakeProgram
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import Drive, DriveOutcome
from fairtrial.workloads.fio import Fio, output
from fairtrial.workloads.fio.parameters import FioParameters

pytestmark = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed here")

SIZE = 64 * 4096


@pytest.fixture
def place(tmp_path: Path) -> Iterator[OpenPlace]:
    for name in ("data", "out/log", "work"):
        (tmp_path / name).mkdir(parents=True)
    with place_here(tmp_path) as found:
        yield found


def workload(**given: Any) -> Fio:
    asked = {"accesses": 400, "size": SIZE, "interval": "100ms", **given}
    return Fio(FioParameters.model_validate({name: value for name, value in asked.items() if value is not None}))


def loaded(place: OpenPlace, here: Path, **given: Any) -> None:
    endpoint = FilesEndpoint(directory=str(here / "data"))
    workload(**given).load(place, endpoint, on_progress=lambda _line: None)


def driven(place: OpenPlace, here: Path, *, seed: int = 7, **given: Any) -> DriveOutcome:
    loaded(place, here, **given)
    return drive(place, here, seed=seed, **given)


def drive(
    place: OpenPlace,
    here: Path,
    *,
    seed: int = 7,
    said: list[ProgressLine] | None = None,
    groups: tuple[str, ...] = (),
    **given: Any,
) -> DriveOutcome:
    return workload(**given).drive(
        place,
        Drive(
            endpoint=FilesEndpoint(directory=str(here / "data")),
            seed=seed,
            directory=PurePosixPath(here / "out"),
            work_directory=PurePosixPath(here / "work"),
            environment={},
            processors=None,
            groups=groups,
            on_progress=([] if said is None else said).append,
        ),
    )


def scalars(here: Path, found: DriveOutcome, **given: Any) -> dict[str, float]:
    return workload(**given).scalars(here / "out", found.window)


def document(here: Path) -> dict[str, Any]:
    text = (here / "out" / "fio.json").read_text()
    return json.JSONDecoder().raw_decode(text, text.index("{"))[0]


def test_a_trial_leaves_fios_own_files_and_ours_that_agree_with_them(place: OpenPlace, tmp_path: Path) -> None:
    found = driven(place, tmp_path, jobs=2, warm_up_accesses=30)
    assert found.invalid_reason == ""
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        "fio.job",
        "fio.json",
        "counters.json",
        "result.json",
        "latency.hlog",
        "timeline.parquet",
        "log",
    }
    assert consistency.contradictions(tmp_path / "out") == []
    figures = scalars(tmp_path, found, jobs=2)
    assert figures["accesses"] == 800 == figures["latency_count"]
    assert figures["application_read_bytes"] == 800 * 4096
    assert figures["throughput_iops"] == pytest.approx(sum(job["read"]["iops"] for job in document(tmp_path)["jobs"]))
    assert all(math.isfinite(value) for value in figures.values())
    assert figures.keys() <= workload().metrics().keys()


def test_the_log_has_fios_bins_and_mean_and_maximum_are_fios_own(place: OpenPlace, tmp_path: Path) -> None:
    found = driven(place, tmp_path)
    (job,) = document(tmp_path)["jobs"]
    bins = {output.upper_end(output.index_of(int(at))): n for at, n in job["read"]["clat_ns"]["bins"].items()}
    ours = latency.read(tmp_path / "out")["read"]
    assert dict(zip(ours.highest_ns.tolist(), ours.counts.tolist(), strict=True)) == bins
    figures = scalars(tmp_path, found)
    assert figures["latency_ns_mean"] == pytest.approx(job["read"]["clat_ns"]["mean"])
    assert figures["latency_ns_max"] == job["read"]["clat_ns"]["max"]
    # fio prints the middle of the bin whose end is ours.
    printed = job["read"]["clat_ns"]["percentile"]["50.000000"]
    assert output.index_of(int(figures["latency_ns_p50"])) == output.index_of(printed)


def test_fio_and_its_warm_up_start_in_the_groups_of_the_trial(place: OpenPlace, tmp_path: Path) -> None:
    """A process joins a group by writing itself into this file of it."""
    group = tmp_path / "group"
    group.mkdir()
    joined = group / "cgroup.procs"
    joined.touch()
    loaded(place, tmp_path, warm_up_accesses=30)
    drive(place, tmp_path, groups=(str(group),), warm_up_accesses=30)
    assert joined.read_text().strip().isdigit()
    joined.unlink()
    with pytest.raises(AgentError, match="group"):
        drive(place, tmp_path, groups=(str(group),))


def test_intervals_of_a_longer_run_are_told_apart(place: OpenPlace, tmp_path: Path) -> None:
    """Accesses of a job end in intervals of their own, however late it is: it sleeps longer than one between them."""
    found = driven(place, tmp_path, accesses=6, jobs=2, options={"thinktime": "150ms"})
    assert found.invalid_reason == ""
    lines = [line for line in (tmp_path / "out" / "latency.hlog").read_text().splitlines() if line.startswith("Tag=")]
    assert len(lines) >= 3


def test_a_run_may_end_by_its_time(place: OpenPlace, tmp_path: Path) -> None:
    found = driven(place, tmp_path, accesses=None, duration="600ms", jobs=2)
    assert found.invalid_reason == ""
    assert found.window.end_ns - found.window.start_ns >= 600_000_000


def test_seeds_follow_from_the_trials_and_are_recorded(place: OpenPlace, tmp_path: Path) -> None:
    first = driven(place, tmp_path, distribution="zipf:0.8", warm_up_accesses=10)
    asked = (tmp_path / "out" / "fio.job").read_text()
    assert f"randseed={first.effective['randseed']}\n" in asked
    assert first.effective["random_distribution"].startswith("zipf:0.8:0.")
    assert f"random_distribution={first.effective['random_distribution']}\n" in asked
    warm = (tmp_path / "work" / "warm-up.job").read_text()
    assert f"randseed={first.effective['warm_up_randseed']}\n" in warm
    assert f"random_distribution={first.effective['random_distribution']}\n" in warm
    assert first.effective["randseed"] != first.effective["warm_up_randseed"]
    second = drive(place, tmp_path, seed=8, distribution="zipf:0.8")
    assert second.effective["randseed"] != first.effective["randseed"]


def test_the_record_names_no_distribution_of_sequential_access(place: OpenPlace, tmp_path: Path) -> None:
    assert "random_distribution" not in driven(place, tmp_path, rw="read").effective


def test_the_record_says_which_fio_and_which_file_system(place: OpenPlace, tmp_path: Path) -> None:
    found = driven(place, tmp_path).effective
    assert found["fio_version"].startswith("fio-3.")
    assert len(found["fio_sha256"]) == 64
    assert found["file_system"]
    assert found["block_bytes_from"]


def test_fio_is_looked_for_as_a_drive_does(place: OpenPlace) -> None:
    workload().require(place)
    with place_in_memory(lambda _spawn: FakeProgram(code=127)) as (bare, _fake), pytest.raises(PlaceError) as raised:
        workload().require(bare)
    assert "apt install fio" in raised.value.hint


def test_warming_up_is_in_no_figure(place: OpenPlace, tmp_path: Path) -> None:
    found = driven(place, tmp_path, warm_up_accesses=5_000)
    assert scalars(tmp_path, found)["accesses"] == 400
    assert (tmp_path / "out" / "log" / "warm-up.log").exists()


def test_it_says_when_its_window_begins(place: OpenPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes wait for it; between it and the window is the start of one process: no other is started then."""
    said: list[ProgressLine] = []
    started: list[tuple[str, bool]] = []
    spawn = place.agent.spawn

    def noted(name: str, *arguments: Any, **options: Any) -> Any:
        started.append((name, bool(said)))
        return spawn(name, *arguments, **options)

    loaded(place, tmp_path)
    monkeypatch.setattr(place.agent, "spawn", noted)
    found = drive(place, tmp_path, warm_up_accesses=10, said=said)
    assert [name for name, is_said in started if is_said] == ["load", "file-counters"]
    (line,) = said
    assert isinstance(line, MeasuringProgress)
    assert line.time_ns <= found.window.start_ns
    assert Fio.announces


def test_what_was_just_written_is_not_missed(place: OpenPlace, tmp_path: Path) -> None:
    """Whoever drops this machine's page cache meanwhile adds misses, of fio's own program too, and never takes one."""
    ratios = [scalars(tmp_path, driven(place, tmp_path))["miss_ratio"] for _ in range(3)]
    assert min(ratios) == 0


def test_writes_are_counted_beside_reads(place: OpenPlace, tmp_path: Path) -> None:
    found = driven(place, tmp_path, rw="randrw", options={"rwmixread": 75})
    figures = scalars(tmp_path, found, rw="randrw")
    assert figures["read_latency_count"] + figures["write_latency_count"] == 400
    assert figures["application_written_bytes"] == 4096 * figures["write_latency_count"] > 0


def test_a_skewed_footprint_is_a_scalar(place: OpenPlace, tmp_path: Path) -> None:
    given: dict[str, Any] = {"size": 50 * 4096, "distribution": "normal:40"}
    figures = scalars(tmp_path, driven(place, tmp_path, **given), **given)
    met = {(rank * 0x61C8864680B583EB % 2**64) % 50 for rank in range(50)}
    assert figures["footprint_share"] == len(met) / 50 < 1


def test_other_shapes_have_no_footprint_that_is_known(place: OpenPlace, tmp_path: Path) -> None:
    given: dict[str, Any] = {"distribution": "zoned:60/10:40/90"}
    assert "footprint_share" not in scalars(tmp_path, driven(place, tmp_path, **given), **given)


def test_a_missing_file_makes_the_trial_invalid_in_fios_words(place: OpenPlace, tmp_path: Path) -> None:
    loaded(place, tmp_path, jobs=2)
    (tmp_path / "data" / "job.1").unlink()
    found = drive(place, tmp_path, jobs=2)
    assert found.invalid_reason == ("fio ended with exit code 1: fio: file creation disallowed by allow_file_create=0")
    assert not (tmp_path / "data" / "job.1").exists(), "fio made no file of its own"


def test_a_warm_up_that_fails_is_said_to_be_one(place: OpenPlace, tmp_path: Path) -> None:
    loaded(place, tmp_path)
    (tmp_path / "data" / "job.0").rename(tmp_path / "data" / "job.7")
    (tmp_path / "data" / "job.0").mkdir()  # there, and no file
    found = drive(place, tmp_path, warm_up_accesses=5)
    assert found.invalid_reason.startswith("warming up: fio")


def test_a_job_that_fio_refuses_is_an_error_before_anything_runs(place: OpenPlace, tmp_path: Path) -> None:
    loaded(place, tmp_path)
    with pytest.raises(PlaceError, match="fio rejects the job: <nosuch=1>"):
        drive(place, tmp_path, options={"nosuch": 1})
    assert not (tmp_path / "out" / "fio.json").exists()


def test_interval_logs_are_told_by_job(place: OpenPlace, tmp_path: Path) -> None:
    driven(place, tmp_path, jobs=2)
    assert {path.name for path in (tmp_path / "work").glob("histograms*")} == {
        "histograms_clat_hist.1.log",
        "histograms_clat_hist.2.log",
    }
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    jobs = document(tmp_path)["jobs"]
    spent_s = sum((job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1000 for job in jobs)
    assert result["client"]["user_s"] + result["client"]["system_s"] == pytest.approx(spent_s)
    assert result["client"]["max_resident_bytes"] > 0, "the rest is the kernel's accounting"
