"""Whether a trial measured a steady state: verified for the whole measured window, which is never shortened.

Three verdicts. `drifting`: a straight line rises or falls by more than noise does, and describes the window better than
levels do. `unsteady`: a level differs from the last one. `steady`: neither. A difference that noise does not explain
counts only if it also matters: more than `RELEVANT` of the throughput.

Sources: Barrett and others, *Virtual machine warmup blows hot and cold*, OOPSLA 2017 (segments equivalent to the last);
Traini and others, *Towards effective assessment of steady state performance in Java software*, 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np

from fairtrial.metrics.series import segments, throughput
from fairtrial.metrics.series.autocorrelation import LARGEST_AR, effective_n, inflation, lag1
from fairtrial.metrics.series.segments import Segmentation
from fairtrial.metrics.series.throughput import Throughput, Values
from fairtrial.record.models import Window
from fairtrial.study.catalogue import Better, MetricDefinition

Verdict = Literal["steady", "drifting", "unsteady"]

SMALLEST_N: Final = 30  # intervals: below it neither slope nor levels can be told from noise
MOST_INTERVALS: Final = 1000  # more tell nothing new of a whole window, and segmentation costs their square
RELEVANT: Final = 0.05  # a mean is then some 2 % off the last level: as much as effects that are looked for
LEVEL: Final = 0.01  # of the slope's test, per trial
LINE: Final = 2  # parameters of a straight line


@dataclass(frozen=True)
class TrendLine:
    """A least-squares line through a series.

    Attributes:
        change: from the window's start to its end, as a share of the mean.
        p: two-sided t test of no slope, with the errors' autocorrelation counted.
        residual_square: sum of squared deviations from the line.
    """

    change: float
    p: float
    residual_square: float


@dataclass(frozen=True)
class WindowSteadiness:
    """What was found of one window; `settled_from_s` is its length if it never settles."""

    verdict: Verdict
    line: TrendLine
    levels: Segmentation
    settled_from_s: float


def compute(directory: Path, *, window: Window) -> dict[str, float]:
    """The scalars of one trial; empty without a timeline or with one too short to judge.

    Raises:
        RecordError: the timeline is damaged.
    """
    whole = throughput.read(directory, window=window)
    return scalars(throughput.merged(whole, interval_s=whole.length_s / MOST_INTERVALS))


def scalars(series: Throughput) -> dict[str, float]:
    """See `DEFINITIONS`."""
    if series.n < SMALLEST_N or float(series.per_s.mean()) == 0:
        return {}
    steadiness = verify(series)
    correlation = lag1(series.per_s)
    return ({} if correlation is None else {"throughput_autocorrelation": correlation}) | {
        "throughput_effective_n": effective_n(series.per_s),
        "throughput_drift": steadiness.line.change,
        "throughput_drift_p": steadiness.line.p,
        "throughput_levels": float(len(steadiness.levels.starts)),
        "settled_from_s": steadiness.settled_from_s,
        "drifting": float(steadiness.verdict == "drifting"),
        "unsteady": float(steadiness.verdict == "unsteady"),
    }


def verify(series: Throughput) -> WindowSteadiness:
    """Judges a window of at least `SMALLEST_N` intervals with some throughput."""
    straight, levels = line(series.per_s), segments.levels(series.per_s)
    others = [
        differs and abs(mean - levels.means[-1]) > RELEVANT * abs(levels.means[-1])
        for differs, mean in zip(levels.differs, levels.means, strict=True)
    ]
    stepped = any(others)
    sloped = straight.p < LEVEL and abs(straight.change) > RELEVANT
    begins = max((index + 1 for index, other in enumerate(others) if other), default=0)
    settled = float(series.starts_s[levels.starts[begins]] - series.starts_s[0]) if stepped else 0.0
    if sloped and (not stepped or _line_describes_better(straight, levels, n=series.n)):
        return WindowSteadiness(verdict="drifting", line=straight, levels=levels, settled_from_s=series.length_s)
    verdict: Verdict = "unsteady" if stepped else "steady"
    return WindowSteadiness(verdict=verdict, line=straight, levels=levels, settled_from_s=settled)


def line(values: Values) -> TrendLine:
    """The line of a series, whose mean is not 0.

    The slope's variance is multiplied by what an autoregression of order 1 with the residuals' lag-1 correlation makes
    of it (1 + φ) / (1 - φ), degrees of freedom divided by the same; φ has its bias taken out, which a line makes
    -(2 + 4φ) / n.
    """
    from scipy import special  # noqa: PLC0415 - definitions of metrics must not wait for it

    n = len(values)
    slots = np.arange(n) - (n - 1) / 2
    spread = float(slots @ slots)
    rate = float(slots @ values) / spread
    left = values - values.mean() - rate * slots
    square = float(left @ left)
    change = rate * n / float(values.mean())
    if square <= (n * np.finfo(np.float64).eps * float(np.abs(values).max())) ** 2:
        return TrendLine(change=change, p=0.0 if abs(change) > RELEVANT else 1.0, residual_square=0.0)
    phi = float(left[1:] @ left[:-1]) / square
    more = inflation(float(np.clip((phi + 2 / n) / (1 - 4 / n), 0.0, LARGEST_AR)))
    error = math.sqrt(square / (n - LINE) / spread * more)
    p = float(2 * special.stdtr(max(n / more - LINE, 1.0), -abs(rate / error)))
    return TrendLine(change=change, p=p, residual_square=square)


def _line_describes_better(straight: TrendLine, levels: Segmentation, *, n: int) -> bool:
    """By Schwarz's criterion: a level costs two parameters, its height and where it begins."""
    parameters = 2 * len(levels.starts) - 1
    if levels.residual_square == 0 or straight.residual_square == 0:
        return straight.residual_square <= levels.residual_square
    return n * math.log(straight.residual_square / levels.residual_square) < (parameters - LINE) * math.log(n)


def _metric(name: str, label: str, unit: str, source: str, better: Better = "lower") -> MetricDefinition:  # noqa: PLR0917 - a row of the table below
    return MetricDefinition(
        name=name, label=label, unit=unit, better=better, kind="wall_clock", source=f"timeline.parquet: {source}"
    )


DEFINITIONS: Final = {
    each.name: each
    for each in (
        _metric(
            "throughput_autocorrelation", "autocorrelation of throughput", "correlation", "of neighbouring intervals"
        ),
        _metric(
            "throughput_effective_n",
            "effective sample size of throughput",
            "intervals",
            "independent intervals that would give the mean as precisely",
            "higher",
        ),
        _metric(
            "throughput_drift",
            "drift of throughput",
            "share of the mean",
            "change of a straight line from the window's start to its end",
            "higher",
        ),
        _metric(
            "throughput_drift_p",
            "p of the drift",
            "probability",
            "that noise as autocorrelated has such a line",
            "higher",
        ),
        _metric("throughput_levels", "levels of throughput", "levels", "segments of different mean"),
        _metric(
            "settled_from_s",
            "time until the last level",
            "s",
            "from where on no level differs from the last; the window's length if it drifts",
        ),
        _metric("drifting", "drifting trials", "share of trials", "1 if the trial drifts, else 0"),
        _metric("unsteady", "unsteady trials", "share of trials", "1 if a level differs from the last, else 0"),
    )
}
