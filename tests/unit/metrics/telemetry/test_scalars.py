"""Telemetry metrics against frames small enough to compute by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest

from fairtrial.errors import RecordError
from fairtrial.metrics import telemetry
from fairtrial.metrics.telemetry import measures
from fairtrial.metrics.telemetry.definitions import whole_devices
from fairtrial.record.models import Window

SECOND = 1_000_000_000
BOOT = 9_000_000 * SECOND  # a place up for a hundred days: times that a float does not hold exactly
TICKS_PER_S = 100


def window(start_s: float, end_s: float) -> Window:
    return Window(start_ns=BOOT + round(start_s * SECOND), end_ns=BOOT + round(end_s * SECOND))


def write(source: Path, times_s: Sequence[float], columns: Mapping[str, Sequence[int | None]]) -> None:
    """Writes a source, given as its name below the trial's directory."""
    times = pl.Series("time_ns", [BOOT + round(time * SECOND) for time in times_s], dtype=pl.Int64)
    counters = [pl.Series(name, values, dtype=pl.UInt64) for name, values in columns.items()]
    pl.DataFrame([times, *counters]).write_parquet(source.with_name(f"{telemetry.PREFIX}{source.name}.parquet"))


def compute(directory: Path, start_s: float, end_s: float) -> dict[str, float]:
    return telemetry.compute(directory, window=window(start_s, end_s), ticks_per_s=TICKS_PER_S)


def test_shares_of_processor_time_add_up_and_count_guests_once(tmp_path: Path) -> None:
    write(
        tmp_path / "cpu",
        [0, 1],
        {
            "user": [1000, 1060],
            "nice": [10, 20],
            "system": [500, 520],
            "idle": [90_000, 90_080],
            "iowait": [70, 80],
            "irq": [5, 7],
            "softirq": [5, 8],
            "steal": [0, 15],
            "guest": [400, 440],  # part of user already
            "guest_nice": [0, 0],
            "context_switches": [10**12, 10**12 + 345],
        },
    )
    values = compute(tmp_path, 0, 1)
    assert values["cpu_user_share"] == pytest.approx(70 / 200)
    assert values["cpu_system_share"] == pytest.approx(25 / 200)
    assert values["cpu_iowait_share"] == pytest.approx(10 / 200)
    assert values["cpu_steal_share"] == pytest.approx(15 / 200)
    assert values["cpu_idle_share"] == pytest.approx(80 / 200)
    assert sum(values[name] for name in values if name.startswith("cpu_")) == pytest.approx(1)
    assert values["context_switches"] == pytest.approx(345)


def test_iowait_that_steps_back_is_no_negative_share(tmp_path: Path) -> None:
    write(tmp_path / "cpu", [0, 1], {"user": [0, 100], "idle": [0, 100], "iowait": [50, 49]})
    assert compute(tmp_path, 0, 1)["cpu_iowait_share"] == 0


def test_slow_readings_leave_an_error_of_growth_and_of_what_is_made_of_it(tmp_path: Path) -> None:
    took_ns = [0, 0, SECOND // 5, 0, 0, 0, SECOND // 10, 0, 0]
    starts_ns = [BOOT + second * SECOND for second in range(9)]
    ends_ns = [start + took for start, took in zip(starts_ns, took_ns, strict=True)]
    times = {"time_ns": starts_ns, "end_ns": ends_ns}

    def grown(per_s: int) -> pl.Series:
        return pl.Series([per_s * second for second in range(9)], dtype=pl.UInt64)

    cpu = pl.DataFrame(times | {"user": grown(30), "idle": grown(70), "context_switches": grown(10)})
    cpu.write_parquet(tmp_path / "telemetry-cpu.parquet")
    pressure = pl.DataFrame(times | {"cpu.some.total_us": grown(500_000)})
    pressure.write_parquet(tmp_path / "telemetry-pressure.parquet")
    values = compute(tmp_path, 2, 6)
    assert values["context_switches"] == pytest.approx(40)
    assert values["context_switches_error"] == pytest.approx(10 * 0.2 + 10 * 0.1)
    assert values["cpu_stall_share_error"] == pytest.approx(0.5 * 0.3 / 4)
    assert values["cpu_user_share"] == pytest.approx(0.3)
    assert "cpu_user_share_error" not in values, "part and whole are off together"


def test_counters_grow_evenly_between_the_samples_around_an_edge(tmp_path: Path) -> None:
    write(tmp_path / "vmstat", [0, 1, 2, 3, 4], {"pswpout": [1000, 1100, 1200, 1600, 9999], "pswpin": [7, 7, 7, 7, 7]})
    values = compute(tmp_path, 0.5, 2.25)
    assert values["swapped_out_pages"] == pytest.approx(50 + 100 + 100)
    assert values["swapped_in_pages"] == 0


def test_what_happened_before_and_after_the_window_does_not_count(tmp_path: Path) -> None:
    write(tmp_path / "vmstat", [0, 1, 2, 3], {"pgmajfault": [0, 5000, 5003, 900_000]})
    assert compute(tmp_path, 1, 2)["major_faults"] == pytest.approx(3)


def test_large_counters_lose_no_digit(tmp_path: Path) -> None:
    write(tmp_path / "vmstat", [0, 1], {"pgmajfault": [2**60, 2**60 + 3]})
    assert compute(tmp_path, 0, 1)["major_faults"] == 3


def test_gauges_are_averaged_over_time_not_over_samples(tmp_path: Path) -> None:
    # 100 for one second, then a late sample: three seconds at 200 weigh three times as much.
    write(tmp_path / "process-server", [0, 1, 1.001, 4], {"resident_bytes": [100, 100, 200, 200]})
    assert compute(tmp_path, 0, 4)["server_resident_bytes_mean"] == pytest.approx((100 * 1 + 200 * 3) / 4, rel=1e-3)


def test_a_window_between_two_samples_has_values_too(tmp_path: Path) -> None:
    write(tmp_path / "process-server", [0, 10], {"resident_bytes": [0, 1000], "user_ticks": [0, 500]})
    values = compute(tmp_path, 2, 4)
    assert values["server_resident_bytes_mean"] == pytest.approx(300)
    assert values["server_cpu_s"] == pytest.approx(1.0)


def test_the_server_s_own_figures(tmp_path: Path) -> None:
    write(
        tmp_path / "process-server",
        [0, 2],
        {
            "user_ticks": [100, 250],
            "system_ticks": [10, 60],
            "resident_bytes": [4096, 8192],
            "read_bytes": [0, 512],
            "write_bytes": [1 << 40, (1 << 40) + 4096],
        },
    )
    values = compute(tmp_path, 0, 2)
    assert values["server_cpu_s"] == pytest.approx(2.0)
    assert values["server_resident_bytes_mean"] == pytest.approx(6144)
    assert (values["server_read_bytes"], values["server_written_bytes"]) == (512, 4096)


def test_disk_bytes_count_each_whole_device_once(tmp_path: Path) -> None:
    write(
        tmp_path / "disks",
        [0, 1],
        {
            "vda.sectors_read": [100, 110],
            "vda.sectors_written": [0, 8],
            "vda1.sectors_read": [100, 110],
            "vda1.sectors_written": [0, 8],
            "dm-0.sectors_read": [100, 110],
            "dm-0.sectors_written": [0, 8],
            "nvme0n1.sectors_read": [0, 1],
            "nvme0n1.sectors_written": [0, 2],
            "nvme0n1p1.sectors_read": [0, 1],
            "nvme0n1p1.sectors_written": [0, 2],
            "zram0.sectors_written": [0, 1_000_000],
        },
    )
    values = compute(tmp_path, 0, 1)
    assert (values["disk_read_bytes"], values["disk_written_bytes"]) == (11 * 512, 10 * 512)


@pytest.mark.parametrize("disk_grown", [0, 10], ids=["before Linux 6.4", "from Linux 6.4 on"])
def test_an_nvme_disk_that_counts_what_its_paths_count_is_counted_once(tmp_path: Path, disk_grown: int) -> None:
    columns = {
        "nvme3n1.sectors_read": [0, disk_grown],
        "nvme3n1p1.sectors_read": [0, disk_grown],
        "nvme3c33n1.sectors_read": [100, 106],
        "nvme3c34n1.sectors_read": [100, 104],
        "vda.sectors_read": [0, 1],
    }
    write(tmp_path / "disks", [0, 1], columns)
    assert compute(tmp_path, 0, 1)["disk_read_bytes"] == 11 * 512
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.UInt64))
    before, now = ({name: values[row] for name, values in columns.items()} for row in (0, 1))
    summed = measures.completed(frame, "disks")["sectors_read"].to_list()
    assert summed[1] - summed[0] == 11
    assert measures.row_of("disks", before, now, elapsed_s=1)["sectors_read_per_s"] == 11
    assert set(measures.columns_of("disks", list(columns))) == set(columns) - {"nvme3n1p1.sectors_read"}


@pytest.mark.parametrize(
    ("devices", "whole"),
    [
        (["sda", "sda1", "sda15", "sdaa", "sdaa1"], ["sda", "sdaa"]),
        (["nvme0n1", "nvme0n1p1", "nvme0n10"], ["nvme0n1", "nvme0n10"]),
        (["mmcblk0", "mmcblk0p2", "mmcblk0boot0"], ["mmcblk0", "mmcblk0boot0"]),
        (["xvda1"], ["xvda1"]),  # some clouds show a disk's partition and no disk
        (["dm-3", "md127", "loop0", "zram1", "ram15", "drbd0", "bcache2", "zd16", "sr0", "pmem0"], ["sr0", "pmem0"]),
    ],
)
def test_whole_devices_are_told_from_partitions_and_stacks_by_name(devices: list[str], whole: list[str]) -> None:
    assert whole_devices([f"{device}.{field}" for device in devices for field in ("a", "b")]) == whole


def test_memory_gauges(tmp_path: Path) -> None:
    write(
        tmp_path / "memory",
        [0, 1, 2],
        {
            "MemTotal": [1000, 1000, 1000],
            "Cached": [300, 300, 300],
            "Buffers": [50, 50, 50],
            "Shmem": [100, 100, 100],
            "AnonPages": [400, 400, 400],
            "SwapTotal": [800, 800, 800],
            "SwapFree": [800, 300, 300],
            "SwapCached": [0, 0, 0],
            "Inactive(file)": [0, 100, 200],
        },
    )
    values = compute(tmp_path, 0, 2)
    assert values["page_cache_bytes_mean"] == pytest.approx(250)
    assert values["inactive_file_share"] == pytest.approx(0.1)
    assert values["swapped_out_share"] == pytest.approx((0 + 0.5) / 2 / 2 + 0.5 / 2)


def test_a_place_without_swap_has_swapped_out_nothing(tmp_path: Path) -> None:
    swap = {"SwapTotal": [0, 0], "SwapFree": [0, 0], "SwapCached": [0, 0]}
    write(tmp_path / "memory", [0, 1], {"AnonPages": [400, 400], "Shmem": [0, 0], **swap})
    assert compute(tmp_path, 0, 1)["swapped_out_share"] == 0


def test_what_is_in_swap_and_still_in_memory_is_not_swapped_out(tmp_path: Path) -> None:
    columns = {
        "AnonPages": [700, 700, 700],
        "Shmem": [0, 0, 0],
        "SwapTotal": [800, 800, 800],
        "SwapFree": [400, 400, 400],
        "SwapCached": [100, 100, 100],
    }
    write(tmp_path / "memory", [0, 1, 2], columns)
    assert compute(tmp_path, 0, 2)["swapped_out_share"] == pytest.approx(300 / (300 + 700))


def test_swap_counters_read_one_after_the_other_give_no_negative_share(tmp_path: Path) -> None:
    swap = {"SwapTotal": [800, 800], "SwapFree": [796, 796], "SwapCached": [8, 8]}
    write(tmp_path / "memory", [0, 1], {"AnonPages": [400, 400], "Shmem": [0, 0], **swap})
    assert compute(tmp_path, 0, 1)["swapped_out_share"] == 0


def test_reclaim_at_a_groups_limit_is_counted_where_the_kernel_tells_it(tmp_path: Path) -> None:
    columns = {
        "workingset_refault_anon": [0, 1],
        "workingset_refault_file": [0, 20],
        "pgscan_direct": [0, 3],
        "pgscan_direct_throttle": [0, 1000],
        "pgsteal_kswapd": [0, 100],
        "pgsteal_direct": [0, 10],
        "pgsteal_anon": [0, 55],  # the same pages, split another way, and 190 that a group's limit cost
        "pgsteal_file": [0, 245],
    }
    write(tmp_path / "vmstat", [0, 1], columns)
    values = compute(tmp_path, 0, 1)
    assert (values["refaults"], values["pages_scanned_direct"], values["pages_reclaimed"]) == (21, 3, 300)
    assert "major_faults" not in values


def test_reclaim_of_kernels_before_the_split_is_told_by_who_asked(tmp_path: Path) -> None:
    write(tmp_path / "vmstat", [0, 1], {"pgsteal_kswapd": [0, 100], "pgsteal_direct": [0, 10]})
    assert compute(tmp_path, 0, 1)["pages_reclaimed"] == 110


def test_refaults_of_kernels_before_the_split(tmp_path: Path) -> None:
    write(tmp_path / "vmstat", [0, 1], {"workingset_refault": [5, 12]})
    assert compute(tmp_path, 0, 1)["refaults"] == 7


def test_stalls_are_shares_of_the_window(tmp_path: Path) -> None:
    columns = {"memory.some.total_us": [0, 500_000], "io.some.total_us": [7, 7], "cpu.some.total_us": [0, 2_000_000]}
    write(tmp_path / "pressure", [0, 2], columns)
    values = compute(tmp_path, 0, 2)
    assert values["memory_stall_share"] == pytest.approx(0.25)
    assert (values["io_stall_share"], values["cpu_stall_share"]) == (0, 1)


def test_a_counter_that_disappears_gives_no_metric_and_spares_the_others(tmp_path: Path) -> None:
    write(tmp_path / "vmstat", [0, 1, 2], {"pswpout": [1, None, None], "pswpin": [1, 2, 3]})
    values = compute(tmp_path, 0, 2)
    assert "swapped_out_pages" not in values
    assert values["swapped_in_pages"] == 2


@pytest.mark.parametrize(
    ("start_s", "end_s"), [(-5, 2), (1, 9), (20, 30), (2, 2)], ids=["starts late", "ends early", "elsewhere", "empty"]
)
def test_a_window_that_was_not_observed_has_no_metrics(tmp_path: Path, start_s: float, end_s: float) -> None:
    write(tmp_path / "vmstat", [0, 1, 2, 3], {"pswpout": [0, 1, 2, 3]})
    assert compute(tmp_path, start_s, end_s) == {}


@pytest.mark.parametrize(
    ("times_s", "observed"),
    [
        ([*range(-3, 5), *range(10, 16)], True),  # counters bridge it
        ([*range(-3, 12), *range(32, 36)], False),
        ([*range(-3, 8), *range(13, 20)], False),
        ([*range(-20, -4), *range(1, 16)], False),
        ([*range(-20, 0), *range(5, 16)], False),
        ([*range(-3, -1), *range(2, 11), *range(14, 16)], True),
    ],
    ids=["inside", "after the end", "before the end", "before the start", "after the start", "two intervals"],
)
def test_a_hole_across_an_edge_of_the_window_is_not_interpolated(
    tmp_path: Path, times_s: Sequence[float], *, observed: bool
) -> None:
    """A server that did not answer for 20 s did its work on either side of the edge: nobody knows how much."""
    write(tmp_path / "server", times_s, {"questions": [100 * index for index, _ in enumerate(times_s)]})
    assert ("server_statements" in compute(tmp_path, 0, 12)) == observed


@pytest.mark.parametrize(("length_s", "observed"), [(60, True), (20, False)])
def test_a_hole_that_is_short_beside_the_window_is_bridged(tmp_path: Path, length_s: int, *, observed: bool) -> None:
    times_s = [each / 100 for each in range(-50, -25)] + [each / 100 for each in range(45, length_s * 100 + 50)]
    write(tmp_path / "server", times_s, {"questions": list(range(len(times_s)))})
    assert ("server_statements" in compute(tmp_path, 0, length_s)) == observed


@pytest.mark.parametrize("nulls", [(0,), (1,), (2,), (3,), (0, 1, 2, 3)])
def test_a_counter_that_is_unknown_in_the_window_makes_no_partial_sum(tmp_path: Path, nulls: tuple[int, ...]) -> None:
    """Of the two columns of refaults one is not said at times; without it the sum would look whole and be too small."""
    anonymous = [None if index in nulls else 10 * index for index in range(6)]
    columns = {"workingset_refault_anon": anonymous, "workingset_refault_file": list(range(6))}
    write(tmp_path / "vmstat", [0, 1, 2, 3, 4, 5], columns)
    assert "refaults" not in compute(tmp_path, 0.5, 2.5)


def test_a_counter_that_is_unknown_outside_the_window_only_counts(tmp_path: Path) -> None:
    columns = {"workingset_refault_anon": [None, 10, 20, 30, None], "workingset_refault_file": [0, 1, 2, 3, 4]}
    write(tmp_path / "vmstat", [0, 1, 2, 3, 4], columns)
    assert compute(tmp_path, 1, 3)["refaults"] == 22


def test_a_counter_that_the_place_never_had_is_left_out_of_a_sum(tmp_path: Path) -> None:
    columns = {"workingset_refault_anon": [None, None, None], "workingset_refault_file": [0, 1, 2]}
    write(tmp_path / "vmstat", [0, 1, 2], columns)
    assert compute(tmp_path, 0, 2)["refaults"] == 2


def test_one_sample_is_not_enough(tmp_path: Path) -> None:
    write(tmp_path / "vmstat", [0], {"pswpout": [0]})
    assert compute(tmp_path, 0, 1) == {}


def test_a_trial_without_telemetry_has_no_metrics_and_empty_frames(tmp_path: Path) -> None:
    assert compute(tmp_path, 0, 1) == {}
    assert telemetry.read(tmp_path, "cpu").height == 0


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    write(tmp_path / "cpu", [0, 1], {"user": [0, 1]})
    path = tmp_path / "telemetry-cpu.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(RecordError, match=r"telemetry-cpu\.parquet cannot be read"):
        compute(tmp_path, 0, 1)


@pytest.mark.parametrize(
    "columns",
    [
        {"time_ns": [0, SECOND], "user": ["0", "1"]},
        {"time_ns": ["0", "1"], "user": [0, 1]},
        {"time_ns": [0, None], "user": [0, 1]},
        {"user": [0, 1]},
    ],
)
def test_a_file_whose_columns_hold_no_numbers_is_damaged(tmp_path: Path, columns: dict[str, list[object]]) -> None:
    pl.DataFrame(columns).write_parquet(tmp_path / "telemetry-cpu.parquet")
    for read in (lambda: compute(tmp_path, 0, 1), lambda: telemetry.read(tmp_path, "cpu")):
        with pytest.raises(RecordError, match=r"telemetry-cpu\.parquet cannot be read"):
            read()


def test_every_metric_says_where_it_comes_from_and_time_is_never_called_a_count() -> None:
    for name, definition in telemetry.DEFINITIONS.items():
        assert definition.name == name
        assert definition.source.startswith("telemetry-")
        timed = name.startswith("cpu_") or name.endswith(
            (
                "_stall_share",
                "_full_share",
                "_cpu_s",
                "_time_s",
                "_answer_s_mean",
                "_reading_s_max",
                "_tpm",
                "_period_s",
                "_ms_per_s",
            )
        )
        assert definition.kind == ("wall_clock" if timed else "count")
