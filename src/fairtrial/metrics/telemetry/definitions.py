"""What telemetry can measure: each metric's definition beside its computation.

Those of a server are in `server_metrics`, those of a governor in `governor_metrics`.
Sources and columns are the sampler's (`crates/sample`): kernel names where the kernel has good ones. A metric whose
column a kernel lacks is None there, never zero.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

import numpy as np

from fairtrial.metrics.telemetry import governor as governor_metrics
from fairtrial.metrics.telemetry import server as server_metrics
from fairtrial.metrics.telemetry.definition import Family, Value, count, either, first, mean, per_second
from fairtrial.metrics.telemetry.window import WindowSamples

SECTOR_BYTES: Final = 512  # /proc/diskstats, whatever the device's own sector (Documentation/admin-guide/iostats.rst)
MICROSECONDS_PER_SECOND: Final = 1e6
CPU_CLASSES: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
REFAULTS: Final = ("workingset_refault_anon", "workingset_refault_file", "workingset_refault")  # one until 5.8
# By what pages held since 5.8; by who asked before, which leaves out what a memory group's limit made the kernel do
# (mm/vmscan.c: the latter are counted unless `cgroup_reclaim`).
RECLAIMED: Final = (("pgsteal_anon", "pgsteal_file"), ("pgsteal_kswapd", "pgsteal_direct", "pgsteal_khugepaged"))
SCANNED: Final = (("pgscan_anon", "pgscan_file"), ("pgscan_kswapd", "pgscan_direct", "pgscan_khugepaged"))

# Devices whose traffic is another device's traffic too (mapped, striped, cached, replicated, loops, volumes of ZFS) or
# memory's.
STACKED: Final = re.compile(r"(dm-|md|bcache|drbd|loop|zram|ram|zd)\d")
# A controller's path to an NVMe disk that may have several (nvme0c1n1 to nvme0n1), which nobody can open.
PATH: Final = re.compile(r"(?P<disk>nvme\d+)c\d+(?P<namespace>n\d+)")
PARTITION: Final = re.compile(r"(?P<disk>.*\d(?=p)|.*\D)p?\d+")  # sda1, nvme0n1p1, mmcblk0p1


def whole_devices(columns: list[str]) -> list[str]:
    """Devices that own their traffic: a partition's is its disk's, a mapped device's is that of those below it."""
    devices = list(dict.fromkeys(column.rpartition(".")[0] for column in columns))

    def owns(device: str) -> bool:
        match = PARTITION.fullmatch(device)
        return not STACKED.match(device) and not (match and match["disk"] in devices)

    return [device for device in devices if owns(device)]


def traffic(columns: list[str], field: str) -> list[list[list[str]]]:
    """Columns of a field that tell what all disks did: of each disk one list, or two whose sums mean the same.

    An NVMe disk's paths count its traffic, and from Linux 6.4 on the disk counts it as well, which before stays at 0
    (`nvme_mpath_start_request`): the larger sum is right.
    """
    disks: dict[str, list[list[str]]] = {}
    for device in whole_devices(columns):
        path, column = PATH.fullmatch(device), f"{device}.{field}"
        own, of_paths = disks.setdefault(path["disk"] + path["namespace"] if path else device, [[], []])
        if column in columns:
            (of_paths if path else own).append(column)
    told = ([each for each in disk if each] for disk in disks.values())
    return [disk for disk in told if disk]


def _cpu_share(*classes: str) -> Value:
    def share(samples: WindowSamples) -> float | None:
        part, whole = samples.grown(*classes), samples.grown(*CPU_CLASSES)
        return part / whole if part is not None and whole else None

    return share


_stall = partial(per_second, scale=MICROSECONDS_PER_SECOND)


def _disk_bytes(field: str) -> Value:
    def moved(samples: WindowSamples) -> float | None:
        grown = [[samples.grown(*columns) for columns in disk] for disk in traffic(samples.columns, field)]
        known = [[each for each in disk if each is not None] for disk in grown]
        return sum(map(max, known)) * SECTOR_BYTES if known and known == grown else None

    return moved


def _server_cpu_s(samples: WindowSamples) -> float | None:
    ticks = samples.grown("user_ticks", "system_ticks")
    return None if ticks is None or samples.ticks_per_s is None else ticks / samples.ticks_per_s


def _page_cache(samples: WindowSamples) -> float | None:
    cached, buffers, shared = (samples.gauge(name) for name in ("Cached", "Buffers", "Shmem"))
    if cached is None or buffers is None or shared is None:
        return None
    return samples.mean(cached + buffers - shared)


def _swapped_out(samples: WindowSamples) -> float | None:
    total, free, cached = (samples.gauge(name) for name in ("SwapTotal", "SwapFree", "SwapCached"))
    anonymous, shared = samples.gauge("AnonPages"), samples.gauge("Shmem")
    if total is None or free is None or cached is None or anonymous is None or shared is None:
        return None
    out = np.maximum(total - free - cached, 0.0)  # the kernel sums them one after the other, while pages move
    held = out + anonymous + shared
    return samples.mean(np.divide(out, held, out=np.zeros_like(out), where=held > 0))


def _inactive_file(samples: WindowSamples) -> float | None:
    inactive, total = samples.gauge("Inactive(file)"), samples.gauge("MemTotal")
    return None if inactive is None or total is None else samples.mean(inactive / total)


_TIME = Family("cpu", "share of all processors", "wall_clock")
_SWITCHES = Family("cpu", "switches", "count")
_SERVER_TIME = Family("process-server", "s", "wall_clock")
_SERVER_BYTES = Family("process-server", "B", "count")
_SERVER_FAULTS = Family("process-server", "faults", "count")
_DISKS = Family("disks", "B", "count")
_MEMORY = Family("memory", "B", "count")
_MEMORY_SHARE = Family("memory", "share", "count")
_PAGES = Family("vmstat", "pages", "count")
_FAULTS = Family("vmstat", "faults", "count")
_STALLS = Family("pressure", "share of time", "wall_clock")

_PLACE: Final = (
    _TIME.metric("cpu_user_share", _cpu_share("user", "nice"), of="user + nice of all classes", label="CPU, user"),
    _TIME.metric(
        "cpu_system_share",
        _cpu_share("system", "irq", "softirq"),
        of="system + irq + softirq of all classes",
        label="CPU, system",
    ),
    _TIME.metric("cpu_iowait_share", _cpu_share("iowait"), of="iowait of all classes", label="CPU, waiting for I/O"),
    _TIME.metric("cpu_steal_share", _cpu_share("steal"), of="steal of all classes", label="CPU, stolen"),
    _TIME.metric("cpu_idle_share", _cpu_share("idle"), of="idle of all classes", label="CPU, idle", better="higher"),
    _SWITCHES.metric("context_switches", count("context_switches"), of="context_switches", label="context switches"),
    _SERVER_TIME.metric("server_cpu_s", _server_cpu_s, of="user_ticks + system_ticks", label="server's CPU time"),
    _SERVER_BYTES.metric(
        "server_resident_bytes_mean",
        mean("resident_bytes"),
        of="resident_bytes, mean over the window",
        label="server's memory",
    ),
    _SERVER_BYTES.metric("server_read_bytes", count("read_bytes"), of="read_bytes (from storage)", label="server read"),
    _SERVER_BYTES.metric(
        "server_written_bytes", count("write_bytes"), of="write_bytes (to storage)", label="server wrote"
    ),
    _SERVER_FAULTS.metric(
        "server_major_faults",
        count("major_faults"),
        of="major_faults: of the server's threads, those that waited for a page, whoever had asked for it first",
        label="server's major faults",
    ),
    _DISKS.metric(
        "disk_read_bytes",
        _disk_bytes("sectors_read"),
        of="<device>.sectors_read × 512, whole devices only",
        label="read from disks",
    ),
    _DISKS.metric(
        "disk_written_bytes",
        _disk_bytes("sectors_written"),
        of="<device>.sectors_written × 512, whole devices only",
        label="written to disks",
    ),
    _MEMORY.metric(
        "page_cache_bytes_mean",
        _page_cache,
        of="Cached + Buffers − Shmem, mean over the window",
        label="page cache",
        better="higher",
    ),
    _MEMORY_SHARE.metric(
        "swapped_out_share",
        _swapped_out,
        of="out / (out + AnonPages + Shmem), mean over the window; out: SwapTotal − SwapFree − SwapCached, without "
        "what is in swap and still in memory",
        label="swapped out",
    ),
    _MEMORY_SHARE.metric(
        "inactive_file_share",
        _inactive_file,
        of="Inactive(file) / MemTotal, mean over the window",
        label="inactive file pages",
        better="higher",
    ),
    _PAGES.metric("swapped_out_pages", count("pswpout"), of="pswpout", label="pages swapped out"),
    _PAGES.metric("swapped_in_pages", count("pswpin"), of="pswpin", label="pages swapped in"),
    _FAULTS.metric("major_faults", count("pgmajfault"), of="pgmajfault", label="major faults"),
    _FAULTS.metric("refaults", count(*REFAULTS), of=" + ".join(REFAULTS), label="refaults"),
    _PAGES.metric(
        "pages_scanned_direct",
        count("pgscan_direct"),
        of="pgscan_direct, without reclaim at a memory group's limit",
        label="pages scanned in direct reclaim",
    ),
    _PAGES.metric("pages_reclaimed", first(RECLAIMED), of=either(RECLAIMED), label="pages reclaimed"),
    _STALLS.metric(
        "memory_stall_share",
        _stall("memory.some.total_us"),
        of="memory.some.total_us",
        label="stalled on memory (PSI some)",
    ),
    _STALLS.metric(
        "io_stall_share", _stall("io.some.total_us"), of="io.some.total_us", label="stalled on I/O (PSI some)"
    ),
    _STALLS.metric(
        "cpu_stall_share", _stall("cpu.some.total_us"), of="cpu.some.total_us", label="stalled on CPU (PSI some)"
    ),
)

METRICS: Final = (*_PLACE, *server_metrics.METRICS, *governor_metrics.METRICS)
