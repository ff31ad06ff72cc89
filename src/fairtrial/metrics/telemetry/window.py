"""One source's counters and gauges over the measured window.

A window rarely starts at a sample. Between the two samples around each of its edges every column is taken to change
evenly, so that a slow sampler neither adds what happened before the window nor misses its last part. Where these two
samples are far apart nothing is known of what happened on which side of the edge, and the source gives no value.

A reading takes time, its values hold at some moment of it, and some servers tell late what happened: what makes growth
uncertain is said with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from fairtrial.record.models import Window

TIME: Final = "time_ns"
END: Final = "end_ns"  # of the reading that began then
NANOSECONDS_PER_SECOND: Final = 1e9
SAMPLES_WANTED: Final = 2
# An edge further than both of these from the sample before or after it was not observed.
EDGE_INTERVALS: Final = 2.0
EDGE_SHARE: Final = 0.02  # of the window: no more of what a counter grew by can be put on the wrong side
ERROR_SHARE: Final = 0.001  # of a value: a smaller error of it is not said

LATE_S: Final = 1.0  # after which PostgreSQL's processes report what they counted (pgstat.c: PGSTAT_MIN_INTERVAL)

Series = npt.NDArray[np.float64]


class _Edge(NamedTuple):
    """One edge of the window: values there, shape (columns,), and what makes them uncertain.

    Attributes:
        off: by how much they may be off, as readings take time.
        grown: what they grew by between the samples beside the edge.
        unknown: the larger part of that time; or how much longer than it the edge is away from them.
        between: whether the edge lies between its samples.
    """

    value: Series
    off: Series
    grown: Series
    unknown: float
    between: bool


@dataclass(frozen=True)
class CounterSums:
    """What samples come to over the window, by column.

    Attributes:
        grown: growth of counters.
        levels: means of gauges.
        errors: by how much growth may be off at most, as readings take time or tell late; only more than `ERROR_SHARE`
            of it. What may have happened between samples is left out: in windows of a minute, with samples a second
            apart, it is more than 2 % of any counter.
    """

    grown: dict[str, float] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class WindowSamples:
    """A source seen through the window.

    Attributes:
        frame: the samples from the one before the window to the one after it, at least two, ordered by `time_ns`;
            without columns that are null in the whole file, which the place does not have.
        times_s: of the samples, seconds since the window began, shape (samples,).
        length_s: of the window.
        beside: of `frame` the samples before and after each edge of the window, four rows.
        beside_s, off_s: of these, seconds since the window began, and by how much later than that they may hold.
        ticks_per_s: clock ticks of the place's processors; None where nobody said.
        may_restart: whether what counts may begin anew.
        is_of_before: whether the record is of a version that did not know of bursts beside edges, nor of what is late.
        late, late_s: columns that tell up to `LATE_S` later what happened, at every sample of the file, and its time,
            seconds since the window began.
    """

    frame: pl.DataFrame
    times_s: Series
    length_s: float
    beside: pl.DataFrame
    beside_s: Series
    off_s: Series
    ticks_per_s: float | None = None
    may_restart: bool = False
    is_of_before: bool = False
    late: pl.DataFrame = field(default_factory=pl.DataFrame)
    late_s: Series = field(default_factory=lambda: np.empty(0))
    # Of what each edge's uncertainty, and what was told late at each, add to growth, the share taken.
    _beyond: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    # Of the frame's columns, and of single ones what `_edges` and `counted_on` give: many figures are made of the same,
    # each with its error, and Polars takes longer to be asked than to answer.
    _nulls: dict[str, int] = field(default_factory=dict)
    _single: dict[str, tuple[float, tuple[float, float, float, float]]] = field(default_factory=dict)
    _counted: dict[str, bool] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Every counter's name."""
        return [name for name in self._nulls if name != TIME]

    def has(self, column: str) -> bool:
        """Whether a column was read in every sample: null means that it was not said then, and may have begun anew."""
        return self._nulls.get(column) == 0

    @property
    def taken(self) -> float:
        """How many samples were taken inside the window, as a counter of them would grow."""
        first, last = np.interp([0.0, self.length_s], self.times_s, np.arange(len(self.times_s)))
        return float(last - first)

    def counted_on(self, column: str) -> bool:
        """Whether a counter was read in every sample and never fell: one that did began anew, and nobody knows when."""
        if column not in self._counted:
            values = self.frame[column].to_numpy() if self.has(column) else None
            fell = values is not None and self.may_restart and bool(np.any(values[1:] < values[:-1]))
            self._counted[column] = values is not None and not fell
        return self._counted[column]

    def grown(self, *columns: str) -> float | None:
        """What counters grew by inside the window, summed over those that the place has; None if it has none.

        None, too, if one that it has was not `counted_on`: a sum without it would be too small.
        """
        present = [name for name in columns if name in self._nulls]
        whole = present and all(self.counted_on(name) for name in present)
        return sum(self._growth(name) for name in present) if whole else None

    def gauge(self, column: str) -> Series | None:
        """A gauge at every sample, shape (samples,); None if the place does not have it, or not in every sample."""
        return self.frame[column].to_numpy().astype(np.float64) if self.has(column) else None

    def mean(self, gauge: Series | None) -> float | None:
        """Mean over the window's time (trapezia between samples and edges); None of None."""
        if gauge is None:
            return None
        times, values = self._within(gauge)
        return float(np.trapezoid(values, times) / self.length_s)

    def largest(self, gauge: Series | None) -> float | None:
        """Largest value at a sample inside the window or at its edges; None of None."""
        return None if gauge is None else float(self._within(gauge)[1].max())

    def at_end(self, gauge: Series | None) -> float | None:
        """Value at the window's end; None of None."""
        return None if gauge is None else float(self._within(gauge)[1][-1])

    def _within(self, gauge: Series) -> tuple[Series, Series]:
        """Times and values of a gauge at the window's edges and at every sample between them."""
        inside = (self.times_s > 0) & (self.times_s < self.length_s)
        times = np.concatenate([[0.0], self.times_s[inside], [self.length_s]])
        return times, np.interp(times, self.times_s, gauge)

    def _growth(self, column: str) -> float:
        if column not in self._single:
            start, end = self._edges([column])
            early, late = (float(each.off[0]) + self._burst(column, each) for each in (start, end))
            self._single[column] = float(end.value[0] - start.value[0]), (early, late, *self._told_late(column))
        change, offs = self._single[column]
        grown = change + sum(share * off for share, off in zip(self._beyond, offs, strict=True))
        return max(grown, 0.0)  # proc(5): iowait and idle may step back

    def _burst(self, column: str, edge: _Edge) -> float:
        """What may have happened on the other side of an edge, beyond what happens between samples of the window."""
        if self.is_of_before:
            return 0.0
        usual = 0.0
        if edge.between and (rows := np.flatnonzero((self.times_s >= 0) & (self.times_s <= self.length_s))).size > 1:
            usual = float(np.median(np.diff(self.frame[column].to_numpy()[rows].astype(np.int64))))
        return float(edge.unknown) * max(float(edge.grown[0]) - usual, 0.0)

    def _told_late(self, column: str) -> tuple[float, float]:
        """What may have happened before each edge and be told after it: what was in the time before or after it."""
        if column not in self.late.columns:
            return 0.0, 0.0
        times = [edge + off for edge in (0.0, self.length_s) for off in (-LATE_S, 0.0, LATE_S)]
        told = np.diff(np.interp(times, self.late_s, self.late[column].to_numpy().astype(np.float64)))
        start, end = (float(np.fmax.reduce(told[at : at + 2], initial=0.0)) for at in (0, 3))
        return start, end

    def changes(self, columns: Sequence[str]) -> Series:
        """What columns changed by inside the window, shape (columns,)."""
        start, end = self._edges(columns)
        return end.value - start.value

    def uncertainty(self, columns: Sequence[str]) -> Series:
        """By how much these changes may be off at most, as readings take time, shape (columns,).

        At each edge both samples beside it may hold later than they say; meanwhile a column changes as it does between
        them.
        """
        start, end = self._edges(columns)
        return start.off + end.off

    def interpolation(self, columns: Sequence[str]) -> Series:
        """By how much these changes of counters may be off at most, as edges lie between samples, shape (columns,).

        A counter may have grown anywhere between the samples beside an edge; at an edge that is a sample it is known.
        """
        start, end = self._edges(columns)
        return start.unknown * start.grown + end.unknown * end.grown

    def sums(self, counters: Sequence[str], levels: dict[str, float]) -> CounterSums:
        """Growth of counters with its errors, beside levels that are known already."""
        if not counters:
            return CounterSums(levels=levels)
        grown = np.maximum(self.changes(counters), 0.0).tolist()
        late = np.array([max(self._told_late(name)) for name in counters])
        errors = zip(counters, grown, (self.uncertainty(counters) + late).tolist(), strict=True)
        return CounterSums(
            grown=dict(zip(counters, grown, strict=True)),
            levels=levels,
            errors={name: error for name, growth, error in errors if error > ERROR_SHARE * growth},
        )

    def error(self, value: float, made: Callable[[WindowSamples], float | None]) -> float:
        """By how much a value made of such changes may be off at most, given how it is made.

        What is told late at one edge adds to growth, at the other it takes from it: the larger counts.
        """

        def beyond(*shares: tuple[float, float, float, float]) -> list[float]:
            wider = [made(replace(self, _beyond=each)) for each in shares]
            return [value, *(each for each in wider if each is not None)]

        near = beyond((1.0, 0.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0))
        late = beyond((0.0, 0.0, -1.0, 0.0), (0.0, 0.0, 0.0, 1.0)) if self.late.width else [value]
        return sum(abs(after - before) for before, after in pairwise(near)) + max(abs(each - value) for each in late)

    def _edges(self, columns: Sequence[str]) -> Iterator[_Edge]:
        raw = (
            self.beside.select(columns).to_numpy() if len(columns) > 1 else self.beside[columns[0]].to_numpy()[:, None]
        )
        if raw.dtype == np.uint64:
            raw = raw.astype(np.int64)  # a counter above 2^63 would take centuries
        since_first = (raw - raw[0]).astype(np.float64)  # differences are exact, large counters as floats not
        for edge, rows in ((0.0, slice(0, 2)), (self.length_s, slice(2, 4))):
            before_s, after_s = self.beside_s[rows]
            low, high = since_first[rows]
            place = (edge - before_s) / (after_s - before_s)
            share = np.clip(place, 0.0, 1.0)  # beyond the samples it stands still
            unknown = max(share, 1 - share) if 0 < place < 1 else abs(place - share)  # beyond, as it grew before
            grown = np.abs(high - low)
            off = grown / (after_s - before_s) * self.off_s[rows].max()
            yield _Edge(low + share * (high - low), off, grown, unknown=unknown, between=0 < place < 1)


def observe(
    frame: pl.DataFrame,
    window: Window,
    *,
    ticks_per_s: float | None = None,
    may_restart: bool = False,
    late: Collection[str] = (),
) -> WindowSamples | None:
    """The source through the window; None if its samples do not cover it, or leave a hole across one of its edges.

    A column `end_ns` says when each reading ended; columns `late` tell up to `LATE_S` later what happened.
    """
    length_ns = window.end_ns - window.start_ns
    if frame.height < SAMPLES_WANTED or length_ns <= 0:
        return None
    ordered = frame if frame[TIME].is_sorted() else frame.sort(TIME)  # files are, and a sort copies all columns
    times_ns = ordered[TIME].to_numpy() - window.start_ns
    allowed_ns = max(EDGE_INTERVALS * float(np.median(np.diff(times_ns))), EDGE_SHARE * length_ns)
    around = [_around(times_ns, edge_ns) for edge_ns in (0, length_ns)]
    for edge_ns, rows in zip((0, length_ns), around, strict=True):
        if any(abs(int(times_ns[row]) - edge_ns) > allowed_ns for row in rows):
            return None
    first = min(around[0][0], ordered.height - SAMPLES_WANTED)
    last = max(around[1][-1], first + 1)
    said = [name for name, nulls in _nulls(ordered).items() if name != END and nulls < ordered.height]
    seen = ordered[first : last + 1]
    shown = seen[said]
    times_s = times_ns[first : last + 1].astype(np.float64) / NANOSECONDS_PER_SECOND
    length_s = length_ns / NANOSECONDS_PER_SECOND
    afters = np.clip(np.searchsorted(times_s, [0.0, length_s]), 1, len(times_s) - 1)
    edges = np.column_stack([afters - 1, afters]).ravel()
    beside = seen[edges]
    took_ns = (beside[END] - beside[TIME]).to_numpy() if END in seen.columns else np.zeros(beside.height)
    return WindowSamples(
        frame=shown,
        times_s=times_s,
        length_s=length_s,
        beside=beside[said],
        beside_s=times_s[edges],
        off_s=took_ns / NANOSECONDS_PER_SECOND,
        ticks_per_s=ticks_per_s,
        may_restart=may_restart,
        late=ordered.select(late),
        late_s=times_ns.astype(np.float64) / NANOSECONDS_PER_SECOND,
        _nulls=_nulls(shown),
    )


def _nulls(frame: pl.DataFrame) -> dict[str, int]:
    return dict(zip(frame.columns, frame.null_count().row(0), strict=True))


def _around(times_ns: npt.NDArray[np.int64], edge_ns: int) -> list[int]:
    """Rows of the last sample up to an edge and the first from it on: one where they are the same or one is missing."""
    before = int(np.searchsorted(times_ns, edge_ns, side="right")) - 1
    after = int(np.searchsorted(times_ns, edge_ns, side="left"))
    return [row for row in dict.fromkeys((before, after)) if 0 <= row < len(times_ns)]
