"""What a script asks of its drives' draws, point by point: transactions by their weights, rollbacks by their share.

Nothing but chance bends them: an exact binomial test at the level of TPC-C's points.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic import BaseModel, Field

from fairtrial.metrics.fidelity.points import LEVEL, Counts, FidelityPoint, Requirement, Specification, judged

HOW: Final = (
    "Counts of a script's transactions cover whole trials, ramp-up included. A point is broken if its weights, or its "
    f"share of rollbacks, give a count this far off with a probability below {LEVEL:g}."
)


class TransactionType(BaseModel):
    """What a script says of one type of transaction."""

    weight: float = Field(gt=0, allow_inf_nan=False)
    rollback: float = Field(ge=0, le=1)


class Content(BaseModel):
    """What it says of all types, by name."""

    transactions: dict[str, TransactionType]


class ScriptSpecification(Specification):
    """What a study chose of a script, as far as draws depend on it."""

    notes = (HOW,)
    broken = "the script's transactions deviate from their weights"

    content: Content

    def length(self, drawn: Counts) -> int:
        """Transactions of all types."""
        return sum(drawn.get(name, 0) for name in self.content.transactions)

    def points(self, drawn: Counts, *, trials: int = 1) -> Iterator[FidelityPoint]:  # noqa: ARG002 - they add up
        """A point for each type of transaction, and one for each that rolls back."""
        types = self.content.transactions
        weights = sum(each.weight for each in types.values())
        total = self.length(drawn)
        for name, each in types.items():
            share = each.weight / weights
            words = Requirement(name.replace("_", " "), "weight", f"{100 * share:.4g} %")
            yield judged(words, (drawn.get(name, 0), total), expected=share, bounds=None)
        for name, each in types.items():
            if each.rollback:
                asked = f"{100 * each.rollback:.4g} %"
                words = Requirement(f"{name.replace('_', ' ')}, rolled back", "rollback", asked)
                counts = (drawn.get(f"{name}.rollback", 0), drawn.get(name, 0))
                yield judged(words, counts, expected=each.rollback, bounds=None)
