"""Noise that only one arm has: claims of the typical trial and of the mean, counted over simulated runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from calibrated_paths import ALPHA, BOUND, CELLS, CONFIDENCE, Setup
from calibrated_stopping import DEFAULT, LARGEST, rules
from calibrated_stopping import EFFECT as STOPPING_EFFECT
from simulated_noise import OWN, OWN_MEANS, SPREAD, own_differences, typical

from fairtrial.analyse.inference import families, ranks, spreads, t_tests
from fairtrial.analyse.sequential import simulate
from fairtrial.analyse.sequential.simulating import EQUIVALENT, HIGHER, LOWER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from calibrated_paths import Rate
    from numpy.typing import NDArray
    from simulated_noise import Values

    from fairtrial.analyse.sequential import SimulatedOutcomes

RUNS_SHARE = 6  # of rules that stop early, one of so many runs
TYPICAL, MEAN = "typical trials alike", "means alike"


@dataclass(frozen=True)
class Found:
    """Of many families: what differs, what is equivalent, and whether each claim is of the mean; (runs, cells)."""

    differs: NDArray[np.bool_]
    equal: NDArray[np.bool_]
    differing_mean: NDArray[np.bool_]
    equal_mean: NDArray[np.bool_]


def over_blocks(setup: Setup) -> Iterator[Rate]:
    """A fixed number of blocks, in one cell and in a family of six."""
    for cells in (1, CELLS):
        differences = own_differences(setup.random, setup.noise, (setup.runs, cells, setup.n))
        name = "paired t, blocks" if cells == 1 else f"{CELLS} cells, Holm"
        middle, mean = typical(setup.noise, paired=True), OWN_MEANS[setup.noise]
        yield from _rates(setup, name, (_paired(setup, differences - middle), _paired(setup, differences - mean)))
        yield from _at_the_margin(setup, name, [_paired(setup, differences - by + BOUND) for by in (middle, mean)])
        if cells == 1:
            yield from _coverage(setup, differences[:, 0] - mean, shift=middle - mean)


def _paired(setup: Setup, differences: Values) -> Found:
    cells = differences.shape[1]
    zero, may = np.zeros_like(differences), setup.may_claim(paired=True)
    p = families.step_down(setup.p(zero, differences, size=cells)[..., None], np.zeros((*differences.shape[:2], 1)))
    same = families.step_down(setup.inside(zero, differences, size=cells)[..., None], np.zeros_like(p))
    equal = (same[..., 0] < ALPHA) & may
    differs = (p[..., 0] < ALPHA) & may & ~equal
    low, high = _mean_interval(t_tests.paired_many(zero, differences), n=setup.n, level=ALPHA / cells)
    return Found(
        differs=differs,
        equal=equal,
        differing_mean=differs & ((low > 0) | (high < 0)),
        equal_mean=equal & (low > -BOUND) & (high < BOUND),
    )


def _mean_interval(tests: t_tests.TTests, *, n: int, level: float) -> tuple[Values, Values]:
    low, high = tests.interval(confidence=1 - level)
    unseen = spreads.unseen(np.asarray(n), level=level)
    return low - unseen, high + unseen


def _rates(setup: Setup, name: str, found: tuple[Found, Found]) -> Iterator[Rate]:
    """Of typical trials that are alike, and of means that are."""
    alike, of_mean = found
    yield setup.rate(f"{name}, {TYPICAL}", "false", alike.differs.any(axis=1))
    yield setup.rate(f"{name}, {MEAN}: claimed of the mean", "false", of_mean.differing_mean.any(axis=1))
    yield setup.rate(f"{name}, {MEAN}: claimed of either", "false", of_mean.differs.any(axis=1), default=False)


def _at_the_margin(setup: Setup, name: str, found: list[Found]) -> Iterator[Rate]:
    """Differ by just the margin: typical trials, and means."""
    alike, of_mean = found
    yield setup.rate(f"{name}, typical at the margin", "false", alike.equal.any(axis=1))
    yield setup.rate(f"{name}, mean at the margin: claimed of the mean", "false", of_mean.equal_mean.any(axis=1))


def _coverage(setup: Setup, differences: Values, *, shift: float) -> Iterator[Rate]:
    """Of differences whose mean is 0: by the interval of the ratio, by that of the mean, by ranks of the typical."""
    tests = t_tests.paired_many(np.zeros_like(differences), differences)
    low, high = tests.interval(confidence=CONFIDENCE)
    yield setup.rate("interval of the ratio, of the mean", "covers", (low <= 0) & (high >= 0), default=False)
    low, high = _mean_interval(tests, n=setup.n, level=ALPHA)
    yield setup.rate("mean with unseen stalls", "covers", (low <= 0) & (high >= 0))
    reach = ranks.signed_rank_reach(setup.n, confidence=CONFIDENCE)
    low, high = ranks.interval_many(ranks.walsh_averages(differences), reach)
    yield setup.rate("interval of the shift, of the typical trial", "covers", (low <= shift) & (high >= shift))


def without_blocks(setup: Setup) -> Iterator[Rate]:
    """Welch's test; one arm of two has noise of its own."""
    shape = (setup.runs, setup.n)
    first, second = (setup.random.normal(0, SPREAD, shape) for _ in range(2))
    second = second + OWN[setup.noise](setup.random, shape)
    may = setup.may_claim(paired=False)
    alike = setup.unpaired_p(first, second - typical(setup.noise, paired=False)) < ALPHA
    yield setup.rate(f"Welch, shuffled, {TYPICAL}", "false", alike & may)
    moved = second - OWN_MEANS[setup.noise]
    claimed = setup.unpaired_p(first, moved) < ALPHA
    low, high = _mean_interval(t_tests.welch_many(first, moved), n=setup.n, level=ALPHA)
    of_mean = claimed & may & ((low > 0) | (high < 0))
    yield setup.rate(f"Welch, shuffled, {MEAN}: claimed of the mean", "false", of_mean)


def stopping(setup: Setup) -> Iterator[Rate]:
    """The default rule that stops early, for one cell and for six."""
    if setup.n not in LARGEST:
        return
    runs = max(1, setup.runs // RUNS_SHARE)
    for cells in (1, CELLS):
        of = next(each for each in rules(cells, setup.n) if each.name == DEFAULT)
        differences = own_differences(setup.random, setup.noise, (runs, cells, setup.n))
        middle, mean = typical(setup.noise, paired=True), OWN_MEANS[setup.noise]
        alike, of_mean, at, mean_at, real = (
            simulate(differences + by, of.rule)
            for by in (-middle, -mean, BOUND - middle, BOUND - mean, STOPPING_EFFECT - middle)
        )
        yield from _rates(setup, of.path, (_found(alike), _found(of_mean)))
        yield from _at_the_margin(setup, of.path, [_found(at), _found(mean_at)])
        yield setup.rate(f"{of.path}, typical differs by 3 %", "power", real.verdict[:, 0] == HIGHER)


def _found(outcome: SimulatedOutcomes) -> Found:
    differs, equal = np.isin(outcome.verdict, (HIGHER, LOWER)), outcome.verdict == EQUIVALENT
    return Found(
        differs=differs, equal=equal, differing_mean=differs & outcome.of_mean, equal_mean=equal & outcome.of_mean
    )


PATHS: dict[str, Callable[[Setup], Iterator[Rate]]] = {
    "own": over_blocks,
    "own-unpaired": without_blocks,
    "own-stopping": stopping,
}
