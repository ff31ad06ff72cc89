"""Doubts about comparisons over several hosts: hosts that disagree on the arm's sign, pairs that lie between hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairtrial.analyse.doubts.comparisons import of
from fairtrial.analyse.hosts.models import HostEffect
from fairtrial.analyse.models import Comparison, Doubt

CROSSING_LEVEL: Final = 0.01  # false alarms per comparison of arms with one sign on all hosts, at most


def about(comparison: Comparison) -> Iterator[Doubt]:
    """What the hosts of a comparison's blocks give reason for."""
    over = comparison.over_hosts
    if over is None:
        return
    if over.mixed:
        yield of(
            comparison,
            code="hosts_mixed",
            message=f"in {over.mixed} of {comparison.n} pairs the two trials ran on different hosts: their ratio "
            "contains the hosts' own speeds",
            advice="contrast the study's own arm, whose blocks each ran on one host; or run the study with this factor "
            "as its arm",
        )
    known = over.heterogeneity
    if known is not None and known.p_one_sign < CROSSING_LEVEL:
        effects = sorted((each for each in over.hosts if each.ratio is not None), key=lambda each: each.ratio or 0.0)
        yield of(
            comparison,
            code="hosts_disagree",
            message=f"hosts disagree on the direction (p = {known.p_one_sign:.2g}): {_said(effects[0])}, "
            f"{_said(effects[-1])}",
            advice="the ratio over all hosts describes none of them: find out in what they differ, and make that a "
            "condition of the study",
        )


def _said(effect: HostEffect) -> str:
    return f"the ratio is {effect.ratio:.3f} on {effect.host}"
