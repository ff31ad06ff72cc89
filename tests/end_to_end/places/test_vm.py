"""Kernels as arms: real studies in guests that boot for every trial, under emulation if need be."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from support.command_line import Desk, eventually
from support.machines.guests import await_first_trial, command_study

from fairtrial import record
from fairtrial.places.vm.machine import QEMU
from fairtrial.record.models import PlaceOpened, TrialRecord

QUIET_S = 30.0

pytestmark = [
    pytest.mark.skipif(shutil.which(QEMU) is None, reason="no QEMU on this machine"),
    pytest.mark.timeout(1800),  # emulation on a busy machine
]

STUDY = """\
study: lru-gen
place: {{vm: {{kernel: {kernel}, memory: 320MiB, cpus: 1, disk: 1GiB{more}}}}}
system: {{sqlite: {{}}}}
workload: {{oltp: {{profile: write_only, table_size: 2000, ramp_up: 500ms, transactions: 50, think_time: 15ms}}}}
factors:
  lru_gen:
    off: {{settings: {{sysfs: {{/sys/kernel/mm/lru_gen/enabled: "0x0000"}}}}}}
    on: {{settings: {{sysfs: {{/sys/kernel/mm/lru_gen/enabled: "0x0007"}}}}}}
arm: lru_gen
trials: {{blocks: 1, seed: 5}}
metrics: {{primary: {primary}, secondary: [throughput_tps]}}
"""

SWITCH = "/sys/kernel/mm/lru_gen/enabled"
DAX = """\
study: dax
question: Who counts what DAX moves?
place:
  vm:
    {{kernel: {kernel}, memory: 320MiB, cpus: 1, disk: 1GiB, pmem: 384MiB, swap: 64MiB,
      boot_parameters: [nokaslr, of_no_kernel]}}
system: {{files: {{}}}}
workload: {{file_access: {{size: 4MiB, accesses: 600}}}}
factors:
  storage:
    cached:
      settings: {{sysfs: {{/sys/kernel/mm/lru_gen/enabled: "0x0000"}}, storage: {{device: pmem, mount: dax=never}}}}
    dax:
      settings: {{sysfs: {{/sys/kernel/mm/lru_gen/enabled: "0x0007"}}, storage: {{device: pmem, mount: dax=always}}}}
arm: storage
trials: {{blocks: 1, seed: 5}}
metrics: {{primary: application_read_bytes, secondary: [block_read_bytes, uncached_bytes, throughput_iops]}}
"""

PANIC = "sh -c 'sleep $PAUSE; echo c > /proc/sysrq-trigger; sleep 60'"


def study(kernel: Path, *, primary: str = "disk_written_bytes_per_transaction", more: str = "") -> str:
    return STUDY.format(kernel=kernel, primary=primary, more=more)


def guests(here: Desk) -> list[int]:
    return [pid for pid, line in here.processes().items() if line.startswith(QEMU)]


def test_a_study_compares_kernels_switches_and_ways_to_data_and_the_record_says_how_the_guests_ran(
    here: Desk, kernel: Path
) -> None:
    """Nobody else reads there, so the process's accounting and the device's are a test of each other."""
    here.fairtrial("run", here.study(DAX.format(kernel=kernel)))
    found = record.read(here.run)
    assert {trial.trial.arm: trial.invalid_reason for trial in found.trials} == {"dax": "", "cached": ""}
    trials = {trial.trial.arm: trial for trial in found.trials}
    read_back = {
        arm: {each.name: (each.read_back or "").strip() for each in trial.effective} for arm, trial in trials.items()
    }
    assert {arm: each[SWITCH] for arm, each in read_back.items()} == {"cached": "0x0000", "dax": "0x0007"}
    mounts = {arm: each["storage.mount"] for arm, each in read_back.items()}
    assert mounts == {"cached": "xfs dax=never", "dax": "xfs dax=always"}
    require_three_boots(found, kernel)
    assert len({trial.data.content_sha256 for trial in found.trials}) == 1, "arms begin alike"
    require_what_each_counted(trials["dax"], trials["cached"])
    report = json.loads((here.run / "report/report.json").read_text(encoding="utf-8"))
    doubts = {each["code"]: each["message"] for each in report["analysis"]["doubts"]}
    assert "in 1 of 2 used trials" in doubts["invisible_io"]
    here.fairtrial("verify", here.run)
    assert guests(here) == []
    assert not list((here.state / "vm/running").iterdir()), "a guest's files go with it"


def require_three_boots(found: record.Record, kernel: Path) -> None:
    """One to prepare and one for each of two trials, and the record says how."""
    opened = [event for event in found.events if isinstance(event, PlaceOpened)]
    assert len(opened) == 3
    of_host = [{finding.of_host for finding in event.findings} for event in opened]
    assert of_host == [{True, False}, set(), set()], "guest and host are looked at once"
    assert len([finding for finding in opened[0].findings if finding.name == "virtualisation"]) == 2
    for event in opened:
        assert event.facts["kernel"] == kernel.name.removeprefix("vmlinuz-")
        assert event.facts["host"] != os.uname().nodename
        assert event.facts["accelerator"] in {"kvm", "tcg"}
        assert event.facts["swap_bytes"] == (64 << 20) - 4096, "its first page is its header"
    assert len({event.clock.realtime_ns - event.clock.monotonic_ns for event in opened}) == 3, "three boots"
    emulated = {event.facts["accelerator"] for event in opened} != {"kvm"}
    assert ("emulation" in (found.directory / "report/report.txt").read_text(encoding="utf-8")) == emulated


def require_what_each_counted(dax: TrialRecord, cached: TrialRecord) -> None:
    """What DAX moves no block layer sees, and both counts of misses agree."""
    assert (dax.options["dax"], cached.options["dax"]) == ("yes", "no")
    moved = 600 * 4096
    read = {trial.scalars["application_read_bytes"] for trial in (dax, cached)}
    assert read == {dax.scalars["uncached_bytes"]} == {moved}
    assert dax.scalars["block_read_bytes"] < moved / 100
    assert "miss_ratio" not in dax.scalars
    assert cached.scalars["uncached_bytes"] == 0
    assert cached.options["file_system"] == "xfs"
    misses = cached.scalars["miss_ratio"]
    assert 0 < misses < 1
    assert cached.scalars["device_miss_ratio"] == pytest.approx(misses, abs=0.02)
    assert cached.scalars["block_read_bytes"] == pytest.approx(moved * misses, rel=0.05)


# Its siblings: the one above, and data that are restored in a guest (test_settings_in_guest.py).
@pytest.mark.long
def test_a_database_on_the_guests_disk_is_restored_by_reflinks(here: Desk, kernel: Path) -> None:
    here.fairtrial("run", here.study(study(kernel)))
    found = record.read(here.run)
    assert [trial.valid for trial in found.trials] == [True, True]
    read_back = {
        trial.trial.arm: [(each.read_back or "").strip() for each in trial.effective] for trial in found.trials
    }
    assert read_back == {"off": ["0x0000"], "on": ["0x0007"]}
    assert len({trial.data.content_sha256 for trial in found.trials}) == 1
    assert {trial.data.restored.method for trial in found.trials} == {"reflink"}
    for trial in found.trials:
        assert trial.scalars["disk_written_bytes_per_transaction"] > 0
    here.fairtrial("verify", here.run)


# Its siblings: the rule in test_emulation.py, and that a run asks it (tests/unit/run/test_loop.py).
@pytest.mark.long
def test_a_clock_cannot_decide_under_emulation(here: Desk, kernel: Path) -> None:
    refused = here.fairtrial(
        "run", here.study(study(kernel, primary="latency_ns_p95", more=", accelerator: tcg")), code=3
    )
    assert "latency_ns_p95 cannot be primary" in " ".join(refused.stderr.split())
    assert not list((here.run / "trials").iterdir())
    assert guests(here) == []


# Its siblings: a guest that panics (test_settings_in_guest.py), and an agent killed in a trial (test_faults.py).
@pytest.mark.long
def test_a_guest_that_panics_ends_its_trial_with_its_last_words(here: Desk, kernel: Path) -> None:
    ended = here.fairtrial("run", here.study(command_study(kernel, PANIC)), code=3)
    assert "more than the limit of" in " ".join(ended.stderr.split())
    (trial,) = record.read(here.run).trials
    assert not trial.valid
    assert "the stream to the place was lost" in trial.invalid_reason
    assert "Kernel panic - not syncing: sysrq triggered crash" in trial.invalid_reason
    assert guests(here) == []


def test_a_guest_ends_with_its_controller(here: Desk, kernel: Path) -> None:
    running = here.start("run", here.study(command_study(kernel, "true")))
    eventually(lambda: guests(here), "no guest came up")
    os.kill(running.pid, signal.SIGKILL)
    running.communicate(timeout=QUIET_S)
    eventually(lambda: not here.processes(), "the guest went on without its control plane, or the agent did")


# Its siblings: the one above, and the guest that panics in test_settings_in_guest.py.
@pytest.mark.long
@pytest.mark.parametrize("whom", ["controller", "guest"])
def test_a_kill_leaves_no_guest_and_costs_no_more_than_its_trial(here: Desk, kernel: Path, whom: str) -> None:
    path = here.study(study(kernel))
    running = here.start("run", path)
    eventually(lambda: guests(here), "no guest came up")
    await_first_trial(here, running)
    if whom == "controller":
        os.kill(running.pid, signal.SIGKILL)
        running.communicate(timeout=QUIET_S)
        eventually(lambda: not guests(here), "the guest went on without its control plane")
        here.fairtrial("run", "--resume", here.run)
    else:
        os.kill(guests(here)[0], signal.SIGKILL)
        output, _ = running.communicate(timeout=400)
        assert running.returncode == 0, output
    found = record.read(here.run)
    lost = [trial for trial in found.trials if not trial.valid]
    assert len(lost) == (0 if whom == "controller" else 1)
    assert len([trial for trial in found.trials if trial.valid]) >= 2
    assert found.finished
    assert guests(here) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [("/nowhere/vmlinuz", "no kernel at /nowhere/vmlinuz"), ("debian-2.2", "apt offers no kernel debian-2.2")],
)
def test_a_kernel_that_is_nowhere_stops_a_run_before_its_first_trial(here: Desk, name: str, says: str) -> None:
    refused = here.fairtrial("run", here.study(study(Path(name))), code=3)
    assert says in " ".join(refused.stderr.split())
    assert not list((here.run / "trials").iterdir())


def test_too_little_memory_is_refused_where_it_is_written(here: Desk, kernel: Path) -> None:
    text = study(kernel).replace("memory: 320MiB", "memory: 64MiB")
    refused = here.fairtrial("plan", here.study(text), code=2)
    assert "study.yaml:2:" in refused.stderr
    assert "memory" in refused.stderr
