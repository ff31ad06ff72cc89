"""One look at many series: which levels changed, which points are spikes, what the newest point says."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fairtrial.analyse.inference import ranks, sensitivity, spreads, t_tests
from fairtrial.analyse.inference.families import benjamini_hochberg, holm
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.models import Interval
from fairtrial.history import segments
from fairtrial.history.models import Alarm, Direction, History, KnownChange, LevelChange, SeriesResult, Spike
from fairtrial.history.noise import Noise, distances, noise, scatter
from fairtrial.history.series import Series, SeriesPoint

FEWEST_TO_ALARM: Final = 6  # five points before the newest one
MOST: Final = 200  # newest points looked at: older levels concern nobody
SPIKE_SDS: Final = 4.0  # a normal point is so far out once in 16,000
KNOWN_REACH: Final = 2  # points by which an acknowledged change may move as later runs make its place clearer
MEDIAN_VARIANCE: Final = math.pi / 2  # of a median of normal values, in variances of their mean
TAIL_INDEX: Final = 4  # of distances beyond the farthest one seen: as heavy as Student's t with 4 degrees of freedom
NOISELESS: Final = Noise(unit=0.0, autocorrelation=0.0, sd=0.0)  # of levels that are constants
ROUNDING: Final = 1e-9  # of a value where all are positive, else of the largest: what differs by less is equal


@dataclass(frozen=True)
class HistoryOptions:
    """Levels and what is known.

    Attributes:
        alpha: chance that a series without a change shows one.
        alarm_alpha: chance of any false alarm on newest points, over all series with noise; a point that leaves its
            constant by more than the margin raises one at any level (`segments.constant` has its rates).
        margin: change that matters; None takes each series' own, 0 where it has none.
    """

    alpha: float = 0.05
    alarm_alpha: float = 0.01
    margin: float | None = None
    known: tuple[KnownChange, ...] = ()


@dataclass(frozen=True)
class _ScaledSeries:
    """A series on the scale it is judged on, with p and the starts of its segments.

    Attributes:
        scaled: logarithms where all values are positive, else values by `size`; equal where rounding tells them apart.
        size: a power of two, so that squares of the largest values are still numbers; 1 for logarithms.
        noise: around the levels; None with fewer than `FEWEST_TO_ALARM` points, or where all are equal.
    """

    series: Series
    points: tuple[SeriesPoint, ...]
    scaled: Values
    size: float
    noise: Noise | None
    margin: float
    p: float | None
    starts: list[int]
    constant: tuple[int, int] | None

    @property
    def name(self) -> str:
        return self.series.name

    @property
    def tested(self) -> bool:
        """Whether its p is in the family of all series."""
        return self.p is not None and not self.series.unplanned

    def unscaled(self, value: float) -> float:
        return math.exp(value) if self.series.positive else value * self.size

    def direction(self, move: float) -> Direction:
        if self.series.better is None or move == 0:
            return "changed"
        return "better" if (move > 0) == (self.series.better == "higher") else "worse"

    def relevant(self, move: float, *, level: float) -> bool:
        """Whether a move is beyond the margin, whatever true values a constant of classes stands for."""
        resolution = 0.0 if self.constant is None else self.series.resolution
        if self.series.positive:
            return abs(move) > math.log1p(self.margin) + abs(math.log1p(-resolution))
        return abs(move) > self.margin * abs(level) + abs(resolution) * max(abs(level), abs(level + move))

    def ratio(self, move: float, reach: float) -> Interval:
        if not self.series.positive:
            return Interval(estimate=None, low=None, high=None)
        return spreads.ratio(sensitivity.exponential(move), move - reach, move + reach)


def examine(series: Sequence[Series], *, options: HistoryOptions, left_out: dict[str, str] | None = None) -> History:
    """Looks at every series; families are all of them together."""
    prepared = [_prepare(each, options) for each in series]
    tested = [each.p for each in prepared if each.p is not None and each.tested]
    adjusted = iter(benjamini_hochberg(t_tests.array(tested)).tolist())
    results = [
        _examined(each, p_adjusted=float(next(adjusted)) if each.tested else None, options=options) for each in prepared
    ]
    alarms = [each.alarm for each in results if each.alarm is not None]
    raised = iter(holm([alarm.p for alarm in alarms]).tolist())
    judged = [_judged(each, raised, options) for each in results]
    return History(alpha=options.alpha, alarm_alpha=options.alarm_alpha, series=tuple(judged), left_out=left_out or {})


def _prepare(series: Series, options: HistoryOptions) -> _ScaledSeries:
    points = series.points[-MOST:]
    values = t_tests.array([point.estimate for point in points])
    _, exponent = math.frexp(float(np.abs(values).max()))
    size = 1.0 if series.positive else math.ldexp(1.0, exponent - 1)
    scaled = ranks.settled(np.log(values) if series.positive else values / size, rounding=ROUNDING)
    judged = len(points) >= FEWEST_TO_ALARM and np.ptp(scaled) > 0
    margin = series.margin if options.margin is None else options.margin
    p: float | None = None
    starts: list[int] = []
    if judged and len(points) >= segments.FEWEST:
        p, starts = segments.segment(scaled, alpha=options.alpha)
    return _ScaledSeries(
        series=series,
        points=points,
        scaled=scaled,
        size=size,
        noise=(noise(distances(scaled, starts)) or NOISELESS) if judged else None,
        margin=margin or 0.0,
        p=p,
        starts=starts,
        constant=segments.constant(scaled),
    )


def _examined(of: _ScaledSeries, *, p_adjusted: float | None, options: HistoryOptions) -> SeriesResult:
    bounds = [0, *of.starts, len(of.points)]
    return SeriesResult(
        series=of.name,
        metric=of.series.metric,
        role=of.series.role,
        unit=of.series.unit,
        better=of.series.better,
        margin=of.margin,
        relative=of.series.positive,
        runs=tuple(point.run for point in of.points),
        times=tuple(point.time for point in of.points),
        values=tuple(point.estimate for point in of.points),
        standard_errors=tuple(point.standard_error for point in of.points),
        ns=tuple(point.n for point in of.points),
        newest=of.series.newest,
        unmet=of.series.unmet,
        unplanned=of.series.unplanned,
        left_out=len(of.series.points) - len(of.points),
        constant=of.constant,
        noise=None if of.noise is None else of.noise.sd * of.size,
        autocorrelation=None if of.noise is None else of.noise.autocorrelation,
        p=_reported(of.p),
        p_adjusted=_reported(p_adjusted),
        changes=tuple(_changes(of, bounds, options)),
        spikes=tuple(_spikes(of)),
        alarm=None if of.series.unplanned else _alarm(of, options),
        doubts=tuple(_doubts(of, p_adjusted=p_adjusted, options=options)),
    )


def _reported(p: float | None) -> float | None:
    return None if p is None else max(p, segments.SMALLEST_P)


def _changes(of: _ScaledSeries, bounds: Sequence[int], options: HistoryOptions) -> list[LevelChange]:
    levels = [float(np.median(of.scaled[a:b])) for a, b in pairwise(bounds)]
    changes = []
    for number, start in enumerate(bounds[1:-1], start=1):
        assert of.noise is not None  # noqa: S101 - without noise there is one segment
        move, since = levels[number] - levels[number - 1], levels[-1] - levels[number - 1]
        sizes = (start - bounds[number - 1], bounds[number + 1] - start)
        error = of.noise.sd * math.sqrt(MEDIAN_VARIANCE * sum(1 / of.noise.effective(size) for size in sizes))
        reach = t_tests.quantile(1 - options.alpha / 2, len(of.points) - len(levels)) * error
        returned = [
            level for level in levels[number + 1 :] if abs(level - levels[number - 1]) < abs(move) / 2
        ]  # nearer to the old level than to the new one
        changes.append(
            LevelChange(
                index=start,
                run=of.points[start].run,
                previous=of.points[start - 1].run,
                before=of.unscaled(levels[number - 1]),
                after=of.unscaled(levels[number]),
                ratio=of.ratio(move, reach),
                difference=of.unscaled(levels[number]) - of.unscaled(levels[number - 1]),
                noise_sds=abs(move) / of.noise.sd if of.noise.sd else None,
                direction=of.direction(move),
                relevant=of.relevant(move, level=levels[number - 1]),
                went_away=bool(returned),
                holds=since * move > 0 and of.relevant(since, level=levels[number - 1]),
                differing=_differing(of.points[start - 1], of.points[start]),
                known=_known(of, start, options),
            )
        )
    return changes


def _differing(before: SeriesPoint, after: SeriesPoint) -> dict[str, tuple[str, str]]:
    names = [*before.facts, *(name for name in after.facts if name not in before.facts)]
    both = {name: (before.facts.get(name, ""), after.facts.get(name, "")) for name in names}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


def _spikes(of: _ScaledSeries) -> list[Spike]:
    """Points far from their segment; not the newest ones that are far off to one side: they may be a new level."""
    if of.noise is None:
        return []
    away, far = _far(of)
    if far[-1]:
        far[len(far) - 1 - _beside_newest(away, far) :] = False
    return [
        Spike(
            index=index,
            run=of.points[index].run,
            value=of.points[index].estimate,
            noise_sds=abs(float(away[index])) / of.noise.sd,
        )
        for index in np.flatnonzero(far).tolist()
    ]


def _far(of: _ScaledSeries) -> tuple[Values, NDArray[np.bool_]]:
    """Distances from the segment's median, and which are large; after a constant, those from it that are not 0."""
    away = distances(of.scaled, of.starts)
    far = np.abs(away) > SPIKE_SDS * (NOISELESS if of.noise is None else of.noise).sd
    if of.constant is not None:
        level, _ = of.constant
        away[level:] = of.scaled[level:] - of.scaled[level]
        far[level:] = away[level:] != 0
    return away, far


def _beside_newest(away: Values, far: NDArray[np.bool_]) -> int:
    """How many points right before the newest are far off to its side."""
    beside = far[:-1] & (away[:-1] * away[-1] > 0)
    return int(np.logical_and.accumulate(beside[::-1]).sum())


def _alarm(of: _ScaledSeries, options: HistoryOptions) -> Alarm | None:
    """The newest point against its constant or the last segment; neighbours that are alike count for less.

    Points right before it that are far off to its side are no noise that excuses it, as long as they are too few to be
    found as a level.
    """
    if of.noise is None or len(of.points) < FEWEST_TO_ALARM:
        return None
    beside = min(_beside_newest(*_far(of)), segments.SHORTEST - 1)
    earlier, starts = of.scaled[: -1 - beside], of.starts
    last = earlier[slice(*of.constant)] if of.constant else earlier[starts[-1] if starts else 0 :]
    expected = float(np.median(last))
    move = float(of.scaled[-1]) - expected
    spread = scatter(earlier, starts) or of.noise.sd
    error = math.sqrt(spread**2 * (1 + MEDIAN_VARIANCE / of.noise.effective(len(last))) + _extra(of))
    df = len(earlier) - len(starts) - 1
    reach = t_tests.quantile(1 - options.alarm_alpha / 2, df) * error
    return Alarm(
        run=of.points[-1].run,
        value=of.points[-1].estimate,
        expected=of.unscaled(expected),
        ratio=of.ratio(move, reach),
        p=max(t_tests.two_sided_p(move / error if error else 0.0, df), _p_by_rank(move, distances(earlier, starts))),
        p_adjusted=1.0,
        direction=of.direction(move),
        relevant=of.relevant(move, level=expected),
        raised=False,
        known=_known_alarm(of, spread, options),
    )


def _known_alarm(of: _ScaledSeries, spread: float, options: HistoryOptions) -> KnownChange | None:
    """The change that the newest point shows again: its own, or one of the points right before that it agrees with."""
    newest = len(of.points) - 1
    return next(
        (
            known
            for at, known in _near(of, newest, options)
            if at == newest or _agrees(of, at, spread=spread, options=options)
        ),
        None,
    )


def _agrees(of: _ScaledSeries, at: int, *, spread: float, options: HistoryOptions) -> bool:
    """Whether the newest point has the level of the points from one on."""
    newest = len(of.points) - 1
    level = float(np.median(of.scaled[at:newest]))
    beyond = float(of.scaled[-1]) - level
    error = spread * math.sqrt(1 + 1 / (newest - at))
    by_noise = t_tests.quantile(1 - options.alarm_alpha / 2, newest - 1) * error
    return abs(beyond) <= by_noise or not of.relevant(beyond, level=level)


def _p_by_rank(move: float, earlier: Values) -> float:
    """Chance that the newest of points in random order is so far out, to either side, whatever their distribution.

    Twice its rank on its side; if it is the farthest there, times the chance to be so much farther than the second, in
    a tail that falls with the power `TAIL_INDEX`.
    """
    same_side = earlier * math.copysign(1.0, move)
    farther = int((same_side >= abs(move)).sum())
    beyond = 1.0 if farther else (max(float(same_side.max()), 0.0) / abs(move)) ** TAIL_INDEX
    return min(1.0, 2 * (farther + 1) / (len(earlier) + 1) * beyond)


def _extra(of: _ScaledSeries) -> float:
    """Variance that the newest point has beyond that of its forerunners, by its trials: fewer trials, wider point."""
    errors = [point.standard_error for point in of.points]
    if errors[-1] is None or any(error is None for error in errors):
        return 0.0
    usual = float(np.median([(error / of.size) ** 2 for error in errors[:-1] if error is not None]))
    return max(0.0, (errors[-1] / of.size) ** 2 - usual)


def _judged(of: SeriesResult, adjusted: Iterator[float], options: HistoryOptions) -> SeriesResult:
    if of.alarm is None:
        return of
    p = next(adjusted)
    raised = p <= options.alarm_alpha or (of.constant is not None and of.alarm.relevant)
    return of.model_copy(update={"alarm": of.alarm.model_copy(update={"p_adjusted": p, "raised": raised})})


def _known(of: _ScaledSeries, index: int, options: HistoryOptions) -> KnownChange | None:
    return next((known for _, known in _near(of, index, options)), None)


def _near(of: _ScaledSeries, index: int, options: HistoryOptions) -> list[tuple[int, KnownChange]]:
    """What is known of a point and of those around it, each with its point, nearest first."""
    first = max(0, index - KNOWN_REACH)
    points = {point.run: at for at, point in enumerate(of.points[first : index + KNOWN_REACH + 1], start=first)}
    found = [
        (points[each.run], each)
        for each in options.known
        if each.run in points and each.series in ("", of.name) and each.metric in ("", of.series.metric)
    ]
    return sorted(found, key=lambda known: abs(known[0] - index))


def _doubts(of: _ScaledSeries, *, p_adjusted: float | None, options: HistoryOptions) -> list[str]:
    doubts = []
    p = of.p
    n = len(of.points)
    if n < segments.FEWEST:
        doubts.append(f"change points need at least {segments.FEWEST} points, found {n}")
    elif of.noise is None:
        doubts.append("the points do not vary: there is no noise to compare a change with")
    if p is not None and p_adjusted is not None and p <= options.alpha < p_adjusted:
        doubts.append(
            f"p = {_reported(p):.3g} on its own, but {p_adjusted:.3g} among all series examined (Benjamini–Hochberg): "
            "the change may be due to chance"
        )
    return doubts
