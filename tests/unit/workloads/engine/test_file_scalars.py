"""Scalars of access to files, from counters given: which source counts where, and what is absent without a meaning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairtrial.errors import RecordError
from fairtrial.protocol.generated import Medium
from fairtrial.record.models import Window
from fairtrial.workloads.engine import file_scalars as file_access

WINDOW = Window(start_ns=1_000_000_000, end_ns=3_000_000_000)
READS, WRITES = 800, 200
BLOCK = 4096
MEDIUM: dict[str, Any] = {
    "file_system": "xfs",
    "options": "rw,noatime",
    "device": "vdb",
    "is_dax": False,
    "is_counted": True,
}
BEFORE: dict[str, Any] = {
    "time_ns": 1,
    "vmstat": {
        "pgpgin": 1_000,
        "pgpgout": 500,
        "workingset_refault_file": 10,
        "workingset_refault_anon": 5,
        "pgscan_kswapd": 100,
        "pgscan_direct": 20,
        "pgsteal_kswapd": 90,
        "pgsteal_direct": 10,
        "pswpin": 70,
        "pgmajfault": 3,
    },
    "devices": {"vda": {"read": 7, "written": 7}, "vdb": {"read": 1_000, "written": 2_000}},
    "accounts_processes": True,
    "medium": MEDIUM,
}
GROWN = {
    "pgpgin": 2_000,
    "pgpgout": 300,
    "workingset_refault_file": 50,
    "workingset_refault_anon": 1_000,  # of other memory than files
    "pgscan_kswapd": 400,
    "pgscan_direct": 100,
    "pgsteal_kswapd": 300,
    "pgsteal_direct": 100,
    "pswpin": 30,
    "pgmajfault": 2,
}


def result(**given: Any) -> dict[str, Any]:
    outcomes = {"rolled_back": 0, "failed": 0, "retried": 0}
    return {
        "window": WINDOW.model_dump(),
        "transactions": {"read": {"committed": READS, **outcomes}, "write": {"committed": WRITES, **outcomes}},
        "client": {"user_s": 0.002, "system_s": 0.008, "blocks_in": 1_600, "blocks_out": 0},
        "effective": {"block_bytes": str(BLOCK)},
        "errors": [],
        **given,
    }


def after(before: dict[str, Any]) -> dict[str, Any]:
    """The window read 2,400 sectors of vdb and wrote 80; somebody else used vda."""
    return {
        **before,
        "vmstat": {name: value + GROWN[name] for name, value in before["vmstat"].items()},
        "devices": {"vda": {"read": 9_007, "written": 7}, "vdb": {"read": 3_400, "written": 2_080}},
    }


def scalars(
    here: Path, *, before: dict[str, Any] | None = None, direct: bool = False, **given: Any
) -> dict[str, float]:
    first = BEFORE if before is None else before
    (here / "result.json").write_text(json.dumps(result(**given)))
    (here / "counters.json").write_text(json.dumps([first, after(first)]))
    return file_access.compute(here, window=WINDOW, direct=direct)


def medium(**given: Any) -> dict[str, Any]:
    return {**BEFORE, "medium": {**MEDIUM, **given}}


def test_accesses_and_their_bytes_are_the_applications(tmp_path: Path) -> None:
    found = scalars(tmp_path)
    assert found["accesses"] == READS + WRITES
    assert found["throughput_iops"] == 500
    assert found["application_read_bytes"] == READS * BLOCK
    assert found["application_written_bytes"] == WRITES * BLOCK
    assert found["uncached_bytes"] == 0


def test_a_miss_is_what_the_kernel_read_for_the_process(tmp_path: Path) -> None:
    found = scalars(tmp_path)
    assert found["storage_read_bytes"] == 1_600 * 512
    assert found["miss_ratio"] == pytest.approx(1_600 * 512 / (READS * BLOCK))
    assert found["miss_ratio"] == 0.25


def test_the_block_layer_is_counted_at_the_files_own_device(tmp_path: Path) -> None:
    found = scalars(tmp_path)
    assert found["block_read_bytes"] == 2_400 * 512
    assert found["block_written_bytes"] == 80 * 512
    assert found["device_miss_ratio"] == 0.375


@pytest.mark.parametrize(
    "given", [{"is_counted": False}, {"is_counted": None, "device": ""}, {"device": "nowhere"}, {"is_counted": None}]
)
def test_a_device_that_does_not_count_leaves_the_machines_counters(tmp_path: Path, given: dict[str, Any]) -> None:
    found = scalars(tmp_path, before=medium(**given))
    assert found["block_read_bytes"] == 2_000 * 1024
    assert found["block_written_bytes"] == 300 * 1024


def test_the_record_says_which_counters_were_used() -> None:
    assert file_access.said_of(Medium.model_validate(MEDIUM)) == {
        "file_system": "xfs",
        "mount_options": "rw,noatime",
        "device": "vdb",
        "dax": "no",
        "block_bytes_from": "sectors of vdb",
    }
    other = file_access.said_of(Medium.model_validate({**MEDIUM, "is_counted": False, "is_dax": True}))
    assert other["block_bytes_from"] == "pgpgin and pgpgout of the whole machine"
    assert other["dax"] == "yes"


def test_counts_per_access_are_of_file_pages_and_all_ways_of_reclaim(tmp_path: Path) -> None:
    found = scalars(tmp_path)
    assert found["refaults_per_access"] == 0.05
    assert found["pages_scanned_per_access"] == 0.5
    assert found["pages_scanned_direct_per_access"] == 0.1
    assert found["pages_reclaimed_per_access"] == 0.4
    assert found["swapped_in_pages_per_access"] == 0.03


def test_pages_by_what_they_held_are_believed_before_pages_by_who_asked(tmp_path: Path) -> None:
    """Who asked leaves out reclaim at a memory group's limit."""
    split = {"pgscan_anon": 1, "pgscan_file": 1, "pgsteal_anon": 1, "pgsteal_file": 1}
    before = {**BEFORE, "vmstat": {**BEFORE["vmstat"], **split}}
    grown = {"pgscan_anon": 100, "pgscan_file": 900, "pgsteal_anon": 0, "pgsteal_file": 800}
    end = after({**before, "vmstat": {name: value for name, value in before["vmstat"].items() if name not in split}})
    end["vmstat"] |= {name: 1 + growth for name, growth in grown.items()}
    (tmp_path / "result.json").write_text(json.dumps(result()))
    (tmp_path / "counters.json").write_text(json.dumps([before, end]))
    found = file_access.compute(tmp_path, window=WINDOW, direct=False)
    assert (found["pages_scanned_per_access"], found["pages_reclaimed_per_access"]) == (1.0, 0.8)
    assert found["major_faults_per_access"] == 0.002


def test_a_kernel_that_does_not_split_refaults_has_one_counter_for_them(tmp_path: Path) -> None:
    old = {name: value for name, value in BEFORE["vmstat"].items() if not name.startswith("workingset")}
    found = scalars(tmp_path, before={**BEFORE, "vmstat": old})
    assert "refaults_per_access" not in found
    GROWN["workingset_refault"] = 30
    try:
        found = scalars(tmp_path, before={**BEFORE, "vmstat": {**old, "workingset_refault": 2}})
    finally:
        del GROWN["workingset_refault"]
    assert found["refaults_per_access"] == 0.03


@pytest.mark.parametrize(("direct", "is_dax"), [(True, False), (False, True)])
def test_what_has_no_page_cache_has_no_miss_ratio(tmp_path: Path, *, direct: bool, is_dax: bool) -> None:
    found = scalars(tmp_path, before=medium(is_dax=is_dax), direct=direct)
    assert "miss_ratio" not in found
    assert "device_miss_ratio" not in found
    assert found["uncached_bytes"] == (READS + WRITES) * BLOCK
    assert found["block_read_bytes"] > 0


def test_without_reads_there_is_nothing_to_miss(tmp_path: Path) -> None:
    none = {"committed": 0, "rolled_back": 0, "failed": 0, "retried": 0}
    found = scalars(tmp_path, transactions={"read": none, "write": {**none, "committed": 5}})
    assert "miss_ratio" not in found
    assert found["accesses"] == 5


def test_a_kernel_without_accounting_has_the_devices_ratio_alone(tmp_path: Path) -> None:
    found = scalars(tmp_path, before={**BEFORE, "accounts_processes": False})
    assert "miss_ratio" not in found
    assert "storage_read_bytes" not in found
    assert found["device_miss_ratio"] == 0.375


def test_time_per_access_is_of_user_and_system(tmp_path: Path) -> None:
    assert scalars(tmp_path)["cpu_ns_per_access"] == pytest.approx(10_000)


def test_a_program_that_counts_its_own_bytes_and_rate_is_believed(tmp_path: Path) -> None:
    found = scalars(tmp_path, bytes_moved={"read": 10_000, "written": 20_000}, iops=123.5)
    assert found["application_read_bytes"] == 10_000
    assert found["application_written_bytes"] == 20_000
    assert found["throughput_iops"] == 123.5


@pytest.mark.parametrize("name", ["result.json", "counters.json"])
@pytest.mark.parametrize("content", [None, "{", "[]", '[{"time_ns": 1}]'])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: str | None) -> None:
    scalars(tmp_path)
    path = tmp_path / name
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(RecordError, match=name):
        file_access.compute(tmp_path, window=WINDOW, direct=False)


def test_only_clocks_are_clocks() -> None:
    definitions = file_access.definitions()
    own = ["miss_ratio", "refaults_per_access", "accesses", "application_read_bytes", "footprint_share"]
    assert {definitions[name].kind for name in own} == {"count"}
    assert {definitions[name].kind for name in ("throughput_iops", "cpu_ns_per_access")} == {"wall_clock"}


def test_a_coarser_histogram_changes_the_resolution_of_percentiles_alone() -> None:
    fine, coarse = file_access.definitions(), file_access.definitions(resolution=1 / 64)
    changed = {name for name in fine if fine[name] != coarse[name]}
    assert changed == {
        f"{side}latency_ns_{percentile}"
        for side in ("", "read_", "write_")
        for percentile in ("p50", "p95", "p99", "p999")
    }
