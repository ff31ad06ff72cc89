"""Which trials an estimate uses, and in which cell and arm of a contrast they stand.

Owns the rule of voided blocks: a block with an invalid trial of any arm is left out whole, whatever is contrasted.
Leaving out the invalid trial alone would let what breaks in one arm only (slow trials that time out, say) improve it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from fairtrial.analyse.boots import BETWEEN_BLOCKS, averaged
from fairtrial.analyse.models import Counts
from fairtrial.errors import InputError, Problem, RecordError
from fairtrial.record.models import Plan, TrialRecord

FEWEST_LEVELS = 2
ONLY_CELL = "all"  # the name of the cell of a contrast without conditions


@dataclass(frozen=True)
class ContrastCell:
    """One combination of levels of every factor but the contrast.

    Attributes:
        groups: used trials by level of the contrast, baseline first, in time order; empty where none was used. Those
            of one boot are one, with their means.
        planned_cells: by level of the contrast, the plan's cell those trials were planned in.
    """

    name: str
    levels: dict[str, str]
    groups: dict[str, tuple[TrialRecord, ...]]
    planned_cells: dict[str, str]


@dataclass(frozen=True)
class Selection:
    """Used trials by cell of the contrast, and what was left out.

    Attributes:
        voided: (cell of the plan, block) of every block that lost a trial.
        used: every used trial, in time order.
        trials: all of them, used or not.
    """

    plan: Plan
    trials: Sequence[TrialRecord]
    contrast: str
    levels: tuple[str, ...]
    cells: tuple[ContrastCell, ...]
    used: tuple[TrialRecord, ...]
    voided: tuple[tuple[str, int], ...]

    @property
    def in_step(self) -> bool:
        """Whether several cells share what their blocks vary by: `Course` says when."""
        return self.contrast != self.plan.arm or self.plan.design.reboot == BETWEEN_BLOCKS

    @property
    def boots(self) -> str:
        """The factor whose levels share boots, as `Course` has it."""
        return self.plan.arm if self.plan.design.reboot == BETWEEN_BLOCKS else ""

    @cached_property
    def counts(self) -> Counts:
        """How many trials and blocks there are of each kind."""
        planned = {(trial.cell, trial.block) for trial in self.plan.trials}
        ran = {(trial.trial.cell, trial.trial.block) for trial in self.trials}
        valid = sum(trial.valid for trial in self.trials)
        return Counts(
            planned=len(self.plan.trials),
            finished=len(self.trials),
            valid=valid,
            invalid=len(self.trials) - valid,
            used=len(self.used),
            blocks_voided=len(self.voided),
            blocks_replaced=len(ran - planned),
        )


def select(
    plan: Plan, trials: Sequence[TrialRecord], *, contrast: str | None, voided: Iterable[tuple[str, int]] = ()
) -> Selection:
    """Sorts trials into the cells and levels of a contrast; the plan's arm if None.

    `voided` are blocks (cell, block) that the journal calls void besides those with an invalid trial: a host of a farm
    lost them.

    Raises:
        InputError: the plan has no such factor, or one level of it only.
        RecordError: two trials stand for the same arm in the same block.
    """
    chosen = contrast or plan.arm
    if chosen not in plan.factors:
        known = ", ".join(plan.factors)
        problem = Problem(
            message=f"`{chosen}` is not a factor of the study: expected one of {known}", file=plan.study, field="arm"
        )
        raise InputError([problem], hint="choose one of the study's factors")
    if len(plan.factors[chosen]) < FEWEST_LEVELS:
        (level,) = plan.factors[chosen]
        said = f"factor {chosen} has only the level `{level}`: expected two or more"
        problem = Problem(message=said, file=plan.study, field="arm")
        raise InputError([problem], hint="choose a factor with two or more levels; a size may keep only one of them")
    lost = {(trial.trial.cell, trial.trial.block) for trial in trials if not trial.valid}.union(voided)
    used = [trial for trial in as_run(plan, trials) if (trial.trial.cell, trial.trial.block) not in lost]
    if chosen != plan.arm:
        # Its levels meet in the rounds as planned: a replacement ran in a later round than the block of its number.
        planned = {trial.block for extension in plan.extensions for trial in extension.trials}
        planned.update(range(1, 1 + plan.design.blocks - sum(extension.blocks for extension in plan.extensions)))
        used = [trial for trial in used if trial.trial.block in planned]
    _refuse_twins(used)
    return Selection(
        plan=plan,
        trials=trials,
        contrast=chosen,
        levels=tuple(plan.factors[chosen]),
        cells=_cells(plan, used, contrast=chosen),
        used=tuple(used),
        voided=tuple(sorted(lost)),
    )


def as_run(plan: Plan, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Trials in time order, numbered by it: a replacement is planned last, yet runs at the end of its round.

    A clock may be set while a run goes on. Only trials that ran at the same time are told by it.
    """
    order = plan.design.order
    together = order == "duet" or any(trial.host for trial in trials)

    def when(trial: TrialRecord) -> tuple[str, int, int]:
        own = trial.trial
        return trial.started if together else "", 0 if together or order == "sequential" else own.round, own.position

    ordered = sorted(trials, key=when)
    positions = [trial.trial.position for trial in ordered]
    if positions == sorted(positions):
        return ordered
    return [
        trial.model_copy(update={"trial": trial.trial.model_copy(update={"position": slot})})
        for slot, trial in enumerate(ordered)
    ]


def _refuse_twins(used: Sequence[TrialRecord]) -> None:
    ids: dict[tuple[str, str, int, int], str] = {}
    for each in used:
        key = (each.trial.cell, each.trial.arm, each.trial.block, each.trial.repeat)
        if key in ids:
            raise RecordError(
                f"trials {ids[key]} and {each.trial.id} are both arm {each.trial.arm} in block "
                f"{each.trial.block} of cell {each.trial.cell}: expected one trial",
                hint="remove one of them: the record was assembled by hand",
            )
        ids[key] = each.trial.id


def _cells(plan: Plan, used: Sequence[TrialRecord], *, contrast: str) -> tuple[ContrastCell, ...]:
    conditions = [factor for factor in plan.factors if factor != contrast]
    standing: Mapping[tuple[str, ...], list[TrialRecord]] = defaultdict(list)
    for trial in used:
        standing[tuple(trial.levels[factor] for factor in plan.factors)].append(trial)
    names = {tuple(cell.levels.items()): cell.name for cell in plan.cells}
    cells = []
    for combination in product(*(plan.factors[factor] for factor in conditions)):
        levels = dict(zip(conditions, combination, strict=True))
        groups, planned = {}, {}
        for level in plan.factors[contrast]:
            everything = {factor: level if factor == contrast else levels[factor] for factor in plan.factors}
            groups[level] = tuple(averaged(standing.get(tuple(everything.values()), ())))
            planned[level] = names[tuple((name, value) for name, value in everything.items() if name != plan.arm)]
        name = "+".join(combination) or ONLY_CELL
        cells.append(ContrastCell(name=name, levels=levels, groups=groups, planned_cells=planned))
    return tuple(cells)
