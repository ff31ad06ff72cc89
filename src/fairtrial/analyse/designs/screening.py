"""Main effects of a screening: least squares on logarithms over the whole matrix, judged for all options at once.

A screening averages every option over all others, so every trial is used for every option. It nominates: the model
leaves interactions out, and the paired study of the strongest decides. Owns the arithmetic, from values by row and
replicate to effects; it must not know trials or reports.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairtrial.analyse.designs import maxima
from fairtrial.analyse.designs.screening_models import (
    ErrorSource,
    MainEffect,
    MixedInteractions,
    ScreenedMetric,
    ScreeningResult,
)
from fairtrial.analyse.inference import t_tests
from fairtrial.record.screening import Screening

Values = NDArray[np.float64]
Whole = NDArray[np.int64]

LENTH_SHARE: Final = 3  # Lenth's error is worth one degree of freedom for so many effects
HIGH_OVER_LOW: Final = 2.0  # codes -1 and 1 lie this far apart
COLUMNS_SHOWN: Final = 5
EXCHANGES: Final = 2_000
_ALIKE: Final = 1e-9
_SEED: Final = 1957


class Model:
    """Least squares of logarithms on replicates and options, as operators on any values of the same trials.

    `beside` has columns that the options are adjusted for and that have no effects of their own, by row.

    Attributes:
        estimable: whether every option has an effect of its own; nothing else is there if not.
        scales: standard errors of the effects for a standard deviation of 1 of a trial, shape (k,).
        df: that the model leaves.
        pure_df: of rows that differ from themselves.
        exchanges: orders of the trials that effects are held against.
    """

    def __init__(
        self,
        codes: Values,
        *,
        rows: Whole,
        replicates: Whole,
        beside: Values | None = None,
        exchanges: int = EXCHANGES,
    ) -> None:
        self.codes, self.replicates, self.exchanges = codes[rows], replicates, exchanges
        dummies = (replicates[:, None] == np.unique(replicates)).astype(float)
        others = dummies if beside is None else np.hstack([dummies, beside[rows]])
        design, options = np.hstack([others, self.codes]), codes.shape[1]
        self.estimable = int(np.linalg.matrix_rank(design)) == design.shape[1]
        if not self.estimable:
            return
        inverse = np.linalg.pinv(design)
        self._effects = HIGH_OVER_LOW * inverse[-options:]
        self.scales = np.sqrt((self._effects**2).sum(axis=1))
        self.df = len(rows) - design.shape[1]
        saturated = np.hstack([dummies, (rows[:, None] == np.unique(rows)).astype(float)])
        self.pure_df = len(rows) - int(np.linalg.matrix_rank(saturated))
        self._left = np.eye(len(rows)) - design @ inverse
        self._pure = np.eye(len(rows)) - saturated @ np.linalg.pinv(saturated)

    def effects(self, logs: Values) -> Values:
        """Log ratios, high over low, shape (k, …) of values of shape (trials, …)."""
        return np.asarray(self._effects @ logs)

    def left(self, values: Values) -> Values:
        """What options and replicates do not explain, of values of shape (trials, …)."""
        return np.asarray(self._left @ values)

    def residual(self, logs: Values, *, pure: bool = False) -> Values:
        """Sum of squares that the model leaves; `pure`: that rows differ from themselves."""
        left: Values = self._pure @ logs if pure else self.left(logs)
        return np.asarray((left**2).sum(axis=0))

    def errors(self, logs: Values, source: ErrorSource) -> Values:
        """Standard errors of the effects, shape (k, …); Lenth's is the same for all: shape (…)."""
        if source == "Lenth":
            return maxima.pseudo_error(self.effects(logs).T)
        pure = source == "replicates"
        spread = np.sqrt(self.residual(logs, pure=pure) / (self.pure_df if pure else self.df))
        return np.asarray(np.multiply.outer(self.scales, spread))

    def statistics(self, logs: Values, source: ErrorSource) -> Values:
        """Effects over their errors, shape (k, …)."""
        return np.asarray(self.effects(logs) / self.errors(logs, source))


def screened(
    of: Screening, values: Mapping[str, Sequence[tuple[str, int, float]]], *, confidence: float
) -> ScreeningResult:
    """All metrics of a screening.

    Args:
        of: the matrix.
        values: by metric, in the order in which they nominate: row, replicate and value of every used trial.
        confidence: of the intervals.
    """
    metrics = {name: one_metric(of, name, trials, confidence=confidence) for name, trials in values.items()}
    found = tuple(each for each in metrics.values() if each is not None)
    return ScreeningResult(
        metrics=found,
        nominated=tuple(effect.option for effect in found[0].effects) if found else (),
        absent=tuple(name for name, each in metrics.items() if each is None),
    )


def one_metric(
    of: Screening, metric: str, trials: Sequence[tuple[str, int, float]], *, confidence: float
) -> ScreenedMetric | None:
    """All options on one metric; None if a value has no logarithm, or too many rows are missing."""
    if not trials or not all(value > 0 and math.isfinite(value) for _, _, value in trials):
        return None
    names = {row: index for index, row in enumerate(of.rows)}
    codes = np.array(list(of.rows.values()), dtype=float)
    rows = np.array([names[row] for row, _, _ in trials])
    replicates = np.array([replicate for _, replicate, _ in trials])
    logs = np.log([value for _, _, value in trials])
    model = Model(codes, rows=rows, replicates=replicates)
    if not model.estimable:
        return None
    error, df = error_source(of, df=model.df, pure_df=model.pure_df)
    bent = bends(codes, rows=rows, replicates=replicates) if of.design == "definitive" else None
    sd = _spread(model, logs, error)
    judged = _judged(model, logs, error=error, df=df, confidence=confidence)
    ends = [(option, levels[0], levels[-1]) for option, levels in of.options.items()]
    ordered = _effects(model, logs, judged, compared=ends, alpha=1 - confidence)
    return ScreenedMetric(
        metric=metric,
        n=len(trials),
        error=error,
        df=df,
        sd=sd,
        standard_error=judged.standard_error,
        margin=judged.margins[0],
        simultaneous_margin=judged.margins[1],
        effects=tuple(_with_suspects(of, each, stronger=ordered[:place]) for place, each in enumerate(ordered)),
        columns=_columns(of, codes, model, rows=rows, logs=logs),
        curvature=() if bent is None else tuple(_curvature(of, bent, logs, confidence=confidence)),
        lack_of_fit_p=_lack_of_fit(model, logs),
    )


def error_source(of: Screening, *, df: float, pure_df: float) -> tuple[ErrorSource, float | None]:
    """What effects are judged by, and its degrees of freedom; None where there is nothing.

    Interactions are in no difference of a row from itself, so replicates come first.

    Args:
        of: the matrix.
        df: that the model leaves.
        pure_df: of rows that differ from themselves.
    """
    options = len(of.options)
    if pure_df > 0:
        return "replicates", pure_df
    # Curvature would be in what a definitive design leaves, and every option may be curved.
    if df >= max(options / LENTH_SHARE, 1) and of.design != "definitive":
        return "unassigned columns", df
    return ("Lenth", options / LENTH_SHARE) if options >= LENTH_SHARE else ("none", None)


def _spread(model: Model, logs: Values, error: ErrorSource) -> float | None:
    """Standard deviation of one trial; None where effects are judged by themselves."""
    if error == "replicates":
        return math.sqrt(float(model.residual(logs, pure=True)) / model.pure_df)
    return math.sqrt(float(model.residual(logs)) / model.df) if error == "unassigned columns" else None


@dataclass(frozen=True)
class _One:
    """The statistics of one effect."""

    t: float
    p: float
    adjusted: float
    reach: float
    reach_of_all: float


@dataclass(frozen=True)
class _Judged:
    """The statistics of all effects of one metric: an array each; nothing where there is no error to judge them by."""

    standard_error: float | None = None
    figures: Values = field(default_factory=lambda: np.empty((5, 0)))

    def of(self, index: int) -> _One | None:
        return _One(*self.figures[:, index].tolist()) if self.standard_error is not None else None

    @property
    def margins(self) -> tuple[float | None, float | None]:
        """The furthest that an effect of nothing may lie from 0: alone, and the largest of all."""
        if self.standard_error is None:
            return None, None
        return float(self.figures[3].max()), float(self.figures[4].max())


def _judged(model: Model, logs: Values, *, error: ErrorSource, df: float | None, confidence: float) -> _Judged:
    if error == "none" or df is None:
        return _Judged()
    errors = model.errors(logs, error)
    if _of_rounding(errors, logs):
        return _Judged()
    t = model.effects(logs) / errors
    count, errors = len(t), np.broadcast_to(errors, t.shape)
    if error == "Lenth":
        one, every = maxima.lenth_reach(confidence, count=count)
    else:
        one, every = (
            maxima.t_quantile(confidence, df=df),
            maxima.modulus_quantile(confidence, count=count, df=df),
        )
    p, adjusted = p_values(t, error=error, df=df)
    adjusted = exchanged(model, logs, error=error, adjusted=adjusted, alpha=1 - confidence)
    return _Judged(float(errors.max()), np.stack([t, p, adjusted, one * errors, every * errors]))


def _of_rounding(errors: Values, logs: Values) -> bool:
    """Whether errors of effects are no larger than rounding makes them."""
    return float(errors.max()) <= t_tests.rounding(logs)


def p_values(t: Values, *, error: ErrorSource, df: float) -> tuple[Values, Values]:
    """Each option's alone, and adjusted for all of them before trials are exchanged; of statistics of shape (k,)."""
    if error == "Lenth":
        alone, adjusted = np.array([maxima.lenth_p(float(each), count=len(t)) for each in t]).T
        return alone, adjusted
    return 2 * special.stdtr(df, -np.abs(t)), maxima.step_down(t, df=df)


def exchanged(model: Model, logs: Values, *, error: ErrorSource, adjusted: Values, alpha: float) -> Values:
    """Adjusted p values, held against exchanged trials where one would let an option stand out.

    Rows run in random order, so under no effect at all the values of a replicate could stand in any rows: the chance
    that the largest statistic of `model.exchanges` such orders is as large. It holds whatever the noise; normal
    quantiles do not, where trials are slow now and then.
    """
    if (adjusted >= alpha).all():
        return adjusted
    orders = _orders(tuple(model.replicates.tolist()), model.exchanges)
    largest = np.sort(np.abs(model.statistics(logs[orders], error)).max(axis=0))
    t = np.abs(model.statistics(logs, error)) * (1 - _ALIKE)
    by_exchange = (1 + model.exchanges - np.searchsorted(largest, t)) / (1 + model.exchanges)
    return np.asarray(np.where(adjusted < alpha, np.maximum(adjusted, by_exchange), adjusted))


@lru_cache(maxsize=4)
def _orders(of: tuple[int, ...], exchanges: int) -> Whole:
    """Indices of trials, exchanged within their replicate: shape (trials, exchanges)."""
    replicates = np.array(of)
    uniform = np.random.Generator(np.random.PCG64(_SEED)).random((len(replicates), exchanges))
    mixed = np.argsort(uniform + replicates[:, None], axis=0)  # numbers of one replicate stay together
    back = np.argsort(replicates, kind="stable")
    places = np.empty_like(mixed)
    places[back] = mixed
    return places


def _effects(
    model: Model, logs: Values, judged: _Judged, *, compared: Sequence[tuple[str, str, str]], alpha: float
) -> list[MainEffect]:
    """Strongest first. `compared`: of every option, its name and what is low and high."""
    effects = [
        _effect(each, effect=effect, judged=judged.of(index), alpha=alpha)
        for index, (each, effect) in enumerate(zip(compared, model.effects(logs).tolist(), strict=True))
    ]
    return sorted(effects, key=lambda each: -abs(each.effect))


def bends(codes: Values, *, rows: Whole, replicates: Whole) -> Model:
    """Least squares of what the middle of three levels has over the mean of its ends, beside all main effects."""
    middles = 1 - HIGH_OVER_LOW * codes**2  # 1 in the middle, -1 at both ends
    return Model(middles, rows=rows, replicates=replicates, beside=codes)


def _curvature(of: Screening, bent: Model, logs: Values, *, confidence: float) -> list[MainEffect]:
    """Of every option: judged by replicates alone, as Lenth's quantiles are of independent effects.

    Args:
        of: the matrix.
        bent: of `bends`.
        logs: of every trial.
        confidence: of the intervals.
    """
    if not bent.estimable:
        return []
    error: ErrorSource = "replicates" if bent.pure_df > 0 else "none"
    judged = _judged(bent, logs, error=error, df=bent.pure_df, confidence=confidence)
    compared = [(option, f"{levels[0]}, {levels[-1]}", levels[1]) for option, levels in of.options.items()]
    return _effects(bent, logs, judged, compared=compared, alpha=1 - confidence)


def _effect(compared: tuple[str, str, str], *, effect: float, judged: _One | None, alpha: float) -> MainEffect:
    option, low, high = compared

    def interval(reach: float) -> tuple[float, float]:
        return math.exp(effect - reach), math.exp(effect + reach)

    return MainEffect(
        option=option,
        low=low,
        high=high,
        effect=effect,
        ratio=math.exp(effect),
        interval=None if judged is None else interval(judged.reach),
        simultaneous=None if judged is None else interval(judged.reach_of_all),
        t=None if judged is None else judged.t,
        p=None if judged is None else judged.p,
        p_adjusted=None if judged is None else judged.adjusted,
        stands_out=judged is not None and judged.adjusted < alpha,
    )


def _with_suspects(of: Screening, effect: MainEffect, *, stronger: Sequence[MainEffect]) -> MainEffect:
    """The interactions of two stronger options that an effect may be instead."""
    names = {each.option for each in stronger}
    whole = of.aliases[effect.option].whole if effect.option in of.aliases else []
    suspects = tuple(each for each in whole if set(each.removeprefix("-").split(" × ")) <= names)
    return effect.model_copy(update={"mixed_with": suspects}) if suspects else effect


def _lack_of_fit(model: Model, logs: Values) -> float | None:
    """F test of what rows have beyond main effects against what they differ from themselves."""
    extra = model.df - model.pure_df
    if model.pure_df <= 0 or extra <= 0 or _of_rounding(model.errors(logs, "replicates"), logs):
        return None
    pure = float(model.residual(logs, pure=True))
    more = max(0.0, float(model.residual(logs)) - pure)  # rounding may leave less than nothing
    f = more / extra / (pure / model.pure_df)
    return float(special.fdtrc(extra, model.pure_df, f))


def _columns(of: Screening, codes: Values, model: Model, *, rows: Whole, logs: Values) -> tuple[MixedInteractions, ...]:
    """Columns that only interactions of two options have, where no main effect is mixed with any.

    Each is fitted beside the options and replicates: where a row is missing, it is not orthogonal to them.
    """
    names, pairs = list(of.options), list(combinations(range(codes.shape[1]), 2))
    if of.design != "fractional" or of.resolution == 3:  # noqa: PLR2004 - else main effects are in them
        return ()
    groups: dict[tuple[int, ...], list[str]] = {}
    for first, second in pairs:
        column = (codes[:, first] * codes[:, second]).astype(int)
        sign = 1 if column[0] > 0 else -1
        groups.setdefault(tuple((sign * column).tolist()), []).append(
            f"{'' if sign > 0 else '-'}{names[first]} × {names[second]}"
        )
    found = []
    for key, interactions in groups.items():
        column = model.left(np.array(key, dtype=float)[rows])
        own = float(column @ column)
        if own <= _ALIKE * len(logs):
            continue  # too few rows are left
        effect = HIGH_OVER_LOW * float(column @ logs) / own
        found.append(MixedInteractions(interactions=tuple(interactions), effect=effect, ratio=math.exp(effect)))
    return tuple(sorted(found, key=lambda each: -abs(each.effect)))[:COLUMNS_SHOWN]
