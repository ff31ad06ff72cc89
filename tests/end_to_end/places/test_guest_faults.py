"""What goes wrong inside a guest: its disk fails, its memory is full, it hangs. Each costs its own trial."""

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
from fairtrial.record.models import TrialRecord

WHOLE_FIRST, LITTLE_FIRST = 2, 2  # seeds that put the arm that works first, as a block ends with its first loss
END_LIMIT_S = 300.0

pytestmark = pytest.mark.timeout(1800)  # emulation on a busy machine
needs_qemu = pytest.mark.skipif(shutil.which(QEMU) is None, reason="no QEMU on this machine")

# Both arms write rows; in one of them the device below the data answers every request with an error by then.
SQL = 'mariadb --socket="$FAIRTRIAL_SOCKET" --user=root --database=fairtrial --execute'
FAILING_DISK = """\
study: failing-disk
place: {{vm: {{kernel: {kernel}, memory: 512MiB, cpus: 1, disk: 2GiB}}}}
system: {{mariadb: {{options: {{innodb_buffer_pool_size: 16MiB, innodb_log_file_size: 8MiB}}}}}}
settings: {{storage: {{device: file, size: 512MiB, latency: 1ms}}}}
factors:
  disk:
    whole:
      workload:
        command:
          run: >-
            sh -euc '{sql} "create table t (i int); insert into t values (1)"; {sql} "insert into t values (2)"'
    failing:
      workload:
        command:
          run: >-
            sh -euc '{sql} "create table t (i int); insert into t values (1)";
            disk=$(dmsetup ls | cut -f1); size=$(blockdev --getsz "/dev/mapper/$disk");
            dmsetup suspend --noflush --nolockfs "$disk"; echo "0 $size error" | dmsetup load "$disk";
            dmsetup resume "$disk"; {sql} "insert into t values (2)"'
arm: disk
trials: {{blocks: 1, voided_limit: 0, seed: {seed}}}
metrics: {{primary: minor_faults}}
"""

# The kernel kills the load in one arm: a process that takes twice the memory there is, without swap.
FULL_MEMORY = """\
study: full-memory
place: {{vm: {{kernel: {kernel}, memory: 256MiB, cpus: 1, disk: 512MiB}}}}
workload:
  command:
    run: >-
      python3 -c 'import os; [b"x" * (1 << 20) for _ in range(int(os.environ["TAKES"]))]'
factors:
  takes:
    little: {{settings: {{environment: {{TAKES: '4'}}}}}}
    all: {{settings: {{environment: {{TAKES: '512'}}}}}}
arm: takes
trials: {{blocks: 1, voided_limit: 0, seed: {seed}}}
metrics: {{primary: minor_faults}}
"""


def ran(here: Desk, text: str) -> list[TrialRecord]:
    """The trials of a run whose one block was voided."""
    ended = here.fairtrial("run", here.study(text), code=3)
    assert "more than the limit of" in " ".join(ended.stderr.split()), ended.stderr
    return record.read(here.run).trials


# Its siblings: a server killed in a trial (test_databases.py), and a device below the data (test_settings_in_guest.py).
@pytest.mark.long
@needs_qemu
@pytest.mark.skipif(shutil.which("mariadbd") is None, reason="no MariaDB on this machine")
@pytest.mark.skipif(shutil.which("dmsetup") is None, reason="no dmsetup on this machine")
def test_a_disk_that_fails_under_a_server_costs_its_trial(here: Desk, kernel: Path) -> None:
    whole, failing = ran(here, FAILING_DISK.format(kernel=kernel, sql=SQL, seed=WHOLE_FIRST))
    assert (whole.trial.arm, whole.valid, whole.invalid_reason) == ("whole", True, "")
    assert failing.trial.arm == "failing"
    assert "ended with exit code" in failing.invalid_reason
    log = record.read(here.run).trial_directory(failing.trial.id) / "log/server.log"
    assert "error" in log.read_text(errors="replace").lower(), "the server's own words are kept"


# Its siblings: loads that fill a container's memory (test_containers.py).
@pytest.mark.long
@needs_qemu
def test_a_load_that_fills_the_guests_memory_is_named_with_what_the_kernel_said(here: Desk, kernel: Path) -> None:
    little, everything = ran(here, FULL_MEMORY.format(kernel=kernel, seed=LITTLE_FIRST))
    assert (little.trial.arm, little.valid, little.invalid_reason) == ("little", True, "")
    assert "ended with signal SIGKILL; the kernel killed 1 for want of memory" in everything.invalid_reason
    assert "(python3)" in everything.invalid_reason


# Its siblings: a wire that goes dead (test_two_hosts.py), and a guest that panics (test_settings_in_guest.py).
@pytest.mark.long
@needs_qemu
def test_a_guest_that_hangs_is_ended_and_costs_its_trial(
    here: Desk, kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "silence_s=6,off_s=2")  # twice the silence, as it is emulated
    running = here.start("run", here.study(command_study(kernel, "sleep 600")))
    await_first_trial(here, running)
    (guest,) = [pid for pid, line in here.processes().items() if line.startswith(QEMU)]
    os.kill(guest, signal.SIGSTOP)
    output, _ = running.communicate(timeout=END_LIMIT_S)
    assert running.returncode == 3, output
    (trial,) = [trial for trial in record.read(here.run).trials if not trial.valid]
    assert "silent for" in trial.invalid_reason
    eventually(lambda: guest not in here.processes(), "the guest that hangs was left behind")


@pytest.mark.skipif(Path("/sys/kernel/mm/lru_gen").exists(), reason="this machine's kernel has multi-generational LRU")
def test_a_kernel_without_it_refuses_multi_generational_lru_before_anything_starts(here: Desk) -> None:
    text = """\
study: lacking
workload: {command: {run: "true"}}
factors: {lru_gen: {off: {settings: {lru_gen: off}}, on: {settings: {lru_gen: on}}}}
arm: lru_gen
trials: {blocks: 1}
metrics: {primary: minor_faults}
"""
    refused = here.fairtrial("run", here.study(text), code=3)
    said = " ".join(refused.stderr.split())
    assert "cannot set lru_gen.enabled (/sys/kernel/mm/lru_gen/enabled): no such file" in said
    assert "debian-6.1" in said, "with the fix"
    assert not list((here.run / "trials").iterdir())
