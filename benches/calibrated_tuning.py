"""How often tuning claims a gain that is not there, how much its best flatters itself, and what it finds: `--help`.

Response surfaces of known height under noise of 1 to 5 %, searched by fairtrial's own stages: a block for each
proposal, fresh blocks for the best, a confirmation with planned blocks. Beside it what is usually done: the best single
trial wins. The search is Optuna's, or a random one that stands in for it where thousands of replications are wanted.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import optuna
from numpy.typing import NDArray
from scipy import stats

from fairtrial.analyse.inference import confirming, t_tests
from fairtrial.study.tuning import TunedOption, Tuning
from fairtrial.tune import planning
from fairtrial.tune.events import Stages
from fairtrial.tune.proposing import Proposer, require

Values = NDArray[np.float64]
OPTIONS: Final = 5
ALPHA: Final = 0.05
MARGIN: Final = 0.01
BLOCK_SHARE: Final = 1.0  # deviation of a block's own level, beside the trial's; it cancels in ratios
GAIN: Final = math.log(1.2)  # of the best point of a surface over the default
BUDGETS: Final = (20, 50, 100)
NOISES: Final = (0.01, 0.02, 0.05)


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


Ask = Callable[[Sequence[Values], Sequence[float]], Values]


def at_random(random: np.random.Generator, _proposals: int) -> Ask:
    return lambda _points, _gains: random.uniform(0, 1, OPTIONS)


def by_optuna(random: np.random.Generator, proposals: int) -> Ask:
    """The search's own samplers on a study that is told step by step: the same at a fraction of the time."""
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
    planned = planning.confirmation(by_point, (), tuning=tuning, margin=MARGIN, alpha=ALPHA)
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


@dataclass(frozen=True)
class Setting:
    """What is simulated in one row; `again`: how many are measured again in how many blocks, if not as by default."""

    search: str
    noise: float
    budget: int
    inert: bool
    again: tuple[int, ...] = field(default=(), repr=False)  # the same random numbers whatever it is


@dataclass(frozen=True)
class Row:
    """Replications of one setting."""

    setting: Setting
    ours: list[Outcome]
    naive: list[Outcome]


def simulate(setting: Setting, *, runs: int, seed: int) -> Row:
    """The replications' random numbers depend on nothing else that is simulated."""
    random = np.random.default_rng([seed, zlib.crc32(str(setting).encode())])
    budget, search = setting.budget, SEARCHES[setting.search]
    again = dict(zip(("best", "blocks"), setting.again, strict=False))
    tuning = Tuning.model_validate({"options": {"o": {"of": "system.x.o", "from": 0.0, "to": 1.0}}, "again": again})
    stages = planning.stages(tuning, budget=budget)
    ours, naive = [], []
    for _ in range(runs):
        machine = Machine(Surface.drawn(random, gain=0.0 if setting.inert else GAIN), setting.noise, random)
        ours.append(tuned(machine, search(random, stages.proposals), stages=stages, tuning=tuning))
        naive.append(best_trial(machine, search(random, budget), trials=budget))
    return Row(setting, ours, naive)


def share(events: Iterable[bool]) -> str:
    """In percent, with the exact 95 % Monte-Carlo bounds (Clopper and Pearson 1934)."""
    every = list(events)
    runs, count = len(every), sum(every)
    if not runs:
        return "–"
    low = float(stats.beta.ppf(0.025, count, runs - count + 1)) if count else 0.0
    high = float(stats.beta.ppf(0.975, count + 1, runs - count)) if count < runs else 1.0
    return f"{count / runs * 100:.1f} ({low * 100:.1f}–{high * 100:.1f})"


def percent(gains: Iterable[float]) -> str:
    """The mean of log ratios, as a change in percent."""
    every = list(gains)
    return f"{math.expm1(float(np.mean(every))) * 100:+.1f}" if every else "–"


def cells(row: Row) -> list[str]:
    """One line of a table."""
    confirmed = [each for each in row.ours if each.blocks]
    found = [each.delivered / GAIN for each in row.ours]
    naive = [each.true / GAIN for each in row.naive]
    of = row.setting
    line = [of.search, f"{of.noise * 100:.0f} %", str(of.budget), str(len(row.ours))]
    line += [share(each.claimed for each in row.ours), share(each.covered for each in confirmed)]
    line += [percent(each.promised for each in row.ours), percent(each.confirmed for each in confirmed)]
    line += [percent(each.promised for each in row.naive), percent(each.true for each in row.naive)]
    line += [f"{np.mean([each.blocks for each in row.ours]):.1f}"]
    if not of.inert:
        line += [f"{np.mean(found) * 100:.0f}", f"{np.mean(naive) * 100:.0f}"]
    return line


HEAD: Final = (
    "search", "noise", "budget", "runs", "claims, %", "covers, %", "promised, %", "confirmed, %",
    "best trial promised, %", "best trial is, %", "blocks confirming",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000, help="replications of a row with the random search")
    parser.add_argument("--optuna-runs", type=int, default=300, help="replications of a row with Optuna")
    parser.add_argument("--noise", type=float, nargs="*", default=NOISES)
    parser.add_argument("--budget", type=int, nargs="*", default=BUDGETS)
    parser.add_argument("--again", type=int, nargs=2, default=(), metavar=("BEST", "BLOCKS"))
    parser.add_argument("--inert", type=int, nargs="*", default=(1, 0), help="1: options do nothing; 0: they do")
    parser.add_argument("--seed", type=int, default=20261126)
    given = parser.parse_args()
    require()
    for inert in given.inert:
        head = [*HEAD, *([] if inert else ["gain found, %", "by the best trial, %"])]
        print(f"\n### {'Inert options' if inert else 'A gain of 20 % to be found'}\n")
        print(f"| {' | '.join(head)} |\n|{'--:|' * len(head)}")
        for search, runs in (("random", given.runs), ("optuna", given.optuna_runs)):
            for noise in given.noise:
                for budget in given.budget if runs else ():
                    row = simulate(
                        Setting(search, noise, budget, inert=bool(inert), again=tuple(given.again)),
                        runs=runs,
                        seed=given.seed,
                    )
                    print(f"| {' | '.join(cells(row))} |", flush=True)


if __name__ == "__main__":
    main()
