"""In which order the trials of a round run, and which rounds there are.

Owns the four orders of a design. It must not know what an arm or a cell means.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from fairtrial.plan.shuffling import block_seed, shuffled
from fairtrial.record.models import Design, PlannedTrial

SEQUENTIAL_WARNING = (
    "order `sequential` runs one arm after the other, so anything that changes with time (temperature, wear, cache and "
    "file-system state, neighbours) falls on one arm alone and looks like its effect; trials of a block are not close "
    "in time, so pairing them removes nothing. Use randomised_blocks unless switching arms is impossible otherwise"
)


class Slot(NamedTuple):
    """One trial's place in a design; `half`, `boot` and `repeat` as in `PlannedTrial`."""

    cell: str
    arm: str
    block: int
    round: int
    half: Literal[1, 2] | None = None
    boot: str = ""
    repeat: int = 1


def slots(design: Design, *, cells: Sequence[str], arms: Sequence[str]) -> Iterator[Slot]:
    """Every trial of the planned rounds, in the order they run. Blocks and rounds count from 1."""
    if design.order == "sequential":
        for arm in arms:
            for block in range(1, design.blocks + 1):
                yield from (Slot(cell, arm, block, block) for cell in cells)
        return
    for block in range(1, design.blocks + 1):
        yield from in_round(design, cells=cells, arms=arms, block=block, round_=block)


def in_round(design: Design, *, cells: Sequence[str], arms: Sequence[str], block: int, round_: int) -> Iterator[Slot]:
    """One round of one block per cell, in the order they run; not of order `sequential`, which has no rounds."""
    if design.reboot == "between_blocks":
        for arm in shuffled(arms, "boots", design.seed, block):
            yield from _in_boot(design, f"b{block:02d}.{arm}", cells=cells, arm=arm, at=(block, round_))
        return
    ordered = shuffled(cells, "cells", design.seed, block) if design.order in ("randomised_blocks", "duet") else cells
    for cell in ordered:
        yield from in_block(design, cell=cell, arms=arms, block=block, round_=round_)


def in_block(design: Design, *, cell: str, arms: Sequence[str], block: int, round_: int) -> Iterator[Slot]:
    """One block of one cell, in the order its trials run; those of a duet begin together."""
    if design.reboot == "between_blocks":  # this cell alone, which makes up for a lost one: each arm boots for it
        for arm in arms_in_block(design, cell=cell, block=block, arms=arms):
            yield from _in_boot(design, f"{cell}.b{block:02d}.{arm}", cells=[cell], arm=arm, at=(block, round_))
        return
    halves: Iterable[Literal[1, 2] | None] = (1, 2) if design.order == "duet" else itertools.repeat(None)
    for arm, half in zip(arms_in_block(design, cell=cell, block=block, arms=arms), halves, strict=False):
        yield Slot(cell, arm, block, round_, half)


def _in_boot(design: Design, boot: str, *, cells: Sequence[str], arm: str, at: tuple[int, int]) -> Iterator[Slot]:
    """The trials of one boot, cells shuffled for each repetition; `at`: their block and round."""
    block, round_ = at
    for repeat in range(1, design.per_boot + 1):
        for cell in shuffled(cells, "cells", design.seed, block, arm, repeat):
            yield Slot(cell, arm, block, round_, boot=boot, repeat=repeat)


def arms_in_block(design: Design, *, cell: str, block: int, arms: Sequence[str]) -> list[str]:
    """The arms of one block in the order they run; of a duet, in the order of the halves they have."""
    if design.order == "randomised_blocks":
        return shuffled(arms, "arms", design.seed, cell, block)
    if design.order == "duet":  # of each two blocks in a row one has them swapped: a half's own speed cancels
        first = shuffled(arms, "halves", design.seed, cell, (block - 1) // 2)
        return first if block % 2 else first[::-1]
    if design.order == "abba" and block % 2 == 0:
        return list(reversed(arms))
    return list(arms)


def planned(slot: Slot, *, seed: int, position: int) -> PlannedTrial:
    """A slot at its position in the run, with its name and the load's seed."""
    again = "" if slot.repeat == 1 else f"+{slot.repeat}"  # no name has it: arm `v6` again is not arm `v6.2`
    return PlannedTrial(
        id=f"{slot.cell}.b{slot.block:02d}.{slot.arm}{again}",
        cell=slot.cell,
        arm=slot.arm,
        block=slot.block,
        round=slot.round,
        position=position,
        seed=block_seed(seed, slot.cell, slot.block, repeat=slot.repeat),
        half=slot.half,
        boot=slot.boot,
        repeat=slot.repeat,
    )
