"""What a metric's own test says at a look: a claim needs it besides Student's, so no run stops before it agrees."""

from __future__ import annotations

import math
from typing import Final

from fairtrial.analyse.inference import censoring, permuting, sensitivity, shares
from fairtrial.analyse.inference.comparing import (
    ArmPair,
    ComparisonOptions,
    Subject,
    compare,
    t_test,
    t_tests_by_class,
)
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.measured import ArmValues

AGREES: Final = (0.0, 0.0, 0.0)


def own_test(used: ArmPair, subject: Subject, *, logs: bool, setting: ComparisonOptions) -> tuple[float, float, float]:
    """Its p of no difference and of no equivalence, and how far its interval reaches, on logarithms.

    0 where it has none, both p also where Student's would claim nothing anyway. Values heaped at zero are exchanged
    between arms, and of others only the class is known (see `compare`).
    """
    heaped = not logs and permuting.heaped(used.baseline, used.arm)
    by_class = censoring.by_class(used.baseline, used.arm, resolution=subject.resolution)
    if not (heaped or by_class):
        return AGREES
    reach = _reach(used, subject, setting) if by_class and logs else 0.0
    if not _claims(used, subject, logs=logs, setting=setting):
        return 0.0, 0.0, reach
    found = compare(_values(used.baseline), _values(used.arm), subject=subject, setting=setting)
    return found.p, 1.0 if found.p_equivalence is None else found.p_equivalence, reach


def _reach(used: ArmPair, subject: Subject, setting: ComparisonOptions) -> float:
    """Of a single look, to the farther side: the report's interval is the wider one of it and of the looks'."""
    test = t_tests_by_class(used, subject.resolution, setting)[1]
    return math.inf if test is None else max(test.high - test.estimate, test.estimate - test.low)


def _claims(used: ArmPair, subject: Subject, *, logs: bool, setting: ComparisonOptions) -> bool:
    """Whether Student's test claims anything at a single look; a rule that looks often asks for more."""
    test = t_test(used.logarithms if logs else used, setting)
    if test is None:
        return False
    bound = shares.bound(used.baseline, used.arm, margin=setting.margin, total=subject.total) if logs else 0.0
    return min(test.p, sensitivity.equivalence(test, bound=bound)) < setting.alpha


def _values(values: Values) -> ArmValues:
    blocks = tuple(range(len(values)))
    return ArmValues(arm="", values=values, blocks=blocks, positions=blocks, absent=0)
