"""What a metric's own test says at a look: a claim needs it besides Student's, so no run stops before it agrees."""

from __future__ import annotations

from typing import Final

from fairtrial.analyse.inference import permuting, sensitivity, shares
from fairtrial.analyse.inference.comparing import (
    ArmPair,
    ComparisonOptions,
    Subject,
    compare,
    known_by_class,
    t_test,
)
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.measured import ArmValues

AGREES: Final = (0.0, 0.0)


def own_test(used: ArmPair, subject: Subject, *, logs: bool, setting: ComparisonOptions) -> tuple[float, float]:
    """Its p of no difference and of no equivalence; 0 where it has none, or Student's would claim nothing anyway.

    Values heaped at zero are exchanged between arms, and of others only the class is known (see `compare`).
    """
    heaped = not logs and permuting.heaped(used.baseline, used.arm)
    if not (heaped or known_by_class(used, resolution=subject.resolution)):
        return AGREES
    if not _claims(used, subject, logs=logs, setting=setting):
        return AGREES
    found = compare(_values(used.baseline), _values(used.arm), subject=subject, setting=setting)
    return found.p, 1.0 if found.p_equivalence is None else found.p_equivalence


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
