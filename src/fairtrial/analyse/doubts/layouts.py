"""Doubts about comparisons over several layouts: a claim about these layouts that holds for no others."""

from __future__ import annotations

from collections.abc import Iterator

from fairtrial.analyse.doubts.comparisons import of
from fairtrial.analyse.models import Comparison, Doubt
from fairtrial.words import counted


def about(comparison: Comparison) -> Iterator[Doubt]:
    """What the layouts of a comparison's blocks give reason for."""
    over = comparison.over_layouts
    claimed = comparison.verdict not in ("undecided", "none")
    if over is None or not claimed or over.verdict == comparison.verdict or over.reason == "guardrail":
        return
    count = counted(len(over.hosts), "layout")
    # Of adjusted ratios there is no verdict for other layouts, however many there are.
    plainly = (
        "leave `metrics.adjust` out" if over.reason == "adjusted" else "raise builds.link_orders rather than blocks"
    )
    yield of(
        comparison,
        code="bound_to_layout",
        message=f"the claim is about the {count} that were linked, and does not hold for other orders of linking",
        advice=f"{plainly}, and read the verdict for layouts like these",
    )
