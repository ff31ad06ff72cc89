"""Diagnostic trials: every arm of every cell again, with probes, after all that estimates use. Pure.

Owns their names, seeds and order. They are a design of their own, so that asking for them moves no other trial.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairtrial.plan import ordering
from fairtrial.plan.shuffling import block_seed
from fairtrial.record.models import Design, PlannedTrial

MARK: Final = "d"  # in a trial's name where other trials have the `b` of their block


def diagnostics(
    design: Design, *, blocks: int, cells: Sequence[str], arms: Sequence[str], position: int
) -> list[PlannedTrial]:
    """So many diagnostic trials of each arm in each cell, ordered as the design orders others.

    Args:
        design: of the study.
        blocks: diagnostic trials per arm and cell; 0: none.
        cells: names.
        arms: names, baseline first.
        position: of the first one in the whole run.
    """
    # A seed of their own: a replacement of a voided block may have any number, and must not share a load with these.
    seed = block_seed(design.seed, "diagnostic", 0)
    own = design.model_copy(update={"blocks": blocks, "seed": seed, "reboot": "every_trial"})
    return [
        ordering.planned(slot, seed=seed, position=position + index).model_copy(
            update={"id": f"{slot.cell}.{MARK}{slot.block:02d}.{slot.arm}", "diagnostic": True}
        )
        for index, slot in enumerate(ordering.slots(own, cells=cells, arms=arms))
    ]
