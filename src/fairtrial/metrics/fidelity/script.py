"""What a script asks of its drives' draws, point by point: transactions by their weights, rollbacks by their share.

Nothing but chance bends them: an exact binomial test at the level of TPC-C's points.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from fairtrial.metrics.fidelity.points import Counts, FidelityPoint, Requirement, judged


class Weighed(BaseModel):
    """What a script says of one type of transaction."""

    weight: float
    rollback: float


class Content(BaseModel):
    """What it says of all types, by name."""

    transactions: dict[str, Weighed]


class ScriptFidelityParameters(BaseModel):
    """What a study chose of a script, as far as draws depend on it."""

    content: Content


def transactions(drawn: Counts, parameters: ScriptFidelityParameters) -> int:
    """Transactions of all types."""
    return sum(drawn.get(name, 0) for name in parameters.content.transactions)


def points(drawn: Counts, parameters: ScriptFidelityParameters) -> Iterator[FidelityPoint]:
    """A point for each type of transaction, and one for each that rolls back."""
    asked = parameters.content.transactions
    weights = sum(each.weight for each in asked.values())
    total = transactions(drawn, parameters)
    for name, each in asked.items():
        share = each.weight / weights
        words = Requirement(name.replace("_", " "), "weight", f"{100 * share:.4g} %")
        yield judged(words, (drawn.get(name, 0), total), expected=share, bounds=None)
    for name, each in asked.items():
        if each.rollback:
            words = Requirement(f"{name.replace('_', ' ')}, rolled back", "rollback", f"{100 * each.rollback:.4g} %")
            counted = (drawn.get(f"{name}.rollback", 0), drawn.get(name, 0))
            yield judged(words, counted, expected=each.rollback, bounds=None)
