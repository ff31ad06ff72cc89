"""Kernels as arms: real studies in guests that boot for every trial, under emulation if need be."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from support.command_line import Desk, eventually
from support.machines.guests import await_first_trial, command_study

from fairtrial import record
from fairtrial.places.vm.machine import QEMU
from fairtrial.record.models import PlaceOpened

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

PANIC = "sh -c 'sleep $PAUSE; echo c > /proc/sysrq-trigger; sleep 60'"


def study(kernel: Path, *, primary: str = "disk_written_bytes_per_transaction", more: str = "") -> str:
    return STUDY.format(kernel=kernel, primary=primary, more=more)


def guests(here: Desk) -> list[int]:
    return [pid for pid, line in here.processes().items() if line.startswith(QEMU)]


def test_a_kernels_switch_is_an_arm_and_the_record_says_how_the_guest_ran(here: Desk, kernel: Path) -> None:
    here.fairtrial("run", here.study(study(kernel, more=", swap: 64MiB, boot_parameters: [nokaslr, of_no_kernel]")))
    found = record.read(here.run)
    assert [trial.valid for trial in found.trials] == [True, True]
    read_back = {trial.trial.arm: trial.effective for trial in found.trials}
    assert {arm: [(each.read_back or "").strip() for each in settings] for arm, settings in read_back.items()} == {
        "off": ["0x0000"],
        "on": ["0x0007"],
    }
    release = kernel.name.removeprefix("vmlinuz-")
    opened = [event for event in found.events if isinstance(event, PlaceOpened)]
    assert len(opened) == 3, "one boot to prepare and one for each trial"
    of_host = [{finding.of_host for finding in event.findings} for event in opened]
    assert of_host == [{True, False}, set(), set()], "guest and host are looked at once"
    emulated = [finding.value for finding in opened[0].findings if finding.name == "virtualisation"]
    assert len(emulated) == 2
    for event in opened:
        assert event.facts["kernel"] == release
        assert event.facts["host"] != os.uname().nodename
        assert event.facts["accelerator"] in {"kvm", "tcg"}
        assert event.facts["swap_bytes"] == (64 << 20) - 4096, "its first page is its header"
    assert len({event.clock.realtime_ns - event.clock.monotonic_ns for event in opened}) == 3, "three boots"
    contents = {trial.data.content_sha256 for trial in found.trials}
    assert len(contents) == 1, "both arms began with what was prepared once"
    assert {trial.data.restored.method for trial in found.trials} == {"reflink"}
    for trial in found.trials:
        assert trial.scalars["disk_written_bytes_per_transaction"] > 0
    assert "emulation" in (here.run / "report/report.txt").read_text(encoding="utf-8") or "kvm" in {
        event.facts["accelerator"] for event in opened
    }
    here.fairtrial("verify", here.run)
    assert guests(here) == []
    assert not list((here.state / "vm/running").iterdir()), "a guest's files go with it"


def test_a_clock_cannot_decide_under_emulation(here: Desk, kernel: Path) -> None:
    refused = here.fairtrial(
        "run", here.study(study(kernel, primary="latency_ns_p95", more=", accelerator: tcg")), code=3
    )
    assert "latency_ns_p95 cannot be primary" in " ".join(refused.stderr.split())
    assert not list((here.run / "trials").iterdir())
    assert guests(here) == []


def test_a_guest_that_panics_ends_its_trial_with_its_last_words(here: Desk, kernel: Path) -> None:
    ended = here.fairtrial("run", here.study(command_study(kernel, PANIC)), code=3)
    assert "blocks to invalid trials" in " ".join(ended.stderr.split())
    (trial,) = record.read(here.run).trials
    assert not trial.valid
    assert "the stream to the place was lost" in trial.invalid_reason
    assert "Kernel panic - not syncing: sysrq triggered crash" in trial.invalid_reason
    assert guests(here) == []


# The long one's siblings: the controller's kill, and the guest that panics, above, which ends its trial as well.
@pytest.mark.parametrize("whom", ["controller", pytest.param("guest", marks=pytest.mark.long)])
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
