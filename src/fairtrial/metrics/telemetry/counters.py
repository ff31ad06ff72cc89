"""Every counter and level of a trial's telemetry in one figure each: what the search for reasons compares between arms.

Owns the choice of columns. A counter gives its growth inside the measured window, a level its mean over it; a column
that a sample of the window lacks gives nothing. It must not know how trials are compared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from pydantic_core import from_json

from fairtrial import foreign
from fairtrial.errors import RecordError
from fairtrial.metrics import frames, telemetry
from fairtrial.metrics.telemetry import governor, series
from fairtrial.metrics.telemetry.definitions import CPU_CLASSES, whole_devices
from fairtrial.metrics.telemetry.window import CounterSums, WindowSamples
from fairtrial.record.models import TrialRecord, Window

FILE: Final = telemetry.SUMMARY
RELATIVE_TOLERANCE: Final = 1e-9  # another build of NumPy may sum in another order, no more
LEFT_OUT: Final = ("lock_waits",)  # rows are waiting pairs, no samples of counters
CHOSEN_FROM: Final = ("vmstat", "disks")  # of other sources every column is taken


@dataclass(frozen=True)
class Counters:
    """One trial's figures, by `source:column`.

    Attributes:
        grown: growth of counters inside the window.
        levels: mean over the window; shares of processor time are levels `cpu:<class> share`.
        length_s: of the window.
        work: how much was done in it, and `unit` of what; None where the workload does not count.
        errors: of growth, where readings took long (`CounterSums`).
    """

    grown: dict[str, float]
    levels: dict[str, float]
    length_s: float
    work: float | None
    unit: str
    errors: Mapping[str, float] = field(default_factory=dict)


def read(directory: Path, trial: TrialRecord) -> Counters | None:
    """A trial's figures, as they were summed up when it was committed; None for a trial without a measured window.

    Records of older versions have no sums, or call a governor's levels growth: then from the telemetry files, which
    takes a hundred times as long.

    Raises:
        RecordError: a file is damaged.
    """
    if trial.window is None:
        return None
    path = directory / FILE
    stored = _stored(path) if path.exists() else None
    if stored is None or _levels_as_growth(stored):
        sums = _summed(directory, window=trial.window, sources=trial.telemetry)
    else:
        sums = CounterSums(**stored)
    length_s = (trial.window.end_ns - trial.window.start_ns) / 1e9
    work, unit = _work(trial)
    return Counters(grown=sums.grown, levels=sums.levels, length_s=length_s, work=work, unit=unit, errors=sums.errors)


def write(directory: Path, *, window: Window, sources: Iterable[str]) -> None:
    """Sums a trial's telemetry files up into `FILE` beside them; nothing without telemetry.

    Raises:
        RecordError: a file is damaged.
    """
    sums = _summed(directory, window=window, sources=sources)
    if sums.grown or sums.levels:
        (directory / FILE).write_text(json.dumps({**vars(sums), telemetry.VERSION: 2}), encoding="utf-8")


def contradictions(directory: Path, *, window: Window, sources: Iterable[str]) -> list[str]:
    """Where the stored sums are not those of the telemetry files, a sentence each; empty if nowhere, or without them.

    What an older version called growth although it is a level, nobody reads, and it is not compared.

    Raises:
        RecordError: a file is damaged.
    """
    path = directory / FILE
    if not path.exists():
        return []
    stored, fresh = _stored(path), vars(_summed(directory, window=window, sources=sources))
    unread = _levels_as_growth(stored)
    return [
        f"{FILE}: {name} is {old.get(name)}, the samples give {new.get(name)}"
        for old, new in ((old, fresh[part]) for part, old in stored.items())
        for name in dict.fromkeys([*old, *new])
        if name not in unread
        and (name not in old or name not in new or not math.isclose(old[name], new[name], rel_tol=RELATIVE_TOLERANCE))
    ]


def _stored(path: Path) -> dict[str, dict[str, float]]:
    """The fields of `CounterSums` that a file has: one of an older version says no errors."""
    try:
        document = from_json(foreign.read(path))
        parts = [each.name for each in fields(CounterSums) if each.name != "errors" or each.name in document]
        return {part: {name: float(value) for name, value in document[part].items()} for part in parts}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise RecordError(f"{path} cannot be read: {error!r}", hint="restore the trial from a copy") from error


def _levels_as_growth(stored: Mapping[str, Mapping[str, float]]) -> set[str]:
    """Levels of a governor among what grew: older versions took them for counters."""
    split = ((name, *name.partition(":")[::2]) for name in stored["grown"])
    return {name for name, source, column in split if source == governor.SOURCE and not frames.counts(source, column)}


def _summed(directory: Path, *, window: Window, sources: Iterable[str]) -> CounterSums:
    every = CounterSums()
    for source in sources:
        if source not in LEFT_OUT:
            sums = vars(_of_source(source, directory, window=window))
            for part, into in vars(every).items():
                into |= {f"{source}:{name}": value for name, value in sums[part].items()}
    return every


def _of_source(source: str, directory: Path, *, window: Window) -> CounterSums:
    if series.is_long(source):
        readings = series.read(directory / f"{telemetry.PREFIX}{source}.parquet")
        return CounterSums() if readings is None else series.summed(readings, window)
    only = partial(_chosen, source) if source in CHOSEN_FROM else None
    samples = telemetry.observed(directory, source, window, only=only)
    if samples is None:
        return CounterSums()
    present = [name for name in samples.columns if samples.has(name)]
    held = [name for name in present if not frames.counts(source, name)]
    levels = dict(zip(held, means(samples, held), strict=True))
    counters = [name for name in present if frames.counts(source, name) and samples.counted_on(name)]
    sums = samples.sums(counters, levels)
    if source == "cpu" and samples.grown(*CPU_CLASSES) is not None:  # a class that is missing would enlarge all others
        ticks = {name: sums.grown.get(name, 0.0) for name in CPU_CLASSES}
        whole = sum(ticks.values())
        sums.levels.update({f"{name} share": value / whole for name, value in ticks.items() if whole})
    return sums


def _chosen(source: str, columns: list[str]) -> list[str]:
    """Levels of vmstat are those of meminfo in pages; a partition's and a mapped device's traffic is its disk's."""
    if source == "vmstat":
        return [name for name in columns if frames.counts(source, name)]
    devices = set(whole_devices(columns))
    return [name for name in columns if name.rpartition(".")[0] in devices]


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
