"""Every counter and level of a trial's telemetry in one figure each: what the search for reasons compares between arms.

Owns the choice of columns. A counter gives its growth inside the measured window, a level its mean over it; a column
that a sample of the window lacks gives nothing. It must not know how trials are compared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from fairtrial.errors import RecordError
from fairtrial.metrics import frames, telemetry
from fairtrial.metrics.telemetry import series
from fairtrial.metrics.telemetry.definitions import CPU_CLASSES, whole_devices
from fairtrial.metrics.telemetry.window import WindowSamples, observe
from fairtrial.record.models import TrialRecord, Window

FILE: Final = "telemetry-summary.json"
RELATIVE_TOLERANCE: Final = 1e-9  # another build of NumPy may sum in another order, no more
LEFT_OUT: Final = ("lock_waits",)  # rows are waiting pairs, no samples of counters
CHOSEN_FROM: Final = ("vmstat", "disks")  # of other sources every column is taken
EDGE_ROWS: Final = 2  # a growth needs the sample before and the one after each edge of the window


@dataclass(frozen=True)
class Counters:
    """One trial's figures, by `source:column`.

    Attributes:
        grown: growth of counters inside the window.
        levels: mean over the window; shares of processor time are levels `cpu:<class> share`.
        length_s: of the window.
        work: how much was done in it, and `unit` of what; None where the workload does not count.
    """

    grown: dict[str, float]
    levels: dict[str, float]
    length_s: float
    work: float | None
    unit: str


def read(directory: Path, trial: TrialRecord) -> Counters | None:
    """A trial's figures, as they were summed up when it was committed; None for a trial without a measured window.

    Records of older versions have no sums: then from the telemetry files, which takes a hundred times as long.

    Raises:
        RecordError: a file is damaged.
    """
    if trial.window is None:
        return None
    path = directory / FILE
    if path.exists():
        grown, levels = _stored(path)
    else:
        grown, levels = _summed(directory, window=trial.window, sources=trial.telemetry)
    length_s = (trial.window.end_ns - trial.window.start_ns) / 1e9
    work, unit = _work(trial)
    return Counters(grown=grown, levels=levels, length_s=length_s, work=work, unit=unit)


def write(directory: Path, *, window: Window, sources: Iterable[str]) -> None:
    """Sums a trial's telemetry files up into `FILE` beside them; nothing without telemetry.

    Raises:
        RecordError: a file is damaged.
    """
    grown, levels = _summed(directory, window=window, sources=sources)
    if grown or levels:
        (directory / FILE).write_text(json.dumps({"grown": grown, "levels": levels}), encoding="utf-8")


def contradictions(directory: Path, *, window: Window, sources: Iterable[str]) -> list[str]:
    """Where the stored sums are not those of the telemetry files, a sentence each; empty if nowhere, or without them.

    Raises:
        RecordError: a file is damaged.
    """
    path = directory / FILE
    if not path.exists():
        return []
    stored, fresh = _stored(path), _summed(directory, window=window, sources=sources)
    return [
        f"{FILE}: {name} is {old.get(name)}, the samples give {new.get(name)}"
        for old, new in zip(stored, fresh, strict=True)
        for name in dict.fromkeys([*old, *new])
        if name not in old or name not in new or not math.isclose(old[name], new[name], rel_tol=RELATIVE_TOLERANCE)
    ]


def _stored(path: Path) -> tuple[dict[str, float], dict[str, float]]:
    try:
        document = json.loads(path.read_bytes())
        grown, levels = ({name: float(value) for name, value in document[part].items()} for part in ("grown", "levels"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordError(f"{path} cannot be read: {error!r}", hint="restore the trial from a copy") from error
    return grown, levels


def _summed(directory: Path, *, window: Window, sources: Iterable[str]) -> tuple[dict[str, float], dict[str, float]]:
    grown: dict[str, float] = {}
    levels: dict[str, float] = {}
    for source in sources:
        if source not in LEFT_OUT:
            _add(source, directory, window=window, grown=grown, levels=levels)
    return grown, levels


def _add(source: str, directory: Path, *, window: Window, grown: dict[str, float], levels: dict[str, float]) -> None:
    if series.is_long(source):
        if (readings := series.read(directory / f"{telemetry.PREFIX}{source}.parquet")) is not None:
            for sums, into in zip(series.summed(readings, window), (grown, levels), strict=True):
                into |= {f"{source}:{name}": value for name, value in sums.items()}
        return
    only = partial(_chosen, source) if source in CHOSEN_FROM else None
    samples = observe(telemetry.read(directory, source, only=only), window)
    if samples is None:
        return
    present = [name for name in samples.columns if samples.has(name)]
    counted = [name for name in present if frames.counts(source, name)]
    for name, growth in zip(counted, growths(samples, counted), strict=True):
        grown[f"{source}:{name}"] = growth
    held = [name for name in present if not frames.counts(source, name)]
    for name, mean in zip(held, means(samples, held), strict=True):
        levels[f"{source}:{name}"] = mean
    if source == "cpu" and samples.grown(*CPU_CLASSES) is not None:  # a class that is missing would enlarge all others
        ticks = {name: grown.get(f"cpu:{name}", 0.0) for name in CPU_CLASSES}
        whole = sum(ticks.values())
        levels |= {f"cpu:{name} share": value / whole for name, value in ticks.items() if whole}


def _chosen(source: str, columns: list[str]) -> list[str]:
    """Levels of vmstat are those of meminfo in pages; a partition's and a mapped device's traffic is its disk's."""
    if source == "vmstat":
        return [name for name in columns if frames.counts(source, name)]
    devices = set(whole_devices(columns))
    return [name for name in columns if name.rpartition(".")[0] in devices]


def growths(samples: WindowSamples, columns: Sequence[str]) -> list[float]:
    """What counters grew by, as `WindowSamples.grown` computes it, from the samples beside the window's edges only."""
    if not columns:
        return []
    rows: list[int] = []
    for edge in (0.0, samples.length_s):
        after = int(np.clip(np.searchsorted(samples.times_s, edge), 1, len(samples.times_s) - 1))
        rows += [after - 1, after]
    raw = samples.frame.select(columns)[rows].to_numpy().astype(np.int64)
    since = (raw - raw[0]).astype(np.float64)
    ends = []
    for index, edge in enumerate((0.0, samples.length_s)):
        at = slice(EDGE_ROWS * index, EDGE_ROWS * (index + 1))
        before, after_s = samples.times_s[rows[at]]
        share = np.clip((edge - before) / (after_s - before), 0.0, 1.0)  # beyond the samples it stands still
        ends.append(since[at][0] + share * (since[at][1] - since[at][0]))
    grown: list[float] = np.maximum(ends[1] - ends[0], 0.0).tolist()
    return grown


def means(samples: WindowSamples, columns: Sequence[str]) -> list[float]:
    """Means over the window, as `WindowSamples.mean` computes them, of all columns at once."""
    if not columns:
        return []
    values = samples.frame.select(columns).to_numpy().astype(np.float64)
    inside = np.flatnonzero((samples.times_s > 0) & (samples.times_s < samples.length_s))
    times = np.concatenate([[0.0], samples.times_s[inside], [samples.length_s]])
    edges = [_at(samples, values, edge) for edge in (0.0, samples.length_s)]
    curve = np.vstack([edges[0], values[inside], edges[1]])
    averages: list[float] = (np.trapezoid(curve, times, axis=0) / samples.length_s).tolist()
    return averages


def _at(
    samples: WindowSamples, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]], edge: float
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    after = int(np.clip(np.searchsorted(samples.times_s, edge), 1, len(samples.times_s) - 1))
    before_s, after_s = samples.times_s[after - 1], samples.times_s[after]
    share = np.clip((edge - before_s) / (after_s - before_s), 0.0, 1.0)
    value: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = values[after - 1] + share * (
        values[after] - values[after - 1]
    )
    return value


def _work(trial: TrialRecord) -> tuple[float | None, str]:
    """Transactions or accesses where the workload counts them; a command is one run, however long it took."""
    done = trial.scalars.get("transactions")
    if done is not None:
        return (done or None), "transaction"
    done = trial.scalars.get("accesses")
    if done is not None:
        return (done or None), "access"
    return (1.0, "run") if trial.resolved.workload.kind == "command" else (None, "")
