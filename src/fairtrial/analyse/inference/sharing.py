"""How much the comparisons of a cell have in common because they share one baseline: what Dunnett's method needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairtrial.analyse.inference import families
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.measured import Measured


def shares(values: Mapping[str, Measured], arms: Sequence[str], *, paired: bool) -> dict[str, float]:
    """The baseline's share of each comparison's variance, by arm; `values` by level, baseline first.

    Paired, from the blocks that all of them have. Where arms are judged on different scales, or too few blocks are
    common to all, it is 0: the adjustment is then that of independent comparisons, which is never too mild.
    """
    baseline, *_ = values.values()
    compared = [baseline, *(values[arm] for arm in arms)]
    logs = baseline.positive and all(each.positive for each in compared)
    if not logs and baseline.positive and any(values[arm].positive for arm in arms):
        return dict.fromkeys(arms, 0.0)
    found = _of_blocks(compared, logs=logs) if paired else _of_arms(compared, logs=logs)
    return dict(zip(arms, found, strict=True))


def _of_blocks(compared: Sequence[Measured], *, logs: bool) -> list[float]:
    common = set.intersection(*(set(each.blocks) for each in compared))
    rows = [
        [value for block, value in sorted(zip(each.blocks, each.values.tolist(), strict=True)) if block in common]
        for each in compared
    ]
    if len(common) < families.SMALLEST_N:
        return [0.0] * (len(compared) - 1)
    return _listed(families.shares_of_blocks(_scaled(rows, logs=logs)))


def _of_arms(compared: Sequence[Measured], *, logs: bool) -> list[float]:
    if min(len(each.values) for each in compared) < families.SMALLEST_N:
        return [0.0] * (len(compared) - 1)
    scaled = [np.log(each.values) if logs else each.values for each in compared]
    errors = np.array([float(np.var(values, ddof=1)) / len(values) for values in scaled])
    return _listed(families.shares_of_arms(errors, df=min(len(values) for values in scaled) - 1))


def _scaled(rows: list[list[float]], *, logs: bool) -> Values:
    values = np.array(rows, dtype=np.float64)
    return np.log(values) if logs else values


def _listed(found: Values) -> list[float]:
    listed: list[float] = found.tolist()
    return listed
