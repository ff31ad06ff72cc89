"""Blocks over several hosts: claims and intervals for these hosts and for hosts like these, and what a further one has.

The effects of hosts are normal, and every host has noise of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from calibrated_paths import ALPHA, CONFIDENCE, Setup
from calibrated_stopping import DEFAULT, RUNS_SHARE, rules
from scipy import special
from simulated_noise import Shape, blocks

from fairtrial.analyse.hosts.comparing import FEWEST_AHEAD, FEWEST_HOSTS
from fairtrial.analyse.inference import confirming, t_tests
from fairtrial.analyse.inference.hosts import HostMeans
from fairtrial.analyse.sequential import simulate
from fairtrial.analyse.sequential.rule import LookTest, Rule, reach
from fairtrial.analyse.sequential.simulating import HIGHER, LOWER, UNDECIDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from calibrated_paths import Rate
    from numpy.typing import NDArray
    from simulated_noise import Values

    from fairtrial.analyse.sequential import SimulatedOutcomes

TAUS: Final = {"equal hosts": 0.0, "tau 0.5 %": 0.005, "tau 2 %": 0.02}  # noise is 1.4 % per block
BLOCKS: Final = (10, 20)  # of all hosts together
EFFECT: Final = math.log(1.03)  # on average, for power
LOUD: Final = 3.0  # times the noise of the others


@dataclass(frozen=True)
class Kind:
    """So many hosts: how their blocks are shared out, and their noise.

    Attributes:
        weights: of each host in the blocks.
        loudness: of each host's noise.
    """

    name: str
    weights: tuple[int, ...]
    loudness: tuple[float, ...]

    def at(self, blocks_: int) -> NDArray[np.int64]:
        """The host of each block, in the order of rounds: that which is furthest behind its weight."""
        order: list[int] = []
        for _ in range(blocks_):
            behind = [(order.count(host) + 1) / weight for host, weight in enumerate(self.weights)]
            order.append(behind.index(min(behind)))
        return np.array(order)


def alike(hosts: int) -> Kind:
    return Kind(f"{hosts} hosts", (1,) * hosts, (1.0,) * hosts)


KINDS_OF_HOSTS: Final = (
    alike(2),
    alike(5),
    alike(10),
    Kind("5 hosts, one with 8 of 20 blocks, two with 2", (4, 2, 2, 1, 1), (1.0,) * 5),
    Kind("5 hosts, one three times as noisy", (1,) * 5, (1.0,) * 4 + (LOUD,)),
)


@dataclass(frozen=True)
class Farm:
    """Log ratios of a run's blocks, in the order of rounds, and the effects of their hosts.

    What changes with time changes as fast on each host as in a run of as many blocks on one.

    Attributes:
        ratios: shape (runs, blocks).
        at: the host of each block, shape (blocks,).
        effects: of each host, shape (runs, hosts).
        further: the true effect of one more host, shape (runs,).
        measured: what each of that host's blocks shows, shape (runs, blocks).
    """

    ratios: Values
    at: NDArray[np.int64]
    effects: Values
    further: Values
    measured: Values

    @classmethod
    def of(cls, setup: Setup, kind: Kind, tau: float) -> Farm:
        hosts, at = len(kind.weights), kind.at(setup.n)
        noise = blocks(setup.random, setup.noise, Shape(setup.runs, cells=hosts + 1, arms=2, n=setup.n))
        apart = (noise[:, :, 1] - noise[:, :, 0]) * np.array([*kind.loudness, 1.0])[:, None]
        effects = setup.random.normal(0, tau, (setup.runs, hosts + 1))
        own = np.array([int((at[:number] == host).sum()) for number, host in enumerate(at.tolist())])
        ratios = (apart + effects[:, :, None])[:, at, own]
        return cls(ratios, at, effects[:, :-1], effects[:, -1], apart[:, -1] + effects[:, -1:])

    def hosts(self, n: int) -> NDArray[np.int64]:
        """Those of the first n blocks."""
        return np.unique(self.at[:n])

    def means(self, n: int, runs: NDArray[np.bool_] | slice = slice(None)) -> HostMeans:
        """Of the hosts of the first n blocks, of some runs."""
        ratios = self.ratios[runs, :n]
        so_far = [ratios[:, self.at[:n] == host] for host in self.hosts(n).tolist()]
        df = n - len(so_far)
        within = sum(np.square(each - each.mean(axis=1, keepdims=True)).sum(axis=1) for each in so_far)
        spread = within / df if df else np.zeros(len(ratios))
        return HostMeans(
            means=np.stack([each.mean(axis=1) for each in so_far], axis=1),
            variances=spread[:, None] / self.counts(n),
            df=float(df),
        )

    def counts(self, n: int) -> NDArray[np.int64]:
        """How many of the first n blocks each of their hosts has."""
        return np.unique(self.at[:n], return_counts=True)[1]

    def foretells(self, n: int) -> bool:
        """Whether the first n blocks are enough to say what a further host has."""
        return bool(np.median(self.counts(n)) >= FEWEST_AHEAD)

    def ahead(self, n: int, runs: NDArray[np.bool_] | slice, *, confidence: float) -> tuple[Values, Values, Values]:
        """Of some runs: the mean of hosts like these, how far a further host's interval reaches, what it measures."""
        means, counts = self.means(n, runs), self.counts(n)
        each = math.floor(np.median(counts))
        reached = means.prediction_reach(confidence, noise=means.variances[:, 0] * counts[0] / each)
        return means.mean, reached, self.measured[runs, :each].mean(axis=1)

    def true(self, n: NDArray[np.int64]) -> Values:
        """The mean effect of the hosts of each run's first blocks."""
        so_far = np.cumsum(self.effects[:, self.at], axis=1)
        return np.asarray(so_far[np.arange(len(n)), n - 1] / n)


def over_hosts(setup: Setup) -> Iterator[Rate]:
    """All blocks of a fixed design."""
    if setup.n not in BLOCKS:
        return
    for kind in KINDS_OF_HOSTS:
        for name, tau in TAUS.items():
            farm = Farm.of(setup, kind, tau)
            path = f"{kind.name}, {name}"
            yield from _these(setup, farm, path)
            yield from _like_these(setup, farm, path)


def _these(setup: Setup, farm: Farm, path: str) -> Iterator[Rate]:
    """About the mean effect of these hosts, weighted by their blocks."""
    true = farm.true(np.full(setup.runs, setup.n))
    low, high = t_tests.paired_many(np.zeros_like(farm.ratios), farm.ratios).interval(confidence=CONFIDENCE)
    yield setup.rate(f"{path}: these", "covers", (low <= true) & (high >= true))
    equal = farm.ratios - true[:, None]
    found = setup.p(np.zeros_like(equal), equal) < ALPHA
    yield setup.rate(f"{path}: these", "false", found & setup.may_claim(paired=True))


def _like_these(setup: Setup, farm: Farm, path: str) -> Iterator[Rate]:
    means = farm.means(setup.n)
    yield setup.rate(f"{path}: like these", "covers", np.abs(means.mean) <= means.reach(CONFIDENCE))
    if farm.foretells(setup.n):
        yield from _further(setup, farm, path)
    if means.hosts >= FEWEST_HOSTS:
        for figure, by in (("false", 0.0), ("power", EFFECT)):
            moved = HostMeans(means.means + by, means.variances, means.df)
            p = confirming.paired(_nominal(moved), moved.means, level=ALPHA, alpha=ALPHA)
            p = np.maximum(p, setup.p(np.zeros_like(farm.ratios), farm.ratios + by))
            yield setup.rate(f"{path}: like these", figure, (p < ALPHA) & setup.may_claim(paired=True))


def _further(setup: Setup, farm: Farm, path: str) -> Iterator[Rate]:
    mean, reached, measured = farm.ahead(setup.n, slice(None), confidence=CONFIDENCE)
    yield setup.rate(f"{path}: further, measured", "covers", np.abs(measured - mean) <= reached)
    yield setup.rate(f"{path}: further, true", "covers", np.abs(farm.further - mean) <= reached)
    within = np.abs(farm.further - mean) <= farm.means(setup.n).prediction_reach(CONFIDENCE, noise=0.0)
    yield setup.rate(f"{path}: further, true, without noise", "covers", within, default=False)


def _nominal(means: HostMeans) -> Values:
    return np.asarray(2 * special.stdtr(means.hosts - 1, -np.abs(means.mean / means.error)))


def stopped(setup: Setup) -> Iterator[Rate]:
    """A run of one cell that the default rule stops by its verdict for these hosts; fewer runs, as they look often."""
    if setup.n not in BLOCKS:
        return
    setup = replace(setup, runs=max(1, setup.runs // RUNS_SHARE))
    rule = next(each.rule for each in rules(1, setup.n) if each.name == DEFAULT)
    for kind in KINDS_OF_HOSTS:
        for name, tau in TAUS.items():
            farm = Farm.of(setup, kind, tau)
            found = simulate(farm.ratios[:, None], rule)
            path, n = f"{DEFAULT}, {kind.name}, {name}", found.blocks[:, 0]
            true = farm.true(n)
            yield setup.rate(f"{path}: these", "covers", (found.low[:, 0] <= true) & (found.high[:, 0] >= true))
            if tau == 0:
                yield setup.rate(f"{path}: these", "false", np.isin(found.verdict[:, 0], (HIGHER, LOWER)))
            yield from _like_these_stopped(setup, farm, rule, found=found, path=path)


def _like_these_stopped(setup: Setup, farm: Farm, rule: Rule, *, found: SimulatedOutcomes, path: str) -> Iterator[Rate]:
    n = found.blocks[:, 0]
    covers, within, claims = (np.full(len(n), fill) for fill in (True, True, False))
    for count in np.unique(n).tolist():
        runs = n == count
        means = farm.means(count, runs)
        away = reach(count, level=ALPHA, rule=rule)
        confidence = 1 - 2 * float(special.stdtr(count - 1, -away))
        covers[runs] = np.abs(means.mean) <= means.reach(confidence)
        if farm.foretells(count):
            mean, reached, measured = farm.ahead(count, runs, confidence=confidence)
            within[runs] = np.abs(measured - mean) <= reached
        if means.hosts >= FEWEST_HOSTS:
            looks = LookTest(rule, sides=2, level=ALPHA, units=means.hosts)
            claims[runs] = looks.p_after(_nominal(means), confirming.signed_ranks(means.means), count) < ALPHA
    yield setup.rate(f"{path}: like these", "covers", covers)
    yield setup.rate(f"{path}: further, measured", "covers", within)
    if len(farm.hosts(setup.n)) >= FEWEST_HOSTS:
        yield setup.rate(f"{path}: like these", "false", claims & (found.verdict[:, 0] != UNDECIDED))


PATHS: Mapping[str, Callable[[Setup], Iterator[Rate]]] = {"hosts": over_hosts, "hosts-stopped": stopped}
