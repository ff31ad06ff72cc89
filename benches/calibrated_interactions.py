"""Whether an arm's effect differs between conditions: claims, intervals and power of tests over several cells.

Beside the test that the analysis uses stand the classical F test, Box's, and rounds taken as a factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np
from calibrated_paths import ALPHA, Setup
from calibrated_stopping import DEFAULT, LARGEST, RUNS_SHARE, rules
from scipy import special
from simulated_noise import SPREAD, Shape, blocks

from fairtrial.analyse.designs.contrasts import FTests, GroupMeans
from fairtrial.analyse.designs.interactions import FEWEST, FEWEST_LOOKED
from fairtrial.analyse.inference import families
from fairtrial.analyse.sequential import simulate
from fairtrial.analyse.sequential.rule import LookTest, reach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from calibrated_paths import Rate
    from numpy.typing import NDArray
    from simulated_noise import Values

    from fairtrial.analyse.inference.t_tests import TTests
    from fairtrial.analyse.sequential.rule import Rule

BLOCKS: Final = (4, 6, 8, 10)
BESIDE: Final = (6, 10)  # blocks, of tests that the analysis does not claim by
EFFECT: Final = math.log(1.02)  # ratio of ratios, for power
LOUD: Final = 3.0  # times the noise of other cells
PUBLISHED: Final = (0.1, 0.8, 1.5, 0.06, 1.0, 1.0)  # noise of the MGLRU study with MariaDB, by its last cell
ROUND: Final = 2 * SPREAD  # standard deviation of what a round adds to the log ratios of all its cells
MAIN: Final = (0.0, math.log(1.015), math.log(1.03))  # of the arm in all cells, where it decides when a cell stops


@dataclass(frozen=True)
class Layout:
    """Cells of one or two factors, the second changing fastest.

    Attributes:
        levels: of each factor.
        loudness: of each cell's noise.
        share: of the blocks that each cell has.
    """

    name: str
    levels: tuple[int, ...]
    loudness: tuple[float, ...]
    share: tuple[float, ...]

    @property
    def weights(self) -> list[Values]:
        """Of each test: one per factor, and of two factors one of both."""
        means = [np.full((1, count), 1 / count) for count in self.levels]
        contrasts = [np.hstack([-np.ones((count - 1, 1)), np.eye(count - 1)]) for count in self.levels]
        if len(self.levels) == 1:
            return contrasts
        (first, second), (one, other) = means, contrasts
        return [np.kron(one, second), np.kron(first, other), np.kron(one, other)]

    @property
    def last(self) -> NDArray[np.bool_]:
        """Cells at the last level of the first factor."""
        return np.arange(self.cells) >= self.cells - self.cells // self.levels[0]

    @property
    def cells(self) -> int:
        return len(self.loudness)


def layouts() -> Iterator[Layout]:
    for name, levels in {"2 levels": (2,), "3 levels": (3,), "2 × 3 cells": (2, 3)}.items():
        cells = math.prod(levels)
        half = cells // 2
        one, equal = (1.0,), (1.0,) * cells
        few, loud = one * (cells - half) + (0.5,) * half, one * (cells - half) + (LOUD,) * half
        yield Layout(name, levels, equal, equal)
        yield Layout(f"{name}, one loud", levels, one * (cells - 1) + (LOUD,), equal)
        yield Layout(f"{name}, few and loud", levels, loud, few)
    yield Layout("2 × 3 cells, half loud", levels, loud, equal)
    yield Layout("2 × 3 cells, many and loud", levels, tuple(reversed(loud)), few)
    yield Layout("2 × 3 cells, noise as published", levels, PUBLISHED, equal)


def ratios(setup: Setup, layout: Layout) -> Values:
    """Log ratios of equal arms, shape (runs, cells, blocks), in the order of rounds."""
    logs = blocks(setup.random, setup.noise, Shape(setup.runs, cells=layout.cells, arms=2, n=setup.n))
    return np.asarray((logs[:, :, 1] - logs[:, :, 0]) * np.array(layout.loudness)[:, None])


def counted(setup: Setup, layout: Layout) -> NDArray[np.int64]:
    return np.maximum(2, (np.array(layout.share) * setup.n).astype(np.int64))


def first_of(values: Values, counts: NDArray[np.int64]) -> GroupMeans:
    """Of each cell's first blocks, by run: counts of shape (cells,) or (runs, cells)."""
    used = np.arange(values.shape[-1]) < counts[..., None]
    means = np.where(used, values, 0.0).sum(axis=-1) / counts
    apart = np.where(used, values - means[..., None], 0.0)
    variances = np.square(apart).sum(axis=-1) / (counts - 1)
    return GroupMeans.of(means, variances, counts, size=np.abs(means).max(axis=-1))


def box(groups: GroupMeans, weights: Values) -> Values:
    """P of Brunner, Dette and Munk's (1997) test, which does not weight cells by their noise."""
    projection = weights.T @ np.linalg.solve(weights @ weights.T, weights)
    spread = projection @ groups.covariances
    total = np.trace(spread, axis1=-2, axis2=-1)
    f = np.einsum("...g,gh,...h->...", groups.means, projection, groups.means) / total
    own = np.diagonal(spread, axis1=-2, axis2=-1)
    between = total**2 / np.trace(spread @ spread, axis1=-2, axis2=-1)
    within = total**2 / (np.square(own) / (groups.counts - 1)).sum(axis=-1)
    return np.asarray(special.fdtrc(between, within, f))


def johansen(groups: GroupMeans, weights: Values) -> Values:
    """P of Johansen's test with all degrees of freedom."""
    q = len(weights)
    inverse = np.linalg.inv(weights @ groups.covariances @ weights.T)
    estimates = groups.means @ weights.T
    statistic = np.einsum("...c,...cd,...d->...", estimates, inverse, estimates)
    hat = np.diagonal(groups.covariances @ (weights.T @ inverse @ weights), axis1=-2, axis2=-1)
    a = (np.square(hat) / (groups.counts - 1)).sum(axis=-1)
    return np.asarray(special.fdtrc(q, q * (q + 2) / (3 * a), statistic / (q + 2 * a - 6 * a / (q + 2))))


def _family(tests: list[Values]) -> NDArray[np.bool_]:
    """Whether any is claimed, by Holm."""
    return np.asarray((families.holm(np.stack(tests, axis=-1)) < ALPHA).any(axis=-1))


def _p(test: FTests) -> Values:
    return np.asarray(test.p)


def fixed(setup: Setup) -> Iterator[Rate]:
    """All blocks of a fixed design; the arm has one effect in all cells, which contrasts cancel."""
    if setup.n not in BLOCKS:
        return
    for layout in layouts():
        values, counts = ratios(setup, layout), counted(setup, layout)
        if counts.min() < FEWEST:
            continue
        path, groups = f"interaction, {layout.name}", first_of(values, counts)
        yield setup.rate(path, "false", _family([_p(groups.joint(each)) for each in layout.weights]))
        if setup.n in BESIDE:
            yield from _beside(setup, layout, groups, path=path)
        yield from _intervals(setup, layout, groups, path=path)
        moved = replace(groups, means=groups.means + EFFECT * layout.last)
        for how, p in {"": _p(moved.joint(layout.weights[0])), ": Box's F": box(moved, layout.weights[0])}.items():
            yield setup.rate(f"{path}{how}", "power", p < ALPHA, default=not how)


def _beside(setup: Setup, layout: Layout, groups: GroupMeans, *, path: str) -> Iterator[Rate]:
    """Tests that the analysis does not claim by."""
    for how, p in {
        "classical F": lambda each: _p(groups.classical(each)),
        "Box's F": lambda each: box(groups, each),
        "Johansen, all df": lambda each: johansen(groups, each),
    }.items():
        yield setup.rate(f"{path}: {how}", "false", _family(list(map(p, layout.weights))), default=False)


def _intervals(setup: Setup, layout: Layout, groups: GroupMeans, *, path: str) -> Iterator[Rate]:
    """Of all pairs of levels of the last factor together; no effect differs, so they must hold 0."""
    count = layout.levels[-1]
    others = layout.cells // count
    pairs = list(combinations(range(count), 2))
    covers = np.ones(setup.runs, dtype=bool)
    for first, second in pairs:
        weights = np.tile(np.eye(count)[second] - np.eye(count)[first], others) / others
        low, high = groups.contrast(weights).interval(confidence=1 - ALPHA / len(pairs))
        covers &= (low <= 0) & (high >= 0)
    yield setup.rate(path, "covers", covers)


def in_rounds(setup: Setup) -> Iterator[Rate]:
    """What a round adds to all its cells, which is not modelled; and another factor than the arm compared."""
    if setup.n not in BLOCKS:
        return
    layout = next(each for each in layouts() if each.name == "2 × 3 cells")
    values = ratios(setup, layout)
    moved = values + EFFECT * layout.last[:, None]
    with_rounds = setup.random.normal(0, ROUND, (setup.runs, 1, setup.n))
    for name, by in {"": np.zeros((1, 1, 1)), ", rounds differ": with_rounds}.items():
        path = f"interaction, 2 × 3 cells{name}"
        for how, make, default in (
            ("", GroupMeans.independent, True),
            (": rounds as a factor", lambda each: GroupMeans.together(np.stack(each, axis=1)), False),
        ):
            equal, different = (make(list(np.moveaxis(each + by, 1, 0))) for each in (values, moved))
            if name or how:
                false = _family([_p(equal.joint(each)) for each in layout.weights])
                yield setup.rate(f"{path}{how}", "false", false, default=default)
                yield setup.rate(
                    f"{path}{how}", "power", _p(different.joint(layout.weights[0])) < ALPHA, default=default
                )
    yield from _another_factor(setup, layout)


def _another_factor(setup: Setup, layout: Layout) -> Iterator[Rate]:
    """Cells of the arm's two levels share blocks: their log ratios have what two blocks differ by in common."""
    between = np.tile(setup.random.normal(0, ROUND, (setup.runs, 3, setup.n)), (1, 2, 1))
    values = ratios(setup, layout) + between
    for how, groups, default in (
        ("", GroupMeans.together(values), True),
        (": as if independent", GroupMeans.independent(list(np.moveaxis(values, 1, 0))), False),
    ):
        false = _p(groups.joint(layout.weights[1])) < ALPHA
        yield setup.rate(f"interaction, another factor than the arm{how}", "false", false, default=default)


def stopped(setup: Setup) -> Iterator[Rate]:
    """Cells that the default rule stops, each after its own number of blocks."""
    if setup.n not in LARGEST:
        return
    setup = replace(setup, runs=max(1, setup.runs // RUNS_SHARE))
    for layout in layouts():
        if layout.name not in ("2 levels", "2 × 3 cells", "2 × 3 cells, half loud"):
            continue
        rule = next(each.rule for each in rules(layout.cells, setup.n) if each.name == DEFAULT)
        for main in MAIN:
            values = ratios(setup, layout) + main
            counts = simulate(values, rule).blocks
            groups = first_of(values, counts)
            path = f"interaction, {DEFAULT}, {layout.name}, arm differs by {100 * math.expm1(main):.2g} %"
            tests = [_p(groups.joint(each)) for each in layout.weights]
            valid = [looked(each, counts, rule, size=len(tests)) for each in tests]
            enough = counts.min(axis=1) >= FEWEST_LOOKED
            yield setup.rate(path, "false", _family(valid) & enough)
            yield setup.rate(f"{path}: as if not looked", "false", _family(tests) & enough, default=False)
            yield setup.rate(path, "covers", _holds(groups.contrast(layout.weights[0][-1]), counts, rule))
            shifted = values + EFFECT * layout.last[:, None]
            counts = simulate(shifted, rule).blocks
            p = _p(first_of(shifted, counts).joint(layout.weights[0]))
            found = (looked(p, counts, rule, size=1) < ALPHA) & (counts.min(axis=1) >= FEWEST_LOOKED)
            yield setup.rate(path, "power", found)


def _holds(test: TTests, counts: NDArray[np.int64], rule: Rule) -> NDArray[np.bool_]:
    """Whether the interval of one contrast, which is 0, holds it, as far out as the boundary of its cells asks for."""
    tails = np.ones(len(counts))
    for n in np.unique(counts).tolist():
        tail = float(special.stdtr(n - 1, -reach(n, level=ALPHA, rule=rule)))
        tails = np.where((counts == n).any(axis=1), np.minimum(tails, tail), tails)
    away = -special.stdtrit(test.df, tails) * test.standard_error
    return np.asarray(np.abs(test.estimate) <= away)


def looked(p: Values, counts: NDArray[np.int64], rule: Rule, *, size: int) -> Values:
    """A p of cells that stopped after so many blocks, valid for looking often."""
    worst = np.zeros(p.shape)
    for n in np.unique(counts).tolist():
        here = (counts == n).any(axis=1)
        test = LookTest(rule, sides=2, level=ALPHA / size, units=n)
        worst[here] = np.maximum(worst[here], test.p_after(p[here], p[here], n))
    return worst


PATHS: Mapping[str, Callable[[Setup], Iterator[Rate]]] = {
    "interactions": fixed,
    "interactions-rounds": in_rounds,
    "interactions-stopped": stopped,
}
