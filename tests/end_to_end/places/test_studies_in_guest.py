"""The three studies of kernels and persistent memory at their smallest size, in real guests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Desk

from fairtrial import record
from fairtrial.places.vm.machine import QEMU
from fairtrial.record.models import TrialRecord

STUDIES = Path(__file__).parents[3] / "studies"
SWITCHED = {"off": "0x0000", "on": "0x0007"}

pytestmark = [
    pytest.mark.skipif(shutil.which(QEMU) is None, reason="no QEMU on this machine"),
    pytest.mark.timeout(1800),  # emulation on a busy machine
]

UNDER_WAY = 2 * 26  # transactions of 26 users at both ends of a window: the server counts some, we others
# What a server did in a window is not known if a guest stood still for two intervals at one of its ends, and beside
# other emulators guests do so for seconds.
SELDOM = ("--set", "telemetry.interval=2s")


def ran(here: Desk, name: str, kernel: Path) -> tuple[dict[str, TrialRecord], dict[str, Any]]:
    """The study's trials by arm, all valid, and its report."""
    here.fairtrial("run", STUDIES / f"{name}.yaml", "--size", "ci", "--set", f"place.vm.kernel={kernel}", *SELDOM)
    found = record.read(here.run)
    assert all(trial.valid for trial in found.trials), [trial.invalid_reason for trial in found.trials]
    here.fairtrial("verify", here.run)
    report = json.loads((here.run / "report" / "report.json").read_text(encoding="utf-8"))
    return {trial.trial.arm: trial for trial in found.trials}, report


def read_back(trial: TrialRecord, name: str) -> str:
    (setting,) = [each for each in trial.effective if each.name == name]
    return (setting.read_back or "").strip()


# Its siblings: persistent memory and the switch in test_vm.py, and fio in test_file_access.py.
@pytest.mark.long
def test_fio_misses_the_page_cache_on_persistent_memory_with_either_policy(here: Desk, kernel: Path) -> None:
    arms, report = ran(here, "mglru-fio-pmem", kernel)
    assert {arm: read_back(trial, "lru_gen.enabled") for arm, trial in arms.items()} == {
        "off": "0x0000",
        "on": "0x0007",
    }
    for trial in arms.values():
        assert 0.05 < trial.scalars["device_miss_ratio"] < 0.95, "twice the memory neither fits nor never hits"
        assert trial.options["block_bytes_from"] == "sectors of pmem0", "not the swap device's reads"
        assert trial.scalars["refaults_per_access"] > 0, "pages that were evicted come back"
        assert trial.scalars["footprint_share"] == 1.0, "files are a power of two of blocks"
    doubts = {doubt["code"] for doubt in report["analysis"]["doubts"]}
    assert "invisible_io" not in doubts
    assert "other_rule" in doubts, "the policies count refaults and scans differently"
    assert "zipf, 40, debian-6.1" in here.fairtrial("studies", "beside", here.run).stdout


@pytest.mark.long  # its sibling: what DAX moves, in test_vm.py
def test_what_dax_moves_no_block_layer_sees_and_the_report_says_so(here: Desk, kernel: Path) -> None:
    arms, report = ran(here, "tpcc-pmem", kernel)
    own = {arm: trial.scalars["server_data_written_bytes_per_transaction"] for arm, trial in arms.items()}
    assert {trial.scalars["transactions"] for trial in arms.values()} == {40}, "equal work"
    seen = {arm: trial.scalars["disk_written_bytes_per_transaction"] for arm, trial in arms.items()}
    assert max(own.values()) < 2 * min(own.values()), "the same workload writes the same everywhere"
    assert seen["pmem_dax"] < own["pmem_dax"] / 2
    for arm in ("ssd", "pmem"):
        assert seen[arm] > own[arm] / 2
        assert arms[arm].scalars["disk_written_share"] > 0.5
    (doubt,) = [each for each in report["analysis"]["doubts"] if each["code"] == "invisible_io"]
    assert "alone.b01.pmem_dax" in doubt["message"]


@pytest.mark.long  # its siblings: the switch in test_vm.py, and a server's data in test_settings_in_guest.py
def test_mariadb_swaps_where_memory_is_overcommitted(here: Desk, kernel: Path) -> None:
    arms, _ = ran(here, "mglru-mariadb-tpcc", kernel)
    assert {arm: read_back(trial, "lru_gen.enabled") for arm, trial in arms.items()} == {
        "off": "0x0000",
        "on": "0x0007",
    }
    for trial in arms.values():
        assert read_back(trial, "vm.overcommit_memory") == "1"
        assert trial.scalars["swapped_out_share"] > 0
        assert trial.scalars["transactions"] == 300
        assert trial.scalars["server_major_faults"] >= 0
        assert trial.scalars["server_transactions"] == pytest.approx(300, abs=UNDER_WAY)
