"""How often tuning claims a gain that is not there, how much its best flatters itself, and what it finds.

Response surfaces of known height under noise of 1 to 5 %, searched by fairtrial's own stages: a block for each
proposal, fresh blocks for the best, a confirmation with planned blocks. Beside it what is usually done: the best single
trial wins. The search is Optuna's, or a random one that stands in for it where thousands of replications are wanted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import optuna
from calibrated_paths import ALPHA, Setup

from fairtrial.analyse.inference import confirming, t_tests
from fairtrial.study.tuning import TunedOption, Tuning
from fairtrial.tune import planning
from fairtrial.tune.proposing import Proposer, require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from calibrated_paths import Rate
    from simulated_noise import Values

    from fairtrial.tune.events import Stages

    Ask = Callable[[Sequence[Values], Sequence[float]], Values]

OPTIONS: Final = 5
TUNING: Final = Tuning.model_validate({"options": {"o": {"of": "system.x.o", "from": 0.0, "to": 1.0}}})
MARGIN: Final = 0.01
BLOCK_SHARE: Final = 1.0  # deviation of a block's own level, beside the trial's; it cancels in ratios
GAIN: Final = math.log(1.2)  # of the best point of a surface over the default
NOISE: Final = {"1 %": 0.01, "2 %": 0.02, "5 %": 0.05}


@dataclass(frozen=True)
class Surface:
    """Log gain over the default at points of the unit cube; `peaks`: where options are best, `sizes`: their shares."""

    peaks: Values
    sizes: Values
    default: Values

    @classmethod
    def drawn(cls, random: np.random.Generator, *, gain: float) -> Surface:
        """Two of five options matter a lot, one a little, two not at all, as screenings of servers find it."""
        shares = np.array([0.55, 0.3, 0.15, 0.0, 0.0])[random.permutation(OPTIONS)]
        peaks = random.uniform(0.1, 0.9, OPTIONS)
        default = (peaks + random.uniform(0.35, 0.65, OPTIONS)) % 1.0
        raw = cls(peaks, shares, default)
        height = raw._height(peaks) - raw._height(default)
        return cls(peaks, shares * (gain / height if height > 0 else 0.0), default)

    def _height(self, points: Values) -> Values:
        away = np.abs(points - self.peaks)
        return np.asarray((self.sizes * np.exp(-((away / 0.25) ** 2))).sum(axis=-1))

    def gain(self, points: Values) -> Values:
        return self._height(points) - self._height(self.default)


@dataclass(frozen=True)
class Outcome:
    """What one tuning came to; gains are log ratios to the default, `true` ones those of the surface.

    `true`, `confirmed` and `blocks` are 0 where nothing was worth confirming.
    """

    claimed: bool
    promised: float
    true: float = 0.0
    confirmed: float = 0.0
    covered: bool = True
    blocks: int = 0

    @property
    def delivered(self) -> float:
        """What a user who believes claims alone gets."""
        return self.true if self.claimed else 0.0


@dataclass(frozen=True)
class Machine:
    """Measures points of a surface: every trial has noise of its own, and its block's."""

    surface: Surface
    noise: float
    random: np.random.Generator

    def blocks(self, points: Values, blocks: int) -> Values:
        """Log ratios to the default, blocks × points: the points of a block share its default."""
        own = self.random.normal(0, self.noise, (blocks, len(points) + 1))
        return np.asarray(self.surface.gain(points) + own[:, 1:] - own[:, :1])

    def pair(self, point: Values) -> float:
        """Log ratio to the default in a block of their own."""
        return float(self.blocks(point[None], 1)[0, 0])

    def alone(self, point: Values) -> float:
        """Log of a single trial: what its block adds to the default's trial of another block does not cancel."""
        noise = math.hypot(self.noise, BLOCK_SHARE * self.noise)
        return float(self.surface.gain(point)) + float(self.random.normal(0, noise))


def at_random(random: np.random.Generator, _proposals: int) -> Ask:
    return lambda _points, _gains: random.uniform(0, 1, OPTIONS)


def by_optuna(random: np.random.Generator, proposals: int) -> Ask:
    """The search's own samplers on a study that is told step by step: the same at a fraction of the time."""
    require()
    options = {
        f"o{i}": TunedOption.model_validate({"of": f"system.x.o{i}", "from": 0.0, "to": 1.0}) for i in range(OPTIONS)
    }
    proposer = Proposer(options=options, default={}, seed=int(random.integers(2**32)), proposals=proposals)
    study = optuna.create_study(direction="maximize")
    asked: list[optuna.Trial] = []

    def ask(points: Sequence[Values], gains: Sequence[float]) -> Values:
        if gains:
            study.tell(asked[-1], gains[-1])
        study.sampler = proposer.sampler(len(points))
        asked.append(study.ask(proposer.distributions))
        return np.array([asked[-1].params[name] for name in options])

    return ask


SEARCHES: Final = {"random": at_random, "optuna": by_optuna}


def tuned(machine: Machine, ask: Ask, *, stages: Stages, tuning: Tuning) -> Outcome:
    """One tuning, as `fairtrial tune` goes about it."""
    points: list[Values] = []
    gains: list[float] = []
    for _ in range(stages.proposals):
        points.append(ask(points, gains))
        gains.append(machine.pair(points[-1]))
    order = [int(i) for i in np.argsort(gains)[::-1][: stages.best]]
    fresh = machine.blocks(np.array([points[i] for i in order]), stages.blocks)
    by_point = {i: list(fresh[:, column]) for column, i in enumerate(order)}
    planned = planning.confirmation(by_point, (), tuning=tuning, claim=planning.Claim(MARGIN, ALPHA))
    if planned.number is None:
        return Outcome(claimed=False, promised=max(gains))
    best = points[planned.number]
    ratios = machine.blocks(best[None], planned.blocks)[:, 0]
    test = t_tests.mean(ratios, confidence=1 - ALPHA)
    assert test is not None
    p = float(confirming.paired(np.array([test.p]), ratios[None], level=ALPHA, alpha=ALPHA)[0])
    true = float(machine.surface.gain(best))
    return Outcome(
        claimed=p < ALPHA and test.estimate > 0,
        promised=max(gains),
        true=true,
        confirmed=test.estimate,
        covered=test.low <= true <= test.high,
        blocks=planned.blocks,
    )


def best_trial(machine: Machine, ask: Ask, *, trials: int) -> Outcome:
    """What is usually done with as many trials: one of the default, the others proposals, and the best trial wins."""
    default = machine.alone(machine.surface.default)
    points: list[Values] = []
    gains: list[float] = []
    for _ in range(trials - 1):
        points.append(ask(points, gains))
        gains.append(machine.alone(points[-1]) - default)
    best = int(np.argmax(gains))
    return Outcome(claimed=gains[best] > 0, promised=gains[best], true=float(machine.surface.gain(points[best])))


def tunings(setup: Setup, *, search: str) -> Iterator[Rate]:
    """Options that do nothing, and options with a gain; `n` is the budget of trials, and the column a trial's noise."""
    random, stages = setup.random, planning.stages(TUNING, budget=setup.n)
    for gain in (0.0, GAIN):
        ours, naive = [], []
        for _ in range(setup.runs):
            machine = Machine(Surface.drawn(random, gain=gain), NOISE[setup.noise], random)
            ours.append(tuned(machine, SEARCHES[search](random, stages.proposals), stages=stages, tuning=TUNING))
            naive.append(best_trial(machine, SEARCHES[search](random, setup.n), trials=setup.n))
        path = f"{search}, {'a gain of 20 %' if gain else 'inert options'}"
        yield from _rates(setup, path, (ours, naive), gain=gain)


def _rates(setup: Setup, path: str, outcomes: tuple[list[Outcome], list[Outcome]], *, gain: float) -> Iterator[Rate]:
    ours, naive = outcomes
    of, confirmed = np.array, [each for each in ours if each.blocks]
    yield setup.rate(path, "power" if gain else "false", of([each.claimed for each in ours]))
    yield setup.rate(path, "covers", of([each.covered for each in confirmed]))
    yield setup.number(path, "promised", np.expm1([each.promised for each in ours]))
    yield setup.number(path, "confirmed", np.expm1([each.confirmed for each in confirmed]))
    yield setup.number(path, "trial", np.expm1([each.promised for each in naive]))
    yield setup.number(path, "blocks", of([each.blocks for each in ours], dtype=float))
    if gain:
        yield setup.number(path, "found", of([each.delivered / gain for each in ours]))
        yield setup.number(f"{path}, the best single trial", "found", of([each.true / gain for each in naive]))


PATHS: Final = {f"tuning-{name}": partial(tunings, search=name) for name in SEARCHES}
