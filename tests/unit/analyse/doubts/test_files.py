"""Doubts about access to files: each case with its figures, and the cases on the other side of each limit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairtrial.analyse.doubts import files as file_doubts
from fairtrial.analyse.models import DOUBT_CODES, Doubt
from fairtrial.record.models import TrialRecord

MIB = float(1 << 20)


def trials(*scalars: dict[str, float], options: dict[str, str] | None = None) -> list[TrialRecord]:
    """As much of trials as doubts look at."""
    made: list[Any] = [
        SimpleNamespace(trial=SimpleNamespace(id=f"all.b0{number}.a"), scalars=each, options=options or {})
        for number, each in enumerate(scalars, start=1)
    ]
    return cast("list[TrialRecord]", made)


def doubts(*scalars: dict[str, float], options: dict[str, str] | None = None) -> list[Doubt]:
    return list(file_doubts.about(trials(*scalars, options=options)))


def test_trials_of_other_workloads_raise_none() -> None:
    assert doubts({}, {"throughput_tpm": 3.0}) == []


def test_a_partial_footprint_is_told_with_its_shares() -> None:
    (found,) = doubts({"footprint_share": 0.377}, {"footprint_share": 1.0}, {"footprint_share": 0.765})
    assert found.code == "footprint"
    assert "in 2 of 3 used trials" in found.message
    assert "37.7 to 76.5 % of a file's blocks" in found.message
    assert "power of two" in found.advice


def test_one_share_is_no_range() -> None:
    (found,) = doubts({"footprint_share": 0.377}, {"footprint_share": 0.377})
    assert "can reach only 37.7 % of" in found.message


@pytest.mark.parametrize("share", [1.0, 0.9995])
def test_a_whole_footprint_raises_none(share: float) -> None:
    assert doubts({"footprint_share": share}) == []


def moved(uncached: float, read: float, written: float = 0.0) -> dict[str, float]:
    return {"uncached_bytes": uncached * MIB, "block_read_bytes": read * MIB, "block_written_bytes": written * MIB}


def test_what_the_block_layer_does_not_see_is_told_with_the_worst_trial() -> None:
    (found,) = doubts(moved(400, 0.5), moved(600, 0, 1), moved(300, 300))
    assert found.code == "invisible_io"
    assert "in 2 of 3 used trials" in found.message
    assert "in all.b02.a 1.0 of 600.0 MiB" in found.message
    assert "DAX" in found.advice


@pytest.mark.parametrize(
    "scalars",
    [
        moved(400, 400),
        moved(400, 150, 60),  # reads and writes together are more than half
        moved(0.5, 0),  # too little to say
        moved(0, 0),  # cached: hits explain everything
        {"uncached_bytes": 400 * MIB},  # a kernel without counters says nothing
    ],
)
def test_what_can_be_explained_is_not_invisible(scalars: dict[str, float]) -> None:
    assert doubts(scalars) == []


def served(moved: float, disks: float) -> dict[str, float]:
    """A server's own count and that of all disks, each half reads."""
    return {
        "server_data_read_bytes": moved / 2 * MIB,
        "server_data_written_bytes": moved / 2 * MIB,
        "disk_read_bytes": disks / 2 * MIB,
        "disk_written_bytes": disks / 2 * MIB,
    }


def test_a_server_on_dax_moves_more_than_the_disks_see() -> None:
    (found,) = doubts(served(440, 430), served(437, 6.6), options={"innodb_flush_method": "O_DIRECT_NO_FSYNC"})
    assert found.code == "invisible_io"
    assert "in 1 of 2 used trials" in found.message
    assert "in all.b02.a 6.6 of 437.0 MiB" in found.message


def test_what_a_server_leaves_to_the_page_cache_is_no_doubt() -> None:
    """Reads may hit it, and writes of one page may become one."""
    assert doubts(served(437, 6.6), options={"innodb_flush_method": "fsync"}) == []
    assert doubts(served(437, 6.6)) == []


def test_a_server_whose_disks_nobody_counts_is_no_doubt() -> None:
    figures = {name: value for name, value in served(437, 0).items() if not name.startswith("disk_")}
    assert doubts(figures, options={"innodb_flush_method": "O_DIRECT"}) == []


def shared(device: float, own: float) -> dict[str, float]:
    return {"block_read_bytes": device * MIB, "storage_read_bytes": own * MIB}


def test_reads_of_others_are_told_with_the_worst_trial() -> None:
    (found,) = doubts(shared(26, 15), shared(15, 15), shared(69, 15))
    assert found.code == "shared_device"
    assert "in 2 of 3 used trials" in found.message
    assert "in all.b03.a 54.0 MiB in addition to the workload's 15.0 MiB" in found.message
    assert "`miss_ratio`" in found.advice


@pytest.mark.parametrize(
    "scalars",
    [
        shared(109, 100),  # a tenth of its own
        shared(99.1, 100),  # less than a hundredth from elsewhere
        shared(0.1, 1.0),  # less than a mebibyte from elsewhere
        shared(1.0, 0.1),  # less than a mebibyte
        shared(0, 100),  # DAX and devices that are not counted
        {"block_read_bytes": 90 * MIB},  # a kernel without accounting
    ],
)
def test_a_quiet_device_raises_none(scalars: dict[str, float]) -> None:
    assert doubts(scalars) == []


def test_what_processes_read_from_elsewhere_is_told_with_the_worst_trial() -> None:
    """As it was measured: 107 major faults of fio's own program, a fifth of what its process was charged with."""
    (found,) = doubts(shared(63.2, 81.0), shared(74.6, 74.7), shared(95, 100))
    assert found.code == "read_elsewhere"
    assert "in 2 of 3 used trials" in found.message
    assert "in all.b01.a 17.8 of 81.0 MiB" in found.message
    assert "judge `device_miss_ratio`, not" in found.advice


def test_every_code_is_listed() -> None:
    found = doubts({"footprint_share": 0.2}, moved(400, 0), shared(100, 5), shared(60, 100))
    assert [each.code for each in found] == ["footprint", "invisible_io", "shared_device", "read_elsewhere"]
    assert {each.code for each in found} <= set(DOUBT_CODES)
