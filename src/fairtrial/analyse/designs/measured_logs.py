"""What curves are fitted to: mean logs of every arm at every value of the factor, and how sure they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairtrial.analyse.designs.curve_errors import BlockErrors, Errors, GroupErrors
from fairtrial.analyse.designs.curve_models import Spread
from fairtrial.analyse.designs.fits import Fit
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.measured import ArmValues

SMALLEST_N = 2  # blocks or trials that have a spread


@dataclass(frozen=True)
class MeasuredLogs:
    """Logs of a metric along a factor.

    Attributes:
        means: shape (arms, k).
        n: blocks, or the fewest trials at a value.
        spread: what errors rest on.
        errors: of all means; None while only the scatter around a fit can give them.
    """

    means: Values
    n: int
    spread: Spread
    errors: Errors | None


def measured_logs(cells: Sequence[Mapping[str, ArmValues]], *, paired: bool) -> MeasuredLogs | str:
    """Of cells in the order of the factor's values, each with its arms; or why there are none."""
    every = [each for arms in cells for each in arms.values()]
    if any(not each.positive for each in every):
        return "values that are not positive have no logarithm"
    if any(len(each.values) == 0 for each in every):
        return "not every arm was measured at every value"
    return _of_blocks(cells) if paired else _of_trials(cells)


def _of_blocks(cells: Sequence[Mapping[str, ArmValues]]) -> MeasuredLogs | str:
    """Blocks of one number ran close in time; those that are not in every cell stand in for one another, in order."""
    own = [set.intersection(*(set(each.blocks) for each in arms.values())) for arms in cells]
    shared = set.intersection(*own)
    common = [[*sorted(shared), *sorted(blocks - shared)] for blocks in own]
    n = min(len(blocks) for blocks in common)
    if n == 0:
        return "no block is complete at every value"
    logs = np.stack(
        [
            np.stack([np.log(each.at(blocks[:n])) for blocks, each in zip(common, along, strict=True)], axis=1)
            for along in zip(*(arms.values() for arms in cells), strict=True)
        ]
    )  # (arms, blocks, k)
    rows = np.concatenate(list(logs), axis=1)
    errors = BlockErrors(rows - rows.mean(axis=0)) if n >= SMALLEST_N else None
    return MeasuredLogs(logs.mean(axis=1), n, "blocks" if errors is not None else "scatter", errors)


def _of_trials(cells: Sequence[Mapping[str, ArmValues]]) -> MeasuredLogs:
    """Trials that are not paired: each arm has a spread of its own at each value."""
    logs = [[np.log(each.values) for each in along] for along in zip(*(arms.values() for arms in cells), strict=True)]
    flat = [each for along in logs for each in along]
    counts = np.array([len(each) for each in flat], dtype=np.float64)
    means = np.array([[each.mean() for each in along] for along in logs])
    freedom = counts - 1
    if not freedom.any():
        return MeasuredLogs(means, 1, "scatter", None)
    squares = np.array([np.square(each - each.mean()).sum() for each in flat])
    if (freedom > 0).all():
        errors = GroupErrors(squares / freedom / counts, np.arange(len(flat)), freedom)
    else:  # some values were measured once: one spread for all
        pooled = squares.sum() / freedom.sum()
        errors = GroupErrors(pooled / counts, np.zeros(len(flat), dtype=np.int64), np.array([freedom.sum()]))
    return MeasuredLogs(means, int(counts.min()), "repeats", errors)


def scattered(measured: MeasuredLogs, n: Values, fits: Sequence[Fit]) -> Errors | None:
    """Errors from how far single trials lie off their own curve, which assumes its model; None if none are left."""
    freedom = np.array([float(len(fit.across)) for fit in fits])
    if not (freedom > 0).all():
        return None
    off = np.array([np.square(means - fit.at(n)).sum() for fit, means in zip(fits, measured.means, strict=True)])
    return GroupErrors(np.repeat(off / freedom, len(n)), np.repeat(np.arange(len(fits)), len(n)), freedom)
