"""Doubts about access to files, by workload or server: blocks never met, I/O the block layer does not see, strangers.

None of them can be a false alarm for want of observations: they compare counts of one trial with each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairtrial.analyse.models import Doubt
from fairtrial.record.models import TrialRecord

FOOTPRINT: Final = "footprint_share"
WHOLE: Final = 0.999  # a file whose last block alone is never met behaves like a whole one
SEEN: Final = 0.5  # of what bypassed the page cache: retries and merges move a few percent, not half
STRANGERS: Final = 0.1  # of a process's own reads: metadata that the kernel reads for nobody are far fewer
ELSEWHERE: Final = 0.01  # of a process's own reads: as small as the effects that miss ratios are judged by
LEAST_BYTES: Final = 1 << 20  # less is a program's start, or a sampler's


def about(used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """Every such doubt of a run."""
    yield from _footprint(used)
    yield from _invisible(used)
    yield from _strangers(used)
    yield from _elsewhere(used)


def _footprint(used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    shares = {trial.trial.id: trial.scalars.get(FOOTPRINT, 1.0) for trial in used}
    partial = {name: share for name, share in shares.items() if share < WHOLE}
    if partial:
        low, high = min(partial.values()), max(partial.values())
        range_ = f"{100 * low:.1f} %" if low == high else f"{100 * low:.1f} to {100 * high:.1f} %"
        yield Doubt(
            code="footprint",
            message=f"in {len(partial)} of {len(used)} used trials the distribution can reach only {range_} of a "
            "file's blocks: fio spreads ranks by a hash, which is a permutation only for powers of two",
            advice="a different `size` would change the miss ratio in every arm: make size / block_size a power of "
            "two, or use `file_access`, which reaches every block",
        )


def _invisible(used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """Direct access and DAX have no page cache: what the application moved, the block layer should have moved."""
    unseen = {}
    for trial in used:
        uncached, block = _uncached_bytes(trial), _block_bytes(trial.scalars)
        if block is not None and uncached > LEAST_BYTES and block < SEEN * uncached:
            unseen[trial.trial.id] = (uncached, block)
    if unseen:
        name, (uncached, block) = max(unseen.items(), key=lambda item: item[1][0] - item[1][1])
        yield Doubt(
            code="invisible_io",
            message=f"in {len(unseen)} of {len(used)} used trials the block layer saw less than the application moved "
            f"past the page cache, in {name} {block / 2**20:.1f} of {uncached / 2**20:.1f} MiB",
            advice="DAX and in-memory file systems bypass the block layer: iostat, /proc/diskstats and pgpgin do not "
            "count them; compare the application's bytes",
        )


def _uncached_bytes(trial: TrialRecord) -> float:
    """What bypassed the page cache: a file workload's own figure, or what a server moved that opens its data direct."""
    if trial.options.get("innodb_flush_method", "").upper().startswith("O_DIRECT"):
        moved = (trial.scalars.get(f"server_data_{how}_bytes", 0.0) for how in ("read", "written"))
        return math.fsum(moved)
    return trial.scalars.get("uncached_bytes", 0.0)


def _block_bytes(scalars: Mapping[str, float]) -> float | None:
    """The files' own device where a file workload counted it, else all disks: more can only hide the doubt."""
    read = scalars.get("block_read_bytes", scalars.get("disk_read_bytes"))
    written = scalars.get("block_written_bytes", scalars.get("disk_written_bytes"))
    return None if read is None or written is None else read + written


def _reads(used: Sequence[TrialRecord]) -> Iterator[tuple[str, float, float]]:
    """Of each trial that tells both: what the device read, and what the processes were charged with."""
    for trial in used:
        device, own = trial.scalars.get("block_read_bytes"), trial.scalars.get("storage_read_bytes")
        if device is not None and own is not None:
            yield trial.trial.id, device, own


def _strangers(used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """Asks whether others read from the device while the files were accessed."""
    excess = {
        name: (device - own, own)
        for name, device, own in _reads(used)
        if device - own > max(STRANGERS * own, LEAST_BYTES)
    }
    if excess:
        name, (strange, own) = max(excess.items(), key=lambda item: item[1][0])
        yield Doubt(
            code="shared_device",
            message=f"in {len(excess)} of {len(used)} used trials other programs read from the device, too, in "
            f"{name} {strange / 2**20:.1f} MiB in addition to the workload's {own / 2**20:.1f} MiB",
            advice="they took bandwidth and page cache: find out which, and judge `miss_ratio`, which excludes them, "
            "not `device_miss_ratio`",
        )


def _elsewhere(used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """Asks whether processes read what is not on the files' device: their own program, or swapped memory."""
    other = {
        name: (own - device, own)
        for name, device, own in _reads(used)
        if device and own - device > max(ELSEWHERE * own, LEAST_BYTES)
    }
    if other:
        name, (strange, own) = max(other.items(), key=lambda item: item[1][0] / item[1][1])
        yield Doubt(
            code="read_elsewhere",
            message=f"in {len(other)} of {len(used)} used trials processes read data that did not come from the "
            f"files' device, in {name} {strange / 2**20:.1f} of {own / 2**20:.1f} MiB",
            advice="their program and swapped memory are read again after eviction, and how much is evicted may "
            "depend on the arm: judge `device_miss_ratio`, not `miss_ratio`",
        )
