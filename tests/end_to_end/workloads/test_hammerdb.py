"""The real HammerDB as a workload, on real servers: what it says is what the record says. Each window is a minute."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from support.command_line import Desk, eventually

from fairtrial import record
from fairtrial.record import Record
from fairtrial.verify import recompute

POSTGRES = next((found.parents[1] for found in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))), None)
STUDY = """\
study: by-hammerdb
question: Are two users faster than one?
system: {system}
workload: {{hammerdb: {{ramp_up: 0s, duration: 1min, {more}}}}}
factors:
  users:
    one: {{workload: {{hammerdb: {{virtual_users: 1}}}}}}
    two: {{workload: {{hammerdb: {{virtual_users: 2}}}}}}
arm: users
trials: {{blocks: 1, seed: 5, voided_limit: 0}}
metrics: {{primary: throughput_nopm}}
"""
MARIADB = "{mariadb: {options: {innodb_buffer_pool_size: 128M}}}"
AGREEMENT = 0.05  # of the sampler's counters with HammerDB's, whose edges are not the same

pytestmark = pytest.mark.skipif(shutil.which("hammerdbcli") is None, reason="HammerDB is not on the PATH here")


def study(here: Desk, more: str = "", *, system: str = MARIADB) -> Path:
    return here.study(STUDY.format(system=system, more=more))


def agrees_with_what_was_printed(found: Record) -> None:
    assert [(trial.valid, trial.invalid_reason) for trial in found.trials] == [(True, "")] * 2
    for trial in found.trials:
        directory = found.trial_directory(trial.trial.id)
        printed = (directory / "log" / "load.log").read_text()
        told = re.search(r"System achieved ([0-9]+) NOPM from ([0-9]+) \S+ TPM", printed)
        assert told is not None
        scalars = trial.scalars
        assert (scalars["throughput_nopm"], scalars["throughput_tpm"]) == (int(told[1]), int(told[2]))
        assert trial.window is not None
        assert (trial.window.end_ns - trial.window.start_ns) / 1e9 == pytest.approx(60, abs=2)
        assert scalars["server_tpm"] == pytest.approx(scalars["throughput_tpm"], rel=AGREEMENT)
        assert scalars["client_counting_s"] < 2
        assert trial.options["hammerdb_version"]
        assert "_pass" not in printed
    assert len({trial.data.content_sha256 for trial in found.trials}) == 1


def test_a_study_runs_to_its_report_and_every_number_is_found_again(here: Desk) -> None:
    here.fairtrial("run", study(here, "time_profile: true"))
    found = record.read(here.run)
    agrees_with_what_was_printed(found)
    for trial in found.trials:
        calls = sum(value for name, value in trial.scalars.items() if name.endswith("_calls"))
        assert calls >= 0.9 * trial.scalars["transactions"]
        assert trial.scalars["new_order_latency_ns_p50"] < trial.scalars["new_order_latency_ns_p99"]
    manifest = json.loads(next(here.state.glob("prepared/*/manifest.json")).read_text())
    assert (manifest["rows"]["warehouse"], manifest["rows"]["customer"]) == (1, 30_000)
    here.fairtrial("report", here.run)
    assert "recomputed" in here.fairtrial("verify", here.run).stdout
    assert here.processes() == {}
    path = next(here.run.glob("trials/*/result.json"))
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "nopm": told["nopm"] + 1}))
    assert any(f"but log/load.log gives {told['nopm']}" in text for text in recompute(record.read(here.run)))


@pytest.mark.skipif(POSTGRES is None, reason="no PostgreSQL on this machine")
def test_postgres_is_driven_alike(here: Desk) -> None:
    here.fairtrial("run", study(here, "procedures: true", system=f"{{postgres: {{base_directory: {POSTGRES}}}}}"))
    agrees_with_what_was_printed(record.read(here.run))
    assert "recomputed" in here.fairtrial("verify", here.run).stdout


def test_a_server_killed_mid_run_makes_an_invalid_trial_at_once(here: Desk) -> None:
    process = here.start("run", study(here))

    def running(mark: str) -> int | None:
        return next((pid for pid, command in here.processes().items() if mark in command), None)

    eventually(lambda: running("load.tcl"), "HammerDB driving")
    eventually(lambda: any("TMP=" in line for line in environment(running("load.tcl"))), "HammerDB's own files")
    victim = running("mariadbd --defaults-file")
    assert victim is not None
    os.kill(victim, signal.SIGKILL)
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0, output
    (trial,) = record.read(here.run).trials
    assert not trial.valid
    assert trial.invalid_reason
    assert here.processes() == {}


def environment(pid: int | None) -> list[str]:
    return Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0") if pid else []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("data: {storage_engine: none_such}", "loading failed: "),
        ("data: {bogus: 1}", 'exists but key "mysql_bogus" doesn\'t'),
    ],
)
def test_a_build_that_fails_ends_the_run_with_what_is_wrong(here: Desk, more: str, said: str) -> None:
    failed = here.fairtrial("run", study(here, more), code=None)
    assert failed.returncode != 0
    assert said in failed.stdout + failed.stderr
    assert here.processes() == {}
