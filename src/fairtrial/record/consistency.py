"""Whether a record agrees with itself: what its readers rely on, so that none of them asks again.

Models say what each value is; here is what they must be together. A record that was written by a run is; one that was
changed by hand, or made to do harm, need not be. It must not know what is computed from a record.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from fairtrial.errors import RecordError
from fairtrial.record.events import Event
from fairtrial.record.models import BlockAdded, Design, Plan, PlannedTrial, TrialFinished, TrialRecord

MOST: Final = 1 << 53  # of a whole number: beyond it floats leave numbers out
LONGEST_S: Final = 1e10  # of a duration: three centuries


def require_plan(plan: Plan, path: Path) -> None:
    """Refuses a plan whose parts do not fit each other.

    Raises:
        RecordError: they do not.
    """
    _require(_of_plan(plan), path)


def require_whole(plan: Plan, planned: Sequence[PlannedTrial], path: Path) -> None:
    """Refuses a plan whose cells, arms and blocks do not fit each other; a host of a farm reads some of them only.

    Args:
        plan: of the record.
        planned: its trials, with those that were added.
        path: of the record.

    Raises:
        RecordError: they do not.
    """
    parts = _of_cells(plan), _of_design(plan.design, trials=len(plan.trials)), _of_rounds(planned)
    _require(itertools.chain(*parts), path)


def require_journal(plan: Plan, events: Iterable[Event], path: Path) -> None:
    """Refuses a journal that adds trials without a place in the plan, or finishes a trial twice.

    Raises:
        RecordError: it does.
    """
    _require(_of_journal(plan, events), path)


def require_trial(plan: Plan, trial: TrialRecord, *, planned: PlannedTrial | None, path: Path) -> None:
    """Refuses a finished trial that is not the one planned.

    Raises:
        RecordError: it is another one, or its values do not fit each other.
    """
    _require(_of_trial(plan, trial, planned), path)


def _require(contradictions: Iterator[str], path: Path) -> None:
    if (first := next(contradictions, None)) is not None:
        raise RecordError(
            f"{path} contradicts itself: {first}",
            hint="restore the record from a copy: it was changed after it was written",
        )


def _of_plan(plan: Plan) -> Iterator[str]:
    factors = plan.factors
    for name in (plan.arm, *plan.also_compare):
        if name not in factors:
            yield f"expected one of its factors, found {name!r} at arm or also_compare"
    if twice := [name for name, levels in factors.items() if not levels or len(set(levels)) < len(levels)]:
        yield f"expected one level or more, each once, at factors.{twice[0]}"
        return
    named = plan.metrics
    for name in (*named.primary, *named.secondary, *named.guardrails, *named.guardrail_margins):
        if name not in named.definitions:
            yield f"metric {name!r} has no definition at metrics.definitions"
    if not named.primary:
        yield "expected one metric or more at metrics.primary"
    if not 0 < plan.telemetry_interval_ms <= MOST:
        yield f"expected a length above 0, found {plan.telemetry_interval_ms} at telemetry_interval_ms"
    if not (0 <= plan.duration_s <= LONGEST_S and 0 <= plan.diagnostic_duration_s <= LONGEST_S):
        yield "expected a length of time at duration_s and diagnostic_duration_s"
    if not 0 <= plan.disk_bytes < 1 << 63:
        yield f"expected a size, found {plan.disk_bytes} at disk_bytes"


def _of_cells(plan: Plan) -> Iterator[str]:
    conditions = {name: levels for name, levels in plan.factors.items() if name != plan.arm}
    combinations = math.prod(map(len, conditions.values()))
    known = {tuple(cell.levels.items()) for cell in plan.cells}
    if len(plan.cells) != combinations or len(known) != combinations:
        yield f"expected a cell for each of {combinations} combinations of levels, found {len(known)} at cells"
    if len({cell.name for cell in plan.cells}) < len(plan.cells):
        yield "two cells have one name at cells"
    arms = set(plan.factors.get(plan.arm, ()))
    for cell in plan.cells:
        if list(cell.levels) != list(conditions) or any(
            level not in conditions[name] for name, level in cell.levels.items()
        ):
            yield f"expected a level of every factor but the arm at cells.{cell.name}.levels"
        if missing := arms - plan.resolved.get(cell.name, {}).keys():
            yield f"arm {min(missing)!r} is missing at resolved.{cell.name}"
        if surplus := plan.resolved.get(cell.name, {}).keys() - arms:
            yield f"arm {min(surplus)!r} is not a level of {plan.arm} at resolved.{cell.name}"


def _of_design(design: Design, *, trials: int) -> Iterator[str]:
    number, precision = f"1 to {trials}, as there are so many trials", design.precision
    checks = (
        ("margin", "a share above 0", 0 < design.margin < MOST),
        ("confidence", "a share below 1", 0 < design.confidence < 1),
        ("blocks", number, 1 <= design.blocks <= max(1, trials)),
        ("per_boot", number, 1 <= design.per_boot <= max(1, trials)),
        ("neighbours", "cells, which share no boots", design.neighbours == "cells" or design.reboot != "every_trial"),
        ("min_blocks", "no more than blocks", design.min_blocks is None or 1 <= design.min_blocks <= design.blocks),
        ("voided_limit", "0 or more", 0 <= design.voided_limit <= MOST),
        ("precision", "a share above 0", design.stop != "precision" if precision is None else 0 < precision < MOST),
        ("seed", "a number of 64 bits", -MOST <= design.seed < 1 << 64),
    )
    for name, expected, fits in checks:
        if not fits:
            yield f"expected {expected}, found {getattr(design, name)} at design.{name}"


def _of_rounds(planned: Sequence[PlannedTrial]) -> Iterator[str]:
    if any(trial.round > len(planned) for trial in planned):  # whoever waits for empty ones waits without end
        yield f"expected at most {len(planned)} rounds, as there are so many trials, found more"


def _of_trials(plan: Plan, trials: list[PlannedTrial]) -> Iterator[str]:
    cells, arms = {cell.name for cell in plan.cells}, set(plan.factors.get(plan.arm, ()))
    ids: set[str] = set()
    for trial in trials:
        if trial.id in ids:
            yield f"two trials have the id {trial.id}"
        ids.add(trial.id)
        if trial.cell not in cells or trial.arm not in arms:
            yield f"trial {trial.id} is of a cell or an arm that there is not"
        numbers = (trial.block, trial.round, trial.position, trial.repeat)
        if not all(0 <= number <= MOST for number in numbers) or not 0 <= trial.seed < 1 << 64:
            yield f"trial {trial.id} has a number out of range"


def _of_journal(plan: Plan, events: Iterable[Event]) -> Iterator[str]:
    added: list[PlannedTrial] = []
    finished: set[str] = set()
    for event in events:
        if isinstance(event, BlockAdded):
            added += event.trials
        elif isinstance(event, TrialFinished):
            if event.trial in finished:
                yield f"trial {event.trial} is finished twice"
            finished.add(event.trial)
    yield from _of_trials(plan, [*plan.trials, *plan.diagnostics, *added])


def _of_trial(plan: Plan, trial: TrialRecord, planned: PlannedTrial | None) -> Iterator[str]:
    own = trial.trial
    if own != planned:
        another = f"expected the trial as it is planned, found another one at trial ({own.id})"
        yield another if planned else f"trial {own.id} was neither planned nor added"
    yield from _of_trials(plan, [own])
    if not _is_resolved(plan, trial):
        yield f"expected what the plan has at resolved.{own.cell}.{own.arm}, found another trial at resolved"
    levels: Mapping[str, str] = next((cell.levels for cell in plan.cells if cell.name == own.cell), {})
    if trial.levels != {**levels, plan.arm: own.arm}:
        yield "expected the levels of its cell and its arm at levels"
    if trial.window is not None and not 0 <= trial.window.start_ns <= trial.window.end_ns < 1 << 63:
        yield "expected a window that ends after it begins at window"
    if not all(-MOST <= each < 1 << 63 for each in (trial.clock.monotonic_ns, trial.clock.realtime_ns)):
        yield "expected times of 63 bits at clock"
    for name in ("started", "finished"):
        if not _is_time(getattr(trial, name)):
            yield f"expected a time of day with its zone at {name}"
    if not all(map(math.isfinite, trial.scalars.values())):
        yield "expected finite numbers at scalars"
    if any(not 0 <= check.violations <= MOST for check in trial.checks):
        yield "expected a count at checks"


def _is_resolved(plan: Plan, trial: TrialRecord) -> bool:
    """Whether it ran what its cell and its arm mean: nothing else tells the trials of two arms apart."""
    meant = plan.resolved.get(trial.trial.cell, {}).get(trial.trial.arm)
    if meant is None:
        return True  # that an arm is missing is said of the plan
    if trial.host or trial.trial.half is not None:  # the farm chose the place, or the half of it
        at = {"place": trial.resolved.place, "workload_place": trial.resolved.workload_place}
        meant = meant.model_copy(update=at)
    return meant == trial.resolved


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
