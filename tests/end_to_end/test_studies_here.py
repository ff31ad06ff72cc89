"""The studies that run on this machine itself, at their smallest size: every arm is what it says it is."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from support.command_line import Desk

from fairtrial import record

STUDIES = Path(__file__).parents[2] / "studies"
SERVERS = os.environ.get("PATH", "") + ":/usr/sbin"


# Who updates at a rate leaves a processor to others; what differs between the arms does not depend on it.
LENGTH = ("ramp_up=200ms", "duration=null", "transactions=1200", "rate=200")
# A window has enough looks that the last before its end, and the first after its beginning, are near.
SPARING = ("--size", "ci", "--set=telemetry.interval=500ms", *(f"--set=workload.oltp.{each}" for each in LENGTH))


@pytest.mark.skipif(shutil.which("mariadbd", path=SERVERS) is None, reason="needs mariadbd")
def test_purge_is_governed_in_one_arm_only_and_every_decision_is_kept(here: Desk) -> None:
    seldom = [
        word
        for arm in ("watched", "governed")
        for word in ("--set", f"factors.purge.{arm}.settings.purge_governor.period=500ms")
    ]
    cut_off = ("--set", "factors.purge.watched.system.mariadb.slow_shutdown=1ms")
    here.fairtrial("run", STUDIES / "innodb-adaptive-purge.yaml", *SPARING, *seldom, *cut_off)
    found = record.read(here.run)
    trials = {trial.trial.arm: trial for trial in found.trials}
    assert {name: trial.invalid_reason for name, trial in trials.items()} == dict.fromkeys(
        ("stock", "watched", "governed"), ""
    )
    decisions = {arm: found.trial_directory(each.trial.id) / "governor-decisions.jsonl" for arm, each in trials.items()}
    assert not decisions["stock"].exists()
    told = [json.loads(line)["decision"] for line in decisions["governed"].read_text().splitlines()]
    assert (told[0], told[-1]) == ("started", "restored")
    seen = [json.loads(line)["decision"] for line in decisions["watched"].read_text().splitlines()]
    assert seen[0] == "started"
    assert not {"restored", "not_restored", "refused"} & set(seen), "nothing was set, and nothing is to be restored"
    governed, watched = trials["governed"].scalars, trials["watched"].scalars
    assert min(governed["governor_period_s"], watched["governor_period_s"]) >= 0.45
    assert "governor_period_s" not in trials["stock"].scalars
    assert watched["governor_decisions"] <= len(seen) - 1
    assert (watched["governor_sets"], watched["governor_refused"]) == (0, 0)
    (effective,) = [each for each in trials["watched"].effective if each.name == "purge_governor"]
    assert effective.read_back.startswith("nothing is set: ")
    assert {"history_list_length_end", "checkpoint_age_full_share"} <= governed.keys()
    assert 0 <= governed["checkpoint_age_full_share"] <= 1
    require_slow_shutdowns(found)
    here.fairtrial("verify", here.run)


def require_slow_shutdowns(found: record.Record) -> None:
    """Each to its end, but that of `watched`, which is cut off: a lower bound, and a doubt."""
    censored = {trial.trial.arm: trial.scalars["slow_shutdown_censored"] for trial in found.trials}
    assert censored == {"stock": 0, "governed": 0, "watched": 1}
    for trial in found.trials:
        log = (found.trial_directory(trial.trial.id) / "log" / "server.log").read_text()
        assert "Aborted connection" not in log, "whoever leaves says good-bye"
        if trial.trial.arm != "watched":
            assert 0 < trial.scalars["slow_shutdown_gap_s"] < trial.scalars["slow_shutdown_s"]
            assert log.count("ready for connections") == 2, "it is started again, to be checked"
    assert "1 of 3 slow shutdowns had not finished at their limit" in " ".join(
        (found.directory / "report" / "report.txt").read_text(encoding="utf-8").split()
    )


def test_every_kind_of_lock_excludes_and_is_the_kind_of_its_arm(here: Desk) -> None:
    fewer = ("--set", "trials.blocks=1", "--set", "factors.threads.eight=null")
    here.fairtrial("run", STUDIES / "lock-kinds.yaml", "--size", "ci", *fewer)
    found = record.read(here.run)
    assert [trial.invalid_reason for trial in found.trials] == [""] * 12
    assert {trial.trial.arm for trial in found.trials} == {"pthread", "adaptive", "fast", "ticket", "mcs", "clh"}
    for trial in found.trials:
        asked = json.loads(trial.resolved.model_dump_json())["workload"]["locks"]
        assert asked["kind"] == trial.trial.arm
        told = json.loads((found.trial_directory(trial.trial.id) / "contention.json").read_text())
        assert len(told["threads"]) == asked["threads"]
        assert (told["guarded"], told["intruded"], told["torn_lines"]) == (told["acquired"], 0, 0)
        assert trial.scalars["acquisitions_per_s"] > 0
    assert len({trial.options["seed"] for trial in found.trials}) == 2, "one per block, the same for its arms"
    here.fairtrial("verify", here.run)
    told["threads"][0]["acquisitions"] += 1
    (found.trial_directory(trial.trial.id) / "contention.json").write_text(json.dumps(told))
    done = here.fairtrial("verify", here.run, code=1)
    assert "contention.json" in done.stdout + done.stderr


LOCKS = """\
study: kinds
question: Which kind of lock lets more through?
workload: {{locks: {{duration: 1s, {mistake}}}}}
factors:
  kind:
    pthread: {{}}
    mcs: {{workload: {{locks: {{kind: mcs}}}}}}
arm: kind
trials: {{blocks: 1}}
metrics: {{primary: acquisitions_per_s}}
"""


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("threads: 0", ":3:43: workload.locks.threads: expected a value greater than or equal to 1, found 0"),
        ("locks: 70000", ":3:41: workload.locks.locks: expected a value less than or equal to 65536, found 70000"),
        ("kind: mutex", ":3:40: workload.locks.kind: expected 'pthread', 'adaptive'"),
        ("spins: 8", ":3:19: workload.locks: `spins` needs a kind that spins before it sleeps"),
        ("paddings: false", ":3:34: workload.locks.paddings: unknown key"),
    ],
)
def test_a_mistake_about_locks_names_file_line_field_and_what_would_do(here: Desk, mistake: str, said: str) -> None:
    study = here.study(LOCKS.format(mistake=mistake))
    done = here.fairtrial("plan", study, code=2)
    assert f"{study}{said}" in done.stderr, done.stderr
    assert "hint: fix the lines listed above" in done.stderr


@pytest.mark.skipif(shutil.which("sysbench") is None, reason="needs sysbench")
def test_every_arm_has_the_mutex_that_it_is_named_after(here: Desk) -> None:
    short = ("--set", "workload.sysbench.ramp_up=0s", "--set", "workload.sysbench.duration=1s")
    done = here.fairtrial("run", STUDIES / "mariadb-fast-mutex.yaml", "--size", "ci", *short, code=None)
    if "cannot download" in done.stderr:
        pytest.skip("no MySQL 5.5.34 to be had")
    assert done.returncode == 0, done.stdout + done.stderr
    found = record.read(here.run)
    assert [trial.invalid_reason for trial in found.trials] == [""] * 3
    announced = {
        trial.trial.arm: next(each.read_back for each in trial.effective if "locks" in each.name)
        for trial in found.trials
    }
    asked = {"published": "published", "locals": "local", "no_spinning": "off"}
    assert {arm: f"fastmutex={kind}" in announced[arm] for arm, kind in asked.items()} == dict.fromkeys(asked, True)
    assert {trial.options["version"] for trial in found.trials} == {"5.5.34"}
    costs = {f"{each}_per_transaction" for each in ("server_cpu_ms", "context_switches", "retries")}
    assert [costs - trial.scalars.keys() for trial in found.trials] == [set()] * 3
    here.fairtrial("verify", here.run)
