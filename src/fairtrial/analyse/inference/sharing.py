"""How much the comparisons of a cell have in common because they share one baseline: what Dunnett's method needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fairtrial.analyse.inference import families, t_tests
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.measured import ArmValues


def shares(values: Mapping[str, ArmValues], arms: Sequence[str], *, paired: bool) -> dict[str, float]:
    """The baseline's share of each comparison's variance, by arm; `values` by level, baseline first.

    Paired, from the blocks that all of them have. Where arms are judged on different scales, or too few blocks are
    common to all, it is 0: the adjustment is then that of independent comparisons, which is never too mild.
    """
    baseline, *_ = values.values()
    compared = [baseline, *(values[arm] for arm in arms)]
    logs = baseline.positive and all(each.positive for each in compared)
    if not logs and baseline.positive and any(values[arm].positive for arm in arms):
        return dict.fromkeys(arms, 0.0)
    parts = _of_blocks(compared, logs=logs) if paired else _of_arms(compared, logs=logs)
    return dict(zip(arms, parts.tolist(), strict=True))


def _of_blocks(compared: Sequence[ArmValues], *, logs: bool) -> Values:
    common = sorted(set.intersection(*(set(each.blocks) for each in compared)))
    if len(common) < families.SMALLEST_N:
        return np.zeros(len(compared) - 1)
    return families.shares_of_blocks(np.array(_scaled([each.at(common) for each in compared], logs=logs)))


def _of_arms(compared: Sequence[ArmValues], *, logs: bool) -> Values:
    n = [len(each.values) for each in compared]
    if min(n) < families.SMALLEST_N:
        return np.zeros(len(compared) - 1)
    variances = [float(np.var(each, ddof=1)) for each in _scaled([each.values for each in compared], logs=logs)]
    return families.shares_of_arms(np.array(variances) / n, df=min(n) - 1)


def _scaled(samples: Sequence[Values], *, logs: bool) -> list[Values]:
    """In a unit of which squares are numbers: shares have none."""
    return t_tests.scaled(*(np.log(each) if logs else each for each in samples))[0]
