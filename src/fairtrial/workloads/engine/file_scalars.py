"""Scalars of workloads that access files: how much the page cache missed, and what an access cost the kernel.

A miss is what the kernel read from storage on behalf of the process that accesses (its accounting, `getrusage`), since
the device's and the machine's counters have everybody's reads; both are told.

Counts come from the kernel's counters as read right before and right after the measured window (`counters.json`), not
from samples, so that they belong to the window's accesses alone. It must not know who accessed the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, RootModel

from fairtrial import foreign
from fairtrial.metrics import latency
from fairtrial.metrics.drive import FILE as RESULT
from fairtrial.metrics.drive import TransactionOutcomes, seconds
from fairtrial.metrics.series import stability, steadiness
from fairtrial.metrics.telemetry.definition import either
from fairtrial.metrics.telemetry.definitions import RECLAIMED, SCANNED, SECTOR_BYTES
from fairtrial.protocol.generated import FileCounters, Medium
from fairtrial.record.models import Window
from fairtrial.study.catalogue import Better, MetricDefinition, MetricKind

COUNTERS: Final = "counters.json"  # the kernel's counters before and after the window
PGPGIN_BYTES: Final = 1024  # pgpgin and pgpgout count KiB (mm/vmstat.c)
NANOSECONDS_PER_SECOND: Final = 1e9

# Counters per access: the first group of names that a kernel has, since kernels have split and joined them.
PER_ACCESS: Final[Mapping[str, tuple[str, Sequence[Sequence[str]], str]]] = {
    "refaults_per_access": ("refaults of file pages", [["workingset_refault_file"], ["workingset_refault"]], "faults"),
    "pages_scanned_per_access": ("pages scanned", SCANNED, "pages"),
    "pages_scanned_direct_per_access": ("pages scanned in direct reclaim", [["pgscan_direct"]], "pages"),
    "pages_reclaimed_per_access": ("pages reclaimed", RECLAIMED, "pages"),
    "swapped_in_pages_per_access": ("pages swapped in", [["pswpin"]], "pages"),
    "major_faults_per_access": ("major faults", [["pgmajfault"]], "faults"),
}


class ByteCounts(BaseModel):
    """Bytes as the application counts them."""

    read: int
    written: int


class FileUsage(BaseModel):
    """What the kernel accounts to the processes that accessed the files; blocks are 512 bytes."""

    user_s: float
    system_s: float
    blocks_in: int
    blocks_out: int


class FileAccessResult(BaseModel):
    """The part of `result.json` that scalars come from; `bytes_moved` where accesses differ in length."""

    transactions: dict[str, TransactionOutcomes]
    client: FileUsage
    effective: dict[str, str]
    bytes_moved: ByteCounts | None = None
    iops: float | None = None

    @property
    def accesses(self) -> int:
        """Reads and writes."""
        return sum(outcome.done for outcome in self.transactions.values())

    @property
    def moved(self) -> ByteCounts:
        """What the application read and wrote."""
        if self.bytes_moved is not None:
            return self.bytes_moved
        block = int(self.effective["block_bytes"])
        return ByteCounts(**{name: block * self.transactions[kind].done for name, kind in _SIDES.items()})


_SIDES: Final = {"read": "read", "written": "write"}


class Edges(RootModel[tuple[FileCounters, FileCounters]]):
    """`counters.json`: counters right before and right after the window."""

    @property
    def before(self) -> FileCounters:
        """Right before."""
        return self.root[0]

    @property
    def after(self) -> FileCounters:
        """Right after."""
        return self.root[1]

    def grown(self, *names: str) -> float | None:
        """What counters of vmstat grew by, summed over those that the kernel has; None if it has none."""
        present = [name for name in names if name in self.before.vmstat and name in self.after.vmstat]
        if not present:
            return None
        return float(sum(self.after.vmstat[name] - self.before.vmstat[name] for name in present))

    def first_grown(self, groups: Sequence[Sequence[str]]) -> float | None:
        """What the first group of counters of which the kernel has any grew by."""
        return next((growth for group in groups if (growth := self.grown(*group)) is not None), None)

    def block_bytes(self) -> ByteCounts | None:
        """What the block layer moved: by the files' own device if its traffic is counted, else by all devices."""
        medium = self.before.medium
        if source_of(medium) is not None:
            one, other = self.before.devices.get(medium.device), self.after.devices.get(medium.device)
            if one is not None and other is not None:
                read, written = other.read - one.read, other.written - one.written
                return ByteCounts(read=read * SECTOR_BYTES, written=written * SECTOR_BYTES)
        read_kib, written_kib = self.grown("pgpgin"), self.grown("pgpgout")
        if read_kib is None or written_kib is None:
            return None
        return ByteCounts(read=round(read_kib) * PGPGIN_BYTES, written=round(written_kib) * PGPGIN_BYTES)


def source_of(medium: Medium) -> str | None:
    """The device whose own counters tell what the block layer moved; None: `pgpgin` does, of the whole machine."""
    return medium.device if medium.device and medium.is_counted else None


def said_of(medium: Medium) -> dict[str, str]:
    """What a medium is, and where block-layer bytes come from, as text for the record."""
    device = source_of(medium)
    return {
        "file_system": medium.file_system,
        "mount_options": medium.options,
        "device": medium.device,
        "dax": "yes" if medium.is_dax else "no",
        "block_bytes_from": f"sectors of {device}" if device else "pgpgin and pgpgout of the whole machine",
    }


def read(directory: Path) -> tuple[FileAccessResult, Edges]:
    """A trial's `result.json` and `counters.json`.

    Raises:
        RecordError: one is missing, cut or changed.
    """
    accessed = foreign.of_trial(directory / RESULT, FileAccessResult)
    return accessed, foreign.of_trial(directory / COUNTERS, Edges)


def compute(directory: Path, *, window: Window, direct: bool) -> dict[str, float]:
    """Scalars of one trial, by metric name; see `definitions`. Empty of what the kernel cannot tell.

    Args:
        directory: the trial's.
        window: the measured one.
        direct: whether the page cache was bypassed on purpose.

    Raises:
        RecordError: a file is damaged, or the window has no length.
    """
    accessed, edges = read(directory)
    length_s = seconds(directory, window)
    count, moved, block = accessed.accesses, accessed.moved, edges.block_bytes()
    uncached = direct or edges.before.medium.is_dax
    values = {
        "accesses": float(count),
        "throughput_iops": accessed.iops if accessed.iops is not None else count / length_s,
        "application_read_bytes": float(moved.read),
        "application_written_bytes": float(moved.written),
        "uncached_bytes": float(moved.read + moved.written) if uncached else 0.0,
    }
    if block is not None:
        values |= {"block_read_bytes": float(block.read), "block_written_bytes": float(block.written)}
    if edges.before.accounts_processes:
        values["storage_read_bytes"] = float(accessed.client.blocks_in * SECTOR_BYTES)
    if moved.read and not uncached:
        values |= {
            name: values[missed] / moved.read
            for name, missed in (("device_miss_ratio", "block_read_bytes"), ("miss_ratio", "storage_read_bytes"))
            if missed in values
        }
    if count:
        spent_s = accessed.client.user_s + accessed.client.system_s
        values["cpu_ns_per_access"] = spent_s * NANOSECONDS_PER_SECOND / count
        grown = {name: edges.first_grown(groups) for name, (_, groups, _) in PER_ACCESS.items()}
        values |= {name: growth / count for name, growth in grown.items() if growth is not None}
    return values | stability.compute(directory, window=window) | steadiness.compute(directory, window=window)


def _definition(name: str, label: str, *, unit: str, better: Better = "lower", source: str) -> MetricDefinition:
    kind: MetricKind = "wall_clock" if name.startswith(("throughput", "cpu_ns")) else "count"
    return MetricDefinition(name=name, label=label, unit=unit, better=better, kind=kind, source=source)


_OWN: Final = (
    _definition(
        "accesses", "accesses", unit="accesses", better="higher", source=f"{RESULT}: reads and writes of the window"
    ),
    _definition(
        "throughput_iops",
        "throughput",
        unit="accesses/s",
        better="higher",
        source=f"{RESULT}: accesses per second of the window; of fio the sum of its jobs' own",
    ),
    _definition(
        "cpu_ns_per_access",
        "CPU per access",
        unit="ns",
        source=f"{RESULT}: user and system time in the window; of fio its jobs' own, whole milliseconds",
    ),
    _definition(
        "miss_ratio",
        "miss ratio",
        unit="share",
        source="storage_read_bytes over application_read_bytes; not for direct access and DAX, which have no page "
        "cache, nor for kernels without CONFIG_TASK_IO_ACCOUNTING",
    ),
    _definition(
        "device_miss_ratio",
        "miss ratio by the device",
        unit="share",
        source="block_read_bytes over application_read_bytes, including the reads of other programs; not for direct "
        "access "
        "and DAX",
    ),
    _definition(
        "storage_read_bytes",
        "read from storage",
        unit="B",
        source=f"{RESULT}: blocks that the kernel read for the processes that access (ru_inblock × 512)",
    ),
    _definition(
        "application_read_bytes", "read by the application", unit="B", better="higher", source=f"{RESULT}: bytes read"
    ),
    _definition(
        "application_written_bytes",
        "written by the application",
        unit="B",
        better="higher",
        source=f"{RESULT}: bytes written",
    ),
    _definition(
        "block_read_bytes",
        "read by the block layer",
        unit="B",
        source=f"{COUNTERS}: sectors of the files' device, or pgpgin where its traffic is not counted; "
        "`options.block_bytes_from` of the trial says which",
    ),
    _definition(
        "block_written_bytes", "written by the block layer", unit="B", source=f"{COUNTERS}: as block_read_bytes"
    ),
    _definition(
        "uncached_bytes",
        "bypassed the page cache",
        unit="B",
        source=f"{RESULT}: bytes read and written by direct access, or on DAX; else 0",
    ),
    _definition(
        "footprint_share",
        "blocks that can be met",
        unit="share",
        better="higher",
        source="the file's blocks that the distribution can meet, counted; 1 for `file_access` and uniform access",
    ),
    *(
        _definition(
            name,
            f"{label} per access",
            unit=f"{unit}/access",
            source=f"{COUNTERS}: {either(groups)}; over the accesses of the window",
        )
        for name, (label, groups, unit) in PER_ACCESS.items()
    ),
)


def definitions(*, resolution: float | None = None) -> Mapping[str, MetricDefinition]:
    """Every metric; `resolution`: of latency percentiles, where histograms are coarser than our own."""
    latencies = latency.definitions(("read", "write"))
    if resolution is not None:
        latencies = {
            name: each.model_copy(update={"resolution": resolution}) if "latency_ns_p" in name else each
            for name, each in latencies.items()
        }
    own = {each.name: each for each in _OWN}
    return {**stability.DEFINITIONS, **steadiness.DEFINITIONS, **own, **latencies}
