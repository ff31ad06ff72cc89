"""Screening of many options: what it nominates, what stands out, and what the paired study after it claims.

Trials vary by 3 % whatever the noise. Beside it stands one-at-a-time: every option alone against the baseline in blocks
of all of them, with as many trials as the screening and the study that confirms have together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from calibrated_paths import ALPHA, CONFIDENCE, Setup
from calibrated_stopping import RUNS_SHARE
from simulated_noise import DRIFT, KINDS, MODES_APART, SLOW_BY, SLOW_SHARE, SPREAD, Shape, blocks

from fairtrial.analyse.designs import maxima
from fairtrial.analyse.designs.screening import Model, bends, error_source, exchanged
from fairtrial.analyse.inference import families
from fairtrial.plan.screening import matrix
from fairtrial.record.screening import Screening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from calibrated_paths import Rate
    from numpy.typing import NDArray
    from simulated_noise import Values

    from fairtrial.analyse.designs.screening_models import ErrorSource

CONFIRMED: Final = (10, 20)  # blocks of the study that confirms
NOMINATED: Final = 3
EFFECT: Final = math.log(1.04)
VARIES: Final = 0.03
_SD: Final = {
    "normal": SPREAD,
    "occasional slow": math.sqrt(SPREAD**2 + SLOW_BY**2 * SLOW_SHARE * (1 - SLOW_SHARE)),
    "bimodal": math.sqrt((SPREAD / 3) ** 2 + (MODES_APART / 2) ** 2),
    "drift": math.sqrt(SPREAD**2 + DRIFT**2 / 12),
    "autocorrelated": SPREAD,
}
SCALE: Final = {kind: VARIES / _SD[kind] for kind in KINDS}


@dataclass(frozen=True)
class Plan:
    """A matrix of so many options, each of whose rows is run `replicates` times; `bent`: curvature is looked at."""

    name: str
    design: str
    options: int
    fold: bool = False
    replicates: int = 1
    bent: bool = False

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        return matrix(self.design, self.options, fold=self.fold)

    @cached_property
    def model(self) -> Model:
        """Of trials replicate by replicate."""
        rows = np.tile(np.arange(len(self.codes)), self.replicates)
        replicates = np.repeat(np.arange(self.replicates), len(self.codes))
        return (bends if self.bent else Model)(self.codes.astype(float), rows=rows, replicates=replicates)

    @cached_property
    def judged(self) -> tuple[ErrorSource, float]:
        """What effects are judged by, and its degrees of freedom."""
        levels = ["low", "middle", "high"] if self.design == "definitive" else ["low", "high"]
        options = {f"o{index}": levels for index in range(self.options)}
        of = Screening(design=self.design, options=options, rows={}, resolution=4, folded=self.fold)  # type: ignore[arg-type]
        source, df = error_source(of, df=self.model.df, pure_df=self.model.pure_df)
        return source, df or 0.0

    @cached_property
    def reaches(self) -> list[float]:
        """Standard errors that an effect must exceed, at each step down; by Lenth's method the same at all."""
        source, df = self.judged
        if source == "Lenth":
            return [maxima.lenth_reach(CONFIDENCE, count=self.options)[1]] * self.options
        return [maxima.modulus_quantile(CONFIDENCE, count=left, df=df) for left in range(self.options, 0, -1)]

    @cached_property
    def reach_of_one(self) -> float:
        source, df = self.judged
        if source == "Lenth":
            return maxima.lenth_reach(CONFIDENCE, count=self.options)[0]
        return maxima.t_quantile(CONFIDENCE, df=df)


PLANS: Final = (
    Plan("15 options in 32 rows", "fractional", 15),
    Plan("15 options in 16 rows", "plackett_burman", 15),
    Plan("11 options in 12 rows", "plackett_burman", 11),
    Plan("11 options in 24 rows, folded", "plackett_burman", 11, fold=True),
    Plan("6 options in 13 rows, definitive", "definitive", 6),
)


@dataclass(frozen=True)
class System:
    """What options do: the first `acting` by `EFFECT`, high over low; pairs of inert ones by as much together.

    Attributes:
        pairs: of options that interact.
    """

    name: str
    acting: int = 0
    pairs: tuple[tuple[int, int], ...] = ()

    def effects(self, model: Model) -> Values:
        """On every trial."""
        codes = model.codes
        found = codes[:, : self.acting].sum(axis=1) * EFFECT / 2
        for first, second in self.pairs:
            found = found + codes[:, first] * codes[:, second] * EFFECT / 2
        return np.asarray(found, dtype=float)

    def alone(self, options: int) -> Values:
        """What each option does by itself, the others low: an interaction shows there, too."""
        effects = np.where(np.arange(options) < self.acting, EFFECT, 0.0)
        for pair in self.pairs:
            effects[list(pair)] -= EFFECT
        return effects


NOTHING: Final = System("none acts")
SYSTEMS: Final = (
    System("1 acts", 1),
    System("3 act", 3),
    System("1 acts, 2 interactions", 1, pairs=((3, 4), (5, 6))),
)


@dataclass(frozen=True)
class Screened:
    """Simulated screenings.

    Attributes:
        logs: of every trial, shape (runs, rows × replicates).
        effects: log ratios, shape (runs, options).
        errors: of each run's effects, shape (runs, options).
    """

    plan: Plan
    logs: Values = field(repr=False)
    effects: Values
    errors: Values = field(repr=False)

    @classmethod
    def of(cls, setup: Setup, plan: Plan, system: System) -> Screened:
        shape = Shape(runs=setup.runs, cells=1, arms=len(plan.codes), n=plan.replicates)
        noise = blocks(setup.random, setup.noise, shape)[:, 0] * SCALE[setup.noise]
        trials = noise.swapaxes(1, 2).reshape(setup.runs, -1)
        logs = system.effects(plan.model) + trials
        effects = plan.model.effects(logs.T)
        return cls(plan, logs, effects.T, (effects / plan.model.statistics(logs.T, plan.judged[0])).T)

    @cached_property
    def standing(self) -> NDArray[np.bool_]:
        """Whether an option stands out, shape (runs, options): exchanges of trials only raise p."""
        sizes = np.abs(self.effects) / self.errors
        found = _step_down(sizes, self.plan.reaches)
        source = self.plan.judged[0]
        for run in np.flatnonzero(found.any(axis=1)).tolist():
            adjusted = np.where(found[run], 0.0, 1.0)
            p = exchanged(self.plan.model, self.logs[run], error=source, adjusted=adjusted, alpha=ALPHA)
            found[run] = p < ALPHA
        return found

    @property
    def nominated(self) -> NDArray[np.int64]:
        """The strongest of each run, shape (runs, `NOMINATED`)."""
        return np.argsort(-np.abs(self.effects), axis=1)[:, :NOMINATED]


def _step_down(sizes: Values, reaches: list[float]) -> NDArray[np.bool_]:
    order = np.argsort(-sizes, axis=1)
    beyond = np.take_along_axis(sizes, order, axis=1) > np.asarray(reaches)
    found = np.zeros_like(beyond)
    np.put_along_axis(found, order, np.logical_and.accumulate(beyond, axis=1), axis=1)
    return found


def _claimed(setup: Setup, effects: Values, n: int) -> NDArray[np.int64]:
    """What a paired study of n blocks claims of each arm: 1 higher, -1 lower, 0 nothing."""
    arms = effects.shape[1]
    shape = Shape(runs=setup.runs, cells=1, arms=1 + arms, n=n)
    logs = blocks(setup.random, setup.noise, shape) * SCALE[setup.noise]
    logs[:, 0, 1:] += effects[:, :, None]
    of_n = Setup(setup.noise, n, setup.runs, setup.random)
    p = of_n.p(logs[:, :, :1], logs[:, :, 1:], size=arms)
    claimed = np.zeros(p.shape, dtype=bool)
    some = np.flatnonzero((p < ALPHA).any(axis=(-1, -2)))
    if of_n.may_claim(paired=True) and len(some):
        claimed[some] = families.step_down(p[some], families.shares_of_blocks(logs[some])) < ALPHA
    apart = logs[:, 0, 1:].mean(axis=-1) - logs[:, 0, :1].mean(axis=-1)
    return np.where(claimed[:, 0], np.sign(apart), 0).astype(np.int64)


def _false(claims: NDArray[np.int64], true: Values) -> NDArray[np.bool_]:
    """Whether anything is claimed of an option that does nothing alone, or the wrong direction."""
    return ((claims != 0) & (claims != np.sign(true))).any(axis=1)


def screened(setup: Setup) -> Iterator[Rate]:
    """The screening alone, once: what it says before anything is confirmed. Power is of fewer runs.

    Lenth's method, where no column is without an option, is not required to be right under every noise: trials that
    are slow now and then mislead it, and the page says so.
    """
    if setup.n != CONFIRMED[-1]:
        return
    fewer = replace(setup, runs=max(1, setup.runs // RUNS_SHARE))
    for plan in PLANS:
        found, default = Screened.of(setup, plan, NOTHING), plan.judged[0] != "Lenth"
        path = f"{plan.name}, {NOTHING.name}"
        yield setup.rate(f"{path}: stands out", "false", found.standing.any(axis=1), default=default)
        covers = np.abs(found.effects) <= plan.reach_of_one * found.errors
        yield setup.rate(f"{path}: interval", "covers", covers[:, 0], default=default)
        for system in SYSTEMS if plan.options > max(map(max, SYSTEMS[-1].pairs)) else SYSTEMS[:1]:
            found = Screened.of(fewer, plan, system)
            path = f"{plan.name}, {system.name}"
            yield setup.rate(f"{path}: nominated", "power", (found.nominated == 0).any(axis=1))
            yield setup.rate(f"{path}: stands out", "power", found.standing[:, 0])
            # Where main effects are mixed with interactions, these stand out as main effects: no false alarm of noise.
            inert = found.standing[:, system.acting :].any(axis=1)
            yield setup.rate(f"{path}: stands out", "false", inert, default=default and not system.pairs)


def curvature(setup: Setup) -> Iterator[Rate]:
    """What the middle of three levels has over its ends, in a definitive screening of `n` replicates."""
    plan = Plan("6 options in 13 rows", "definitive", 6, replicates=setup.n, bent=True)
    for system in (NOTHING, System("1 bent", 1)):
        found, path = Screened.of(setup, plan, system), f"{plan.name}, {system.name}"
        yield setup.rate(f"{path}: stands out", "false", found.standing[:, system.acting :].any(axis=1))
        true = EFFECT if system.acting else 0.0
        covers = np.abs(found.effects[:, 0] - true) <= plan.reach_of_one * found.errors[:, 0]
        yield setup.rate(f"{path}: interval", "covers", covers)
        if system.acting:
            yield setup.rate(f"{path}: stands out", "power", found.standing[:, 0])


def confirmed(setup: Setup) -> Iterator[Rate]:
    """The screening and the paired study of what it nominates, whose claims are the only ones."""
    if setup.n not in CONFIRMED:
        return
    for plan in PLANS[:2]:
        for system in (NOTHING, *SYSTEMS):
            nominated = Screened.of(setup, plan, system).nominated
            true = system.alone(plan.options)[nominated]
            claims = _claimed(setup, true, setup.n)
            path = f"{plan.name}, {system.name}: confirmed"
            yield setup.rate(path, "false", _false(claims, true))
            if system.acting:
                yield setup.rate(path, "power", ((nominated == 0) & (claims == 1)).any(axis=1))


def one_at_a_time(setup: Setup) -> Iterator[Rate]:
    """As many trials as screening and confirmation have together, in whole blocks of all options and the baseline."""
    if setup.n not in CONFIRMED:
        return
    plan = PLANS[0]
    trials = len(plan.codes) + (1 + NOMINATED) * setup.n
    n = trials // (1 + plan.options)
    for system in (NOTHING, SYSTEMS[0]):
        true = np.broadcast_to(system.alone(plan.options), (setup.runs, plan.options))
        claims = _claimed(setup, true, n)
        path = f"{plan.options} options one at a time, {n} blocks, {system.name}"
        yield setup.rate(path, "false", _false(claims, true), default=False)
        if system.acting:
            yield setup.rate(path, "power", claims[:, 0] == 1, default=False)


PATHS: Mapping[str, Callable[[Setup], Iterator[Rate]]] = {
    "screened": screened,
    "curvature": curvature,
    "confirmed": confirmed,
    "one-at-a-time": one_at_a_time,
}
