"""How a run that could stop early went, for a report: the rule in words, and when and why each cell stopped."""

from __future__ import annotations

from fairtrial.analyse.models import Stopping
from fairtrial.analyse.sequential.adjusting import in_words
from fairtrial.analyse.sequential.following import Followed
from fairtrial.record.models import Plan


def stopping(plan: Plan, followed: Followed | None) -> Stopping | None:
    """What `Analysis.stopping` holds; None for a design that runs all blocks."""
    if followed is None:
        return None
    stops = tuple(followed.stops[cell.name] for cell in plan.cells if cell.name in followed.stops)
    fewest = {cell.name: 0 for cell in plan.cells}
    for pair, blocks in zip(followed.pairs, followed.standing.seen.n.tolist(), strict=True):
        fewest[pair.key[0]] = max(fewest.get(pair.key[0], 0), blocks)
    return Stopping(
        rule=in_words(followed.rule),
        first=followed.rule.first,
        last=followed.rule.last,
        cells=stops,
        share=sum(fewest.values()) / (followed.rule.last * len(plan.cells)),
    )
