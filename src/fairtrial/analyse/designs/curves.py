"""Curves of every arm over a numeric factor: parameters, peaks, crossings and what differs between arms.

Estimates are linearised around the fit and take their errors from blocks. Comparisons of parameters are a family of
their own: they say how two arms grow, not which is faster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy import special

from fairtrial.analyse.designs import curve_errors, usl
from fairtrial.analyse.designs.crossings import crossings
from fairtrial.analyse.designs.curve_errors import BlockErrors, Errors
from fairtrial.analyse.designs.curve_models import (
    ArmCurve,
    Crossing,
    CurvePair,
    CurvePoint,
    Curves,
    Estimate,
    Misfit,
    ParameterComparison,
    Peak,
    PeakPosition,
)
from fairtrial.analyse.designs.fits import FITS, Fit
from fairtrial.analyse.designs.measured_logs import MeasuredLogs, measured_logs, scattered
from fairtrial.analyse.inference import censoring, comparing, confirming, families, ranks, t_tests
from fairtrial.analyse.inference.t_tests import LARGEST_LOGARITHM, Values
from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.tidy import CurveRequest, Request, Table
from fairtrial.study.designs.numeric_factors import FEWEST_VALUES, CurveModel

FEWEST_BLOCKS: Final = 6  # of which an exact test could claim at 0.05; more where the level is smaller
FEWEST_TRIALS: Final = 4  # at each value, where trials are not paired; likewise
POINTS: Final = 121  # of a drawn curve
FINE: Final = 1201  # of the search for crossings


@dataclass(frozen=True)
class Parameter:
    """One parameter of a model. `least`: its smallest meaningful value; None for rates, which are fitted as logs."""

    name: str
    least: float | None

    @property
    def scale(self) -> Literal["difference", "ratio"]:
        """How two arms are compared on it."""
        return "ratio" if self.least is None else "difference"


PARAMETERS: Final[Mapping[CurveModel, tuple[Parameter, ...]]] = {
    "usl": (Parameter("lambda", None), Parameter("sigma", 0.0), Parameter("kappa", 0.0)),
    "linear": (Parameter("at_first", None), Parameter("per_doubling", None)),
    "loess": (),
}


def curves(
    table: Table,
    request: Request,
    *,
    finished: bool = True,
    unmet: frozenset[str] = frozenset(),
    cut_off: Collection[tuple[str, str, str]] = frozenset(),
) -> tuple[Curves, ...]:
    """Of every primary metric under every combination of conditions; empty unless the request has a curve.

    Args:
        table: values by cell and metric.
        request: with the factor and the model.
        finished: whether the run reached its planned end; without it there is no verdict.
        unmet: cells that failed an expectation: no verdict rests on them.
        cut_off: cell, metric and level of values of which some are lower bounds: no curve goes through them.
    """
    asked = request.curve
    if asked is None or asked.over == request.contrast:
        return ()
    metrics = [name for name, role in request.roles.items() if role == "primary"]
    groups = _groups(request, asked)
    pairs = len(metrics) * len(groups) * (len(request.levels) - 1)
    made = []
    for metric in metrics:
        for levels, cells in groups:
            judged = finished and not unmet.intersection(cells.values())
            frame = Curves(
                metric=metric,
                cell="+".join(levels.values()) or "all",
                levels=levels,
                over=asked.over,
                model=asked.model,
                values=tuple(cells),
                cells=tuple(cells.values()),
                confidence=request.confidence,
            )
            if any((cell, metric, level) in cut_off for cell in cells.values() for level in request.levels):
                made.append(frame.model_copy(update={"reason": "some values were cut off at a limit"}))
                continue
            arms = [table[cell, metric] for cell in cells.values()]
            made.append(_made(frame, arms, request, pairs=pairs, judged=judged))
    return _adjusted(made, alpha=1 - request.confidence)


def _groups(request: Request, asked: CurveRequest) -> list[tuple[dict[str, str], dict[float, str]]]:
    """Levels of the other conditions, and the cell at each value of the factor, ascending."""

    def others(cell: str) -> tuple[tuple[str, str], ...]:
        return tuple((name, level) for name, level in request.cells[cell].items() if name != asked.over)

    found: dict[tuple[tuple[str, str], ...], dict[float, str]] = {}
    for cell, levels in request.cells.items():
        found.setdefault(others(cell), {})[asked.numbers[levels[asked.over]]] = cell
    return [(dict(levels), dict(sorted(cells.items()))) for levels, cells in found.items()]


def _made(
    frame: Curves, cells: Sequence[Mapping[str, ArmValues]], request: Request, *, pairs: int, judged: bool
) -> Curves:
    few = FEWEST_VALUES[frame.model]
    if len(frame.values) < few:
        return frame.model_copy(update={"reason": f"{len(frame.values)} values, of {few} that the model needs"})
    values = (arm.values for arms in cells for arm in arms.values())
    if censoring.by_class(*values, resolution=request.metrics[frame.metric].resolution):
        return frame.model_copy(update={"reason": "most values of an arm fall into few classes"})
    measured = measured_logs(cells, paired=request.paired)
    if isinstance(measured, str):
        return frame.model_copy(update={"reason": measured})
    n = np.array(frame.values)
    fits = [FITS[frame.model](n, means) for means in measured.means]
    errors = measured.errors if measured.errors is not None else scattered(measured, n, fits)
    fewest = comparing.fewest_blocks(paired=request.paired, alpha=1 - request.confidence)
    enough = measured.n >= max(FEWEST_BLOCKS if request.paired else FEWEST_TRIALS, fewest)
    judging = _Judging(pairs, size=pairs * len(PARAMETERS[frame.model]), claims=judged and enough)
    every = _All(frame, n, request.levels, measured, tuple(fits), errors)
    return frame.model_copy(
        update={
            "spread": measured.spread,
            "n": measured.n,
            "arms": tuple(every.arm(index) for index in range(len(fits))),
            "pairs": tuple(every.pair(index, judging) for index in range(1, len(fits))),
        }
    )


@dataclass(frozen=True)
class _Judging:
    """How many pairs of curves and comparisons of parameters are families, and whether trials may claim anything."""

    pairs: int
    size: int
    claims: bool


@dataclass(frozen=True)
class _All:
    """The fits of all arms, and the errors of the means they rest on."""

    frame: Curves
    n: Values
    levels: tuple[str, ...]
    measured: MeasuredLogs
    fits: tuple[Fit, ...]
    errors: Errors | None

    def sums(self, index: int, weights: Values) -> Values:
        """Weights of one arm's means, shape (q, k), as weights of all arms' means."""
        k = len(self.n)
        wide = np.zeros((len(weights), k * len(self.fits)))
        wide[:, k * index : k * (index + 1)] = weights
        return wide

    def reach(self, sums: Values) -> Values:
        """Half the width of the intervals of sums; NaN where nothing says how sure they are."""
        error, quantile = self._errors(sums, confidence=self.frame.confidence)
        return np.asarray(error * quantile)

    def _errors(self, sums: Values, *, confidence: float) -> tuple[Values, Values]:
        """Standard errors of sums and the quantile of t; errors that are no larger than rounding are NaN, too."""
        if self.errors is None:
            return np.full(len(sums), np.nan), np.ones(len(sums))
        error, quantile = curve_errors.reach(self.errors, sums, confidence=confidence)
        return np.where(error > self._rounding(sums), error, np.nan), quantile

    def _rounding(self, sums: Values) -> Values:
        """What rounding of the means' logs makes of sums, shape (q,)."""
        return np.asarray(t_tests.rounding(self.measured.means) * np.linalg.norm(sums, axis=-1))

    def arm(self, index: int) -> ArmCurve:
        fit, names = self.fits[index], PARAMETERS[self.frame.model]
        reach = self.reach(self.sums(index, fit.moves))
        return ArmCurve(
            arm=self.levels[index],
            parameters={
                each.name: _parameter(each, held, free, away=away)
                for each, held, free, away in zip(
                    names, fit.bounded.tolist(), fit.theta.tolist(), reach.tolist(), strict=True
                )
            },
            free={
                each.name: float(np.exp(value)) if each.least is None else value
                for each, value in zip(names, fit.theta.tolist(), strict=True)
            },
            peak=self._peak(index) if self.frame.model == "usl" else None,
            misfit=self._misfit(index),
            line=tuple(self._line(index)),
        )

    def _line(self, index: int) -> Iterator[CurvePoint]:
        """The curve within the values measured; its band holds the curve that is drawn, too."""
        fit, at = self.fits[index], np.geomspace(self.n[0], self.n[-1], POINTS)
        reach = self.reach(self.sums(index, fit.moves_at(at)))
        for value, free, shown, away in zip(
            at.tolist(), fit.at(at).tolist(), fit.shown(at).tolist(), reach.tolist(), strict=True
        ):
            low, high = (None, None) if np.isnan(away) else (min(free - away, shown), max(free + away, shown))
            yield CurvePoint(value=value, estimate=_exp(shown), low=_exp_or_none(low), high=_exp_or_none(high))

    def _misfit(self, index: int) -> Misfit | None:
        fit = self.fits[index]
        if self.errors is None or self.measured.spread == "scatter" or not len(fit.across):
            return None
        residuals, across = np.zeros(self.measured.means.size), self.sums(index, fit.across)
        k = len(self.n)
        residuals[k * index : k * (index + 1)] = self.measured.means[index] - fit.at(self.n)
        if np.isnan(self.reach(across)).all():
            return None
        found = curve_errors.misfit(residuals, across, self.errors)
        f, df, df_error, p = (float(each) for each in found)
        return Misfit(f=f, df=df, df_error=df_error, p=p) if np.isfinite(f) else None

    def _peak(self, index: int) -> Peak:
        fit, first, last = self.fits[index], float(self.n[0]), float(self.n[-1])
        estimate = float(usl.peak(fit.theta))  # the interval's own: a bound that the data deny would lie outside it
        low, high = np.nan, np.inf
        sums = self.sums(index, usl.slope_moves(fit.theta, fit.moves))
        error, quantile = self._errors(sums, confidence=self.frame.confidence)
        if self.errors is not None and not np.isnan(error).all():
            ends = usl.peak_interval(fit.theta, self.errors.covariance(sums), reach=quantile[1])
            low, high = (float(each) for each in ends)
        at = Estimate(estimate=_finite(estimate), low=_finite(low), high=_finite(high))
        throughput = None
        if first <= estimate <= last:
            here = np.array([estimate])
            away = float(self.reach(self.sums(index, fit.moves_at(here)))[0])
            highest = float(fit.at(here)[0])
            throughput = _rate(highest, highest, away)
        position = "excluded" if np.isposinf(low) else _position(at, first=first, last=last)
        return Peak(position=position, at=at, throughput=throughput)

    def pair(self, index: int, judging: _Judging) -> CurvePair:
        names = PARAMETERS[self.frame.model]
        apart = self.fits[index].theta - self.fits[0].theta
        sums = self.sums(index, self.fits[index].moves) - self.sums(0, self.fits[0].moves)
        return CurvePair(
            arm=self.levels[index],
            parameters=tuple(
                self._compared(each, change, weights, judging=judging)
                for each, change, weights in zip(names, apart.tolist(), sums, strict=True)
            ),
            crossings=tuple(self._crossings(index)),
            shown=judging.claims and self._changes_sign(index, pairs=judging.pairs),
        )

    def _compared(
        self, parameter: Parameter, change: float, weights: Values, *, judging: _Judging
    ) -> ParameterComparison:
        p, alpha, sums = 1.0, 1 - self.frame.confidence, weights[None, :]
        error, quantile = (float(each[0]) for each in self._errors(sums, confidence=self.frame.confidence))
        away = error * quantile
        if self.errors is not None and not np.isnan(error):
            p = 2 * float(special.stdtr(self.errors.df(sums)[0], -abs(change / error)))
            if isinstance(self.errors, BlockErrors):
                rounding = float(self._rounding(sums)[0])
                blocks = ranks.settled(change + self.errors.deviations @ weights, rounding=rounding)
                p = float(confirming.paired(np.asarray(p), blocks, level=alpha / judging.size, alpha=alpha))
        rate = parameter.least is None
        interval = _rate(change, change, away) if rate else _interval(change, change - away, change + away)
        return ParameterComparison(
            parameter=parameter.name,
            scale=parameter.scale,
            change=interval,
            p=p,
            p_adjusted=p,
            family_size=judging.size,
            verdict="undecided" if judging.claims else "none",
        )

    def _difference(self, index: int, at: Values) -> tuple[Values, Values]:
        """Of the logs of an arm and the baseline, and its weights."""
        apart = self.fits[index].at(at) - self.fits[0].at(at)
        sums = self.sums(index, self.fits[index].moves_at(at)) - self.sums(0, self.fits[0].moves_at(at))
        return np.asarray(apart), np.asarray(sums)

    def _crossings(self, index: int) -> Iterator[Crossing]:
        fine = np.geomspace(self.n[0], self.n[-1], FINE)
        apart, sums = self._difference(index, fine)
        reach = np.nan_to_num(self.reach(sums), nan=np.inf)
        for place in crossings(fine, apart, reach):
            yield Crossing(at=place.at, low=place.low, high=place.high)

    def _changes_sign(self, index: int, *, pairs: int) -> bool:
        """Whether the arm is shown to be above at one measured value and below at another, one of so many pairs."""
        apart, sums = self._difference(index, self.n)
        level = 1 - (1 - self.frame.confidence) / (pairs * len(self.n))
        error, quantile = self._errors(sums, confidence=level)
        shown = np.sign(apart[np.abs(apart) > error * quantile])
        return bool((shown > 0).any() and (shown < 0).any())


def _adjusted(made: Sequence[Curves], *, alpha: float) -> tuple[Curves, ...]:
    """Parameters compared, adjusted by Holm over the whole family and judged."""
    every = [each for curve in made for pair in curve.pairs for each in pair.parameters]
    size = max((each.family_size for each in every), default=0)
    adjusted = iter(families.holm([each.p for each in every] + [1.0] * (size - len(every))).tolist() if every else [])

    def judged(each: ParameterComparison) -> ParameterComparison:
        p = next(adjusted)
        verdict = "differs" if each.verdict == "undecided" and p < alpha else each.verdict
        return each.model_copy(update={"p_adjusted": p, "verdict": verdict})

    return tuple(
        curve.model_copy(
            update={
                "pairs": tuple(
                    pair.model_copy(update={"parameters": tuple(judged(each) for each in pair.parameters)})
                    for pair in curve.pairs
                )
            }
        )
        for curve in made
    )


def _parameter(parameter: Parameter, held: float, free: float, *, away: float) -> Estimate:
    if parameter.least is None:
        return _rate(held, free, away)
    if np.isnan(away):
        return _interval(held, np.nan, np.nan)
    return _interval(held, min(held, max(parameter.least, free - away)), max(held, free + away))


def _position(at: Estimate, *, first: float, last: float) -> PeakPosition:
    if at.high is None:
        return "none"
    if at.high <= first:
        return "before"
    if at.low is not None and at.low >= last:
        return "beyond"
    return "within" if at.low is not None and at.low >= first and at.high <= last else "open"


def _rate(shown: float, free: float, away: float) -> Estimate:
    """Of a logarithm; its interval is around the free estimate, and holds what is shown, too."""
    low, high = (np.nan, np.nan) if np.isnan(away) else (min(shown, free - away), max(shown, free + away))
    return Estimate(estimate=_exp_or_none(shown), low=_exp_or_none(low), high=_exp_or_none(high))


def _interval(estimate: float, low: float, high: float) -> Estimate:
    return Estimate(estimate=estimate, low=_finite(low), high=_finite(high))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _exp(logarithm: float) -> float:
    return float(np.exp(min(logarithm, LARGEST_LOGARITHM)))


def _exp_or_none(logarithm: float | None) -> float | None:
    held = logarithm is not None and np.isfinite(logarithm) and logarithm <= LARGEST_LOGARITHM
    return float(np.exp(logarithm)) if held and logarithm is not None else None
