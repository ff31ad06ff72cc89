"""From a study to a plan: every trial resolved, named, seeded and ordered. Pure.

Owns the composition of a plan, of replacements for voided blocks and of further rounds.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from itertools import product

from fairtrial.plan import costs, layouts, loaded_options, ordering, repeated, screening, search_paths, unpinned
from fairtrial.plan.against_itself import AGAIN
from fairtrial.plan.diagnosing import diagnostics
from fairtrial.plan.differences import differences
from fairtrial.plan.screening import ONLY_CELL
from fairtrial.record.files import PARTIAL_PREFIX
from fairtrial.record.models import COMPONENT_BYTES, Cell, Design, Plan, PlannedMetrics, PlannedTrial, RangeExpectation
from fairtrial.record.screening import ROW
from fairtrial.study import Study
from fairtrial.study.catalogue import Catalogue
from fairtrial.study.file_model import FEWEST_BLOCKS, Metrics
from fairtrial.study.tree.problems import Problems

_MILLISECONDS = 1000
GOOD_BLOCKS = 10  # what is advised: t has enough degrees of freedom, exact tests count
NUMBERS_BYTES = 16  # of a trial's name, `.b` and the numbers of its block and repeat: as long as `.b1234567890+123`
LEVELS_BYTES = COMPONENT_BYTES - len(PARTIAL_PREFIX) - len(AGAIN) - NUMBERS_BYTES  # an A/A run has the same levels


def make(study: Study, *, catalogue: Catalogue) -> Plan:
    """Plans a study. The same study gives the same plan on every machine.

    Raises:
        InputError: levels whose names are too long together, or name two trials alike, or that do not resolve, which
            `study.load` has refused; arms that look for one program on different paths.
    """
    matrix = screening.screening(study) if study.trials.design else None
    cells = [Cell(name=ONLY_CELL, levels={})] if matrix else _cells(study)
    arm, arms = (ROW, tuple(matrix.rows)) if matrix else (study.arm.name, study.arm.level_names)
    _require_names(study, [f"{cell.name}.{each}" for cell in cells for each in arms])
    resolved = {
        cell.name: {each: study.resolve(matrix.levels(each) if matrix else {**cell.levels, arm: each}) for each in arms}
        for cell in cells
    }
    search_paths.require_same(study, resolved)
    design = _design(study, cells=len(cells), arms=len(arms))
    names = [cell.name for cell in cells]
    trials = screening.trials(design, arms) if matrix else _trials(design, cells=names, arms=arms)
    _require_apart(study, trials)
    file = study.file
    probing = diagnostics(
        design, blocks=file.telemetry.blocks_of_diagnostics, cells=names, arms=arms, position=len(trials)
    )
    return Plan(
        fairtrial_version=version("fairtrial"),
        study=study.name,
        question=file.question,
        size=study.size,
        factors={ROW: list(arms)} if matrix else {each.name: list(each.level_names) for each in study.factors},
        arm=arm,
        also_compare=file.also_compare,
        cells=cells,
        resolved=resolved,
        screening=matrix,
        values={factor.name: dict(factor.numeric.numbers) for factor in study.factors if factor.numeric is not None},
        curve=file.curve,
        builds=file.builds,
        differences=[*differences(resolved), *layouts.differences(file.builds)],
        expectations=[RangeExpectation(**vars(expectation)) for expectation in study.expectations],
        metrics=PlannedMetrics(
            **file.metrics.model_dump(include=set(Metrics.model_fields)),
            own=file.metrics.own,
            definitions=dict(study.definitions),
        ),
        design=design,
        telemetry_interval_ms=round(file.telemetry.interval * _MILLISECONDS),
        telemetry_lock_waits=file.telemetry.lock_waits,
        exporters=file.telemetry.prometheus,
        counter_commands=file.telemetry.command,
        probes=file.telemetry.probes,
        diagnostics=probing,
        diagnostic_duration_s=costs.duration_s(probing, resolved, catalogue),
        trials=trials,
        duration_s=costs.duration_s(trials, resolved, catalogue),
        disk_bytes=costs.disk_bytes(resolved, design, catalogue, builds=file.builds) + costs.diagnostic_bytes(probing),
        warnings=[
            *(_warnings(study, design, comparisons=len(cells) * (len(arms) - 1)) if matrix is None else []),
            *repeated.warnings(resolved),
            *unpinned.warnings(resolved),
            *loaded_options.warnings(resolved),
            *search_paths.warnings(resolved),
        ],
    )


def _require_names(study: Study, names: Sequence[str]) -> None:
    """That a trial's directory can be called by its levels."""
    longest = max(names, key=lambda name: len(name.encode()))
    if len(longest.encode()) <= LEVELS_BYTES:
        return
    problems = Problems()
    message = f"the names of a trial's levels are {len(longest.encode())} bytes together, more than a file's name holds"
    problems.add(message, study.written.where("factors"), field=("factors",), suggestion="shorten the names of levels")
    problems.raise_if_any()


def _require_apart(study: Study, trials: Sequence[PlannedTrial]) -> None:
    """That no two trials have one name, as where `x` and `b01.x` are arms and `p` and `p.b01` conditions."""
    named = Counter(trial.id for trial in trials)
    problems = Problems()
    for name, times in named.items():
        if times > 1:
            message = f"the levels' names make one name, {name}, of {times} trials"
            suggestion = "give levels names without the number of a block, such as `.b01`"
            problems.add(message, study.written.where("factors"), field=("factors",), suggestion=suggestion)
    problems.raise_if_any()


def replacement(plan: Plan, *, cell: str, block: int, round_: int, position: int) -> list[PlannedTrial]:
    """The trials of a new block of one cell, in order.

    Args:
        plan: the plan the run began with.
        cell: which cell lost a block.
        block: the new block's number, after all of that cell's blocks so far.
        round_: the round it joins.
        position: of its first trial in the whole run.
    """
    arms = plan.factors[plan.arm]
    slots = ordering.in_block(plan.design, cell=cell, arms=arms, block=block, round_=round_)
    return [
        ordering.planned(slot, seed=plan.design.seed, position=position + index) for index, slot in enumerate(slots)
    ]


def extension(plan: Plan, *, cells: Sequence[str], blocks: range, round_: int, position: int) -> list[PlannedTrial]:
    """The trials of further rounds, in order.

    Args:
        plan: the plan the run began with.
        cells: those that get more blocks.
        blocks: their numbers, the same in every cell, after all blocks so far.
        round_: of the first of them; the others follow.
        position: of its first trial in the whole run.
    """
    arms = plan.factors[plan.arm]
    slots = (
        slot
        for number, block in enumerate(blocks)
        for slot in ordering.in_round(plan.design, cells=cells, arms=arms, block=block, round_=round_ + number)
    )
    return [
        ordering.planned(slot, seed=plan.design.seed, position=position + index) for index, slot in enumerate(slots)
    ]


def _cells(study: Study) -> list[Cell]:
    conditions = study.conditions
    return [
        Cell(
            name="+".join(levels) or ONLY_CELL,
            levels=dict(zip((factor.name for factor in conditions), levels, strict=True)),
        )
        for levels in product(*(factor.level_names for factor in conditions))
    ]


def _trials(design: Design, *, cells: Sequence[str], arms: Sequence[str]) -> list[PlannedTrial]:
    return [
        ordering.planned(slot, seed=design.seed, position=position)
        for position, slot in enumerate(ordering.slots(design, cells=cells, arms=arms))
    ]


def _design(study: Study, *, cells: int, arms: int) -> Design:
    trials = study.trials
    values = trials.model_dump(exclude={"design", "resolution", "fold"})
    values["time_budget_s"] = values.pop("time_budget")
    values["min_blocks"] = trials.first_look(comparisons=cells * (arms - 1))
    if trials.voided_limit is None:
        rows = trials.blocks * arms
        values["voided_limit"] = rows // screening.REPEATED_SHARE if trials.design else trials.blocks
    if trials.reboot == "between_blocks":
        values["neighbours"] = "boots"
    if trials.stop == "sequential":
        values["spending"] = trials.spending or "pocock"
    if trials.stop in ("sequential", "anytime"):
        usual = trials.stop == "sequential"  # an analysis that may go on for ever is not to be given up unasked
        values["futility"] = usual if trials.futility is None else trials.futility
        values["equivalence"] = trials.equivalence is not False
        values["stops_by"] = "verdict"
    return Design.model_validate(values)


def _warnings(study: Study, design: Design, *, comparisons: int) -> list[str]:
    """`comparisons`: of each metric."""
    warnings = []
    if design.order == "sequential":
        warnings.append(ordering.SEQUENTIAL_WARNING)
    if design.order == "abba" and design.blocks > 1 and design.blocks % 2:
        warnings.append(
            f"order `abba` with {design.blocks} blocks: an odd number leaves one direction in the majority, so "
            "a linear drift does not cancel; use an even number"
        )
    fewest = _fewest_blocks(design, comparisons=comparisons * len(study.file.metrics.primary))
    advice = f"use at least {fewest}" + (f", better {GOOD_BLOCKS}" if fewest < GOOD_BLOCKS else "")
    if design.blocks == 1:
        warnings.append(f"one block per cell gives no interval and no verdict; {advice}")
    elif design.stop in ("fixed", "anytime") and design.blocks < fewest:
        warnings.append(f"{design.blocks} blocks per cell can claim nothing, whatever they show; {advice}")
    return [*warnings, *layouts.warnings(study.file.builds, blocks=design.blocks)]


def _fewest_blocks(design: Design, *, comparisons: int) -> int:
    """From how many blocks on, or trials per arm without blocks, a plan may claim: as analysis judges it.

    `anytime` bounds p at every look: n blocks that are all alike give (1 + n)^-((n - 1) / 2) (Wang and Ramdas 2023),
    which Holm multiplies by the primary comparisons.
    """
    alpha = 1 - design.confidence
    if design.stop == "anytime":
        blocks = itertools.count(FEWEST_BLOCKS)
        return next(n for n in blocks if comparisons * (1 + n) ** (-(n - 1) / 2) < alpha)
    if design.order == "sequential":
        arms = (n for n in itertools.count(4) if 2 / math.comb(2 * n, n) < alpha)
        return next(arms)
    return next(n for n in itertools.count(1) if 2 / 2**n < alpha)
