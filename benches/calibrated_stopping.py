"""Rules that stop early, counted over simulated runs: false claims, coverage, power, and how long they take."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from calibrated_paths import ALPHA, BOUND, CELLS, Setup
from scipy import special

from fairtrial.analyse.sequential import Rule, guarding, simulate
from fairtrial.analyse.sequential.simulating import EQUIVALENT, HIGHER, LOWER
from fairtrial.study.file_model import DEFAULT_MIN_BLOCKS_PRECISION, first_look_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from calibrated_paths import Rate
    from numpy.typing import NDArray
    from simulated_noise import Values

    from fairtrial.analyse.sequential import SimulatedOutcomes
    from fairtrial.analyse.sequential.rule import Counts, Flags

LARGEST: Final = (10, 20)  # blocks: with fewer a rule has next to nothing to save
RUNS_SHARE: Final = 6  # of what is no default, one of so many runs: a path is many looks at many comparisons
EFFECT: Final = math.log(1.03)  # beyond the margin, else a rule rightly waits for equivalence
REAL: Final = 2  # of several cells
HALF_WIDTH: Final = math.log1p(0.01)  # of `precision`
DEFAULT: Final = "Pocock, futility"


@dataclass(frozen=True)
class Stopping:
    """One rule over a family of cells with one comparison each."""

    name: str
    cells: int
    rule: Rule

    @property
    def path(self) -> str:
        return f"{self.name}, {self.cells} cells" if self.cells > 1 else f"{self.name}, one cell"


def rules(cells: int, last: int) -> Iterator[Stopping]:
    """Every rule that a study can name, as it comes by default."""
    first = first_look_of("sequential", comparisons=cells, blocks=last)
    usual = Rule(first=first, last=last, alpha=ALPHA, bound=BOUND)
    late = replace(usual, spending="obrien_fleming")
    precise = replace(usual, kind="precision", first=DEFAULT_MIN_BLOCKS_PRECISION, half_width=HALF_WIDTH)
    for name, rule in {
        DEFAULT: usual,
        "Pocock": replace(usual, futility=False),
        "O'Brien-Fleming, futility": late,
        "O'Brien-Fleming": replace(late, futility=False),
        "anytime": replace(usual, kind="anytime", futility=False),
        "precision of 1 %": replace(precise, futility=False),
    }.items():
        yield Stopping(name=name, cells=cells, rule=rule)


def stopping(setup: Setup) -> Iterator[Rate]:
    """Every rule, for one cell and for several, without any effect and with some."""
    if setup.n not in LARGEST:
        return
    fewer = replace(setup, runs=max(1, setup.runs // RUNS_SHARE))
    for cells in (1, CELLS):
        for each in rules(cells, setup.n):
            used = setup if each.name == DEFAULT else fewer
            logs = used.blocks(cells=cells)
            for rates in (_without_effect, _with_effect, _at_the_margin):
                yield from rates(used, each, logs[:, :, 1] - logs[:, :, 0])


def _without_effect(setup: Setup, of: Stopping, ratios: Values) -> Iterator[Rate]:
    found = simulate(ratios, of.rule)
    default = of.name == DEFAULT
    yield setup.rate(of.path, "false", _different(found).any(axis=1), default=default)
    yield setup.rate(of.path, "covers", _covers(found, 0.0), default=default)
    yield setup.number(of.path, "blocks", found.blocks.mean(axis=1), default=default)


def _with_effect(setup: Setup, of: Stopping, ratios: Values) -> Iterator[Rate]:
    """One cell, or two of several; false is a claim in the others, or of equivalence in these."""
    real = np.arange(of.cells) < min(REAL, of.cells)
    effect = np.where(real, EFFECT, 0.0)
    found = simulate(ratios + effect[:, None], of.rule)
    wrong = np.where(real, (found.verdict == EQUIVALENT) | (found.verdict == LOWER), _different(found))
    path, default = f"{of.path}, {'2 differ' if of.cells > 1 else 'differs'} by 3 %", of.name == DEFAULT
    yield setup.rate(path, "false", wrong.any(axis=1), default=default)
    yield setup.rate(path, "covers", _covers(found, effect), default=default)
    yield setup.rate(path, "power", found.verdict[:, 0] == HIGHER, default=default)
    yield setup.number(path, "blocks", found.blocks.mean(axis=1), default=default)


def _at_the_margin(setup: Setup, of: Stopping, ratios: Values) -> Iterator[Rate]:
    """Every cell differs by just the margin: false is any claim of equivalence."""
    found = simulate(ratios + BOUND, of.rule)
    same = (found.verdict == EQUIVALENT).any(axis=1)
    yield setup.rate(f"{of.path}, at the margin", "false", same, default=of.name == DEFAULT)


def guarded(setup: Setup) -> Iterator[Rate]:
    """A guardrail that is worse by just the margin, of a run that the default rule stops by its primary metric.

    The two move together, or each on its own: what stopped the run chose the guardrail's blocks. Were they to move
    against each other, `kept` and `breached` of moving together would change places.
    """
    if setup.n not in LARGEST:
        return
    usual = next(each.rule for each in rules(1, setup.n) if each.name == DEFAULT)
    ratios, others = (np.diff(setup.blocks()[:, 0], axis=1)[:, 0] for _ in range(2))
    blocks = simulate(ratios[:, None], usual).blocks[:, 0]
    for how, noise in {"with": ratios, "beside": others}.items():
        path = f"{DEFAULT}, guardrail {how} it"
        kept, breached = _rail(noise + BOUND, blocks, usual)
        fine, _ = _rail(noise, blocks, usual)
        yield setup.rate(f"{path}: kept", "false", kept)
        yield setup.rate(f"{path}: breached", "false", breached)
        yield setup.rate(f"{path}: kept", "power", fine)


def _rail(ratios: Values, blocks: Counts, rule: Rule) -> tuple[Flags, Flags]:
    """Whether each run calls its guardrail kept, and breached, after its own number of blocks."""
    kept, breached = (np.zeros(len(blocks), dtype=bool) for _ in range(2))
    for n in np.unique(blocks).tolist():
        if not guarding.may_claim(n, rule):
            continue
        runs = blocks == n
        so_far = ratios[runs, :n]
        t = (so_far.mean(axis=1) - BOUND) / (so_far.std(axis=1, ddof=1) / np.sqrt(n))
        kept[runs] = guarding.p_looked_at(special.stdtr(n - 1, t), n, rule) < ALPHA
        breached[runs] = guarding.p_looked_at(special.stdtr(n - 1, -t), n, rule) < ALPHA
    return kept, breached


def _different(found: SimulatedOutcomes) -> NDArray[np.bool_]:
    return np.isin(found.verdict, (HIGHER, LOWER))


def _covers(found: SimulatedOutcomes, effect: Values | float) -> NDArray[np.bool_]:
    """Of the adjusted intervals, one by one; one that does not exist yet says nothing wrong."""
    missed: NDArray[np.bool_] = (found.low > effect) | (found.high < effect)
    return ~missed


PATHS: Mapping[str, Callable[[Setup], Iterator[Rate]]] = {"stopping": stopping, "guarded": guarded}
