"""Studies of files, by the real fio and by the agent: from a file to a verdict, and what goes wrong on the way."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import page_cache
from support.command_line import FAIRTRIAL, Desk, desk, eventually

from fairtrial import record
from fairtrial.metrics import latency

STUDY = """\
study: skew
question: Does skewed access miss less than uniform access?
system: {{files: {{}}}}
workload: {{{workload}: {{jobs: 2, size: {size}, warm_up_accesses: {warm_up}, {length}, interval: 100ms}}}}
factors:
  distribution:
    uniform: {first}
    skewed: {{workload: {{{workload}: {{distribution: 'zipf:1.2'}}}}}}
arm: distribution
trials: {{blocks: {blocks}, seed: 5}}
metrics: {{primary: application_read_bytes, secondary: [throughput_iops, latency_ns_p99]}}
telemetry: {{interval: 100ms}}
"""
FIO = pytest.param("fio", marks=pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed here"))
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root drops the page cache")


def study(  # noqa: PLR0913 - each is one line of the study
    here: Desk,
    workload: str,
    *,
    size: str = "4MiB",
    length: str = "accesses: 600",
    blocks: int = 2,
    first: str = "{}",
    warm_up: int = 400,
) -> Path:
    lengths = {"size": size, "length": length, "first": first, "warm_up": warm_up}
    text = STUDY.format(workload=workload, blocks=blocks, **lengths)
    return here.study(text)


@pytest.fixture(scope="module", params=[FIO, "file_access"])
def ran(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """One run of each workload, from a cold cache, for all that is read of it."""
    with desk() as found:
        path = study(found, request.param, size="4000KiB", blocks=3)
        argv = page_cache.dropping(FAIRTRIAL, "run", path, "--plain")
        done = subprocess.run(
            argv, cwd=found.directory, env=found.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        yield found


def workload_of(ran: Desk) -> str:
    (name,) = record.read(ran.run).plan.resolved["all"]["uniform"].workload.root
    return name


def test_a_study_of_files_gives_a_record_that_verifies(ran: Desk) -> None:
    found = record.read(ran.run)
    assert found.finished
    assert all(trial.valid for trial in found.trials)
    assert {trial.scalars["accesses"] for trial in found.trials} == {1200.0}
    assert {trial.scalars["latency_count"] for trial in found.trials} == {1200.0}
    assert len({trial.data.content_sha256 for trial in found.trials}) == 1
    assert len({trial.data.key for trial in found.trials}) == 1
    seeds = {trial.options.get("randseed", trial.options.get("seed")) for trial in found.trials}
    assert len(seeds) == 3, "one per block, the same for its arms"
    assert all(trial.options["block_bytes_from"] for trial in found.trials)
    ran.fairtrial("verify", ran.run)


def test_a_changed_histogram_is_found_out(ran: Desk, tmp_path: Path) -> None:
    copy = shutil.copytree(ran.run, tmp_path / ran.run.name)
    log = record.read(copy).trial_directory("all.b01.uniform") / latency.FILE
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(line for line in lines if not line.startswith("Tag=read")))
    done = ran.fairtrial("verify", copy, code=1)
    assert "latency.hlog" in done.stdout + done.stderr


@ROOT
def test_a_cold_cache_misses_as_often_as_counting_says(ran: Desk) -> None:
    """Of n blocks, w draws have met all but n(1 - 1/n)^w; what m more draws meet of those are the misses.

    Whoever drops this machine's page cache meanwhile adds misses, never takes one: the least is the study's own. fio
    then reads its libraries again, twenty times what it is asked for here: of it only the lower end is sure.
    """
    blocks, warm, measured = 1000, 400, 600
    expected = blocks * ((1 - 1 / blocks) ** warm - (1 - 1 / blocks) ** (warm + measured)) / measured
    least = {
        arm: min(trial.scalars["miss_ratio"] for trial in record.read(ran.run).trials if trial.trial.arm == arm)
        for arm in ("uniform", "skewed")
    }
    assert least["uniform"] > expected - 0.06
    assert least["skewed"] > 0
    if workload_of(ran) == "file_access":
        assert least["uniform"] < expected + 0.06
        assert least["skewed"] < expected - 0.1


def test_a_size_that_is_no_power_of_two_is_doubted_for_fio_alone(ran: Desk) -> None:
    """The agent's own access meets every block at any size."""
    report = json.loads((ran.run / "report" / "report.json").read_text())
    doubts = [each["message"] for each in report["analysis"]["doubts"] if each["code"] == "footprint"]
    if workload_of(ran) == "file_access":
        assert doubts == []
        return
    (doubt,) = doubts
    assert "in 3 of 6 used trials" in doubt, "uniform access meets every block"
    skewed = record.read(ran.run).trial_directory("all.b01.skewed")
    assert (skewed / "fio.job").read_text().count("size=4096000\n") == 1


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed here")
def test_a_fio_that_is_killed_voids_its_block_and_another_takes_its_place(here: Desk) -> None:
    # The first trial lasts until it is killed, also while the test stands still; the other need not.
    sparing, long = "accesses: 20, options: {thinktime: 25000}", "{workload: {fio: {accesses: 400}}}"
    process = here.start("run", study(here, "fio", length=sparing, first=long, warm_up=1, blocks=1))

    def window() -> list[int]:
        return [number for number, line in here.processes().items() if line.startswith("fio ") and "load.job" in line]

    eventually(window, "fio never began to measure")
    for number in window():
        with contextlib.suppress(ProcessLookupError):  # its jobs go with the first
            os.kill(number, signal.SIGKILL)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    trials = record.read(here.run).trials
    invalid = [trial for trial in trials if not trial.valid]
    assert len(invalid) == 1
    assert "fio" in invalid[0].invalid_reason
    assert "signal" in invalid[0].invalid_reason
    assert sum(trial.valid for trial in trials) >= 2


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed here")
def test_an_option_that_fio_refuses_stops_the_study_at_its_line(here: Desk) -> None:
    path = study(here, "fio", length="accesses: 5, options: {thinktime: soon}")
    done = here.fairtrial("run", path, code=2)
    assert f"{path.name}:4:" in done.stderr
    assert "workload.fio.options.thinktime" in done.stderr
    assert "fio rejects `thinktime`" in done.stderr
    assert here.runs == []


def test_a_workload_on_files_names_the_system_that_it_needs(here: Desk) -> None:
    path = here.study(study(here, "file_access").read_text().replace("{files: {}}", "{command: {}}"))
    done = here.fairtrial("plan", path, code=2)
    assert "system: {files: {}}" in done.stderr
