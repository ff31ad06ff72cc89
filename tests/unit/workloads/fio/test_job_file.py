"""A study's parameters as a job that fio reads: seeds, centres, ends, and options as they were given."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from fairtrial.workloads.fio import job_file
from fairtrial.workloads.fio.parameters import FioParameters
from fairtrial.workloads.tool import Life

LIFE = Life(None, 100, seed=77)


def parameters(**given: Any) -> FioParameters:
    return FioParameters.model_validate({"accesses": 100, **given})


def options(life: Life = LIFE, *, chosen: str = "random", directory: str = "/d", **given: Any) -> dict[str, str]:
    """The job's options by name; one without a value has `None` as text."""
    first, *lines = job_file.text(parameters(**given), life, directory=directory, chosen=chosen).splitlines()
    assert first == "[job]"
    return {name: value if equals else "None" for name, equals, value in (line.partition("=") for line in lines)}


def test_each_job_has_the_prepared_file_of_its_number_and_makes_none() -> None:
    found = options(jobs=3, size="8MiB")
    assert found["directory"] == "/d"
    assert found["filename_format"] == "job.$jobnum"
    assert found["allow_file_create"] == "0"
    assert (found["numjobs"], found["size"]) == ("3", str(8 << 20))


def test_what_the_warm_up_cached_is_kept() -> None:
    assert options()["invalidate"] == "0"


def test_a_colon_in_the_directory_separates_nothing() -> None:
    assert options(directory="/state/a:b")["directory"] == r"/state/a\:b"


def test_a_number_of_accesses_ends_a_job_whatever_the_files_length() -> None:
    found = options(Life(None, 5_000_000, seed=1))
    assert found["number_ios"] == "5000000"
    assert found["io_size"] == job_file.ENDLESS_BYTES
    assert "runtime" not in found


def test_a_time_ends_a_job_to_the_millisecond() -> None:
    found = options(Life(1.2345, None, seed=1))
    assert found["runtime"] == "1234ms"
    assert found["time_based"] == "1"
    assert "number_ios" not in found


def test_histograms_are_kept_by_job_where_they_are_asked_for() -> None:
    assert "write_hist_log" not in options()
    found = options(Life(None, 1, seed=1, log=PurePosixPath("/w/histograms")), interval="250ms")
    assert found["write_hist_log"] == "/w/histograms"
    assert found["log_hist_msec"] == "250"
    assert found["per_job_logs"] == "1"


def test_uniform_access_is_of_independent_draws_unless_the_study_says_otherwise() -> None:
    assert options()["norandommap"] == "1"
    assert options(options={"norandommap": 0})["norandommap"] == "0"


def test_sequential_access_has_no_distribution() -> None:
    found = options(rw="read")
    assert "random_distribution" not in found
    assert "norandommap" not in found


def test_other_options_are_passed_as_given() -> None:
    found = options(options={"thinktime": "5us", "rwmixread": 70, "unified_rw_reporting": ""})
    assert found["thinktime"] == "5us"
    assert found["rwmixread"] == "70"
    assert found["unified_rw_reporting"] == "None"


@pytest.mark.parametrize("asked", ["zipf:0.8", "pareto:0.2"])
def test_a_centre_that_fio_would_draw_is_drawn_once_per_trial(asked: str) -> None:
    centres = set()
    for seed in range(20):
        chosen = job_file.distribution(asked, trial_seed=seed)
        assert chosen == job_file.distribution(asked, trial_seed=seed)
        start, _, centre = chosen.rpartition(":")
        assert start == asked
        assert 0 <= float(centre) < 1
        centres.add(centre)
    assert len(centres) == 20


@pytest.mark.parametrize("asked", ["random", "normal:40", "zipf:0.8:0.5", "zoned:60/10:30/20:10/70"])
def test_what_fio_does_not_draw_stays_as_it_is(asked: str) -> None:
    assert job_file.distribution(asked, trial_seed=1) == asked


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed here")
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"distribution": "zipf:0.8", "jobs": 40, "iodepth": 128, "engine": "libaio", "direct": True},
        {"distribution": "normal:40", "rw": "randrw", "options": {"rwmixread": 70}},
        {"rw": "write", "block_size": "1MiB", "options": {"fsync": 32}},
        {"duration": "90s", "accesses": None, "interval": "100ms"},
    ],
)
def test_the_real_fio_takes_every_kind_of_job(tmp_path: Path, given: dict[str, Any]) -> None:
    asked = parameters(**given)
    life = Life(asked.duration, asked.accesses, seed=(1 << 48) - 1, log=PurePosixPath(tmp_path / "histograms"))
    chosen = job_file.distribution(asked.distribution, trial_seed=5)
    text = job_file.text(asked, life, directory=str(tmp_path), chosen=chosen)
    done = subprocess.run(["fio", "--parse-only", "-"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
