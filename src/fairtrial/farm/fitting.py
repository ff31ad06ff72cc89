"""What no farm runs, by its plan alone: an order that splits blocks, places and loads that hosts do not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.errors import InputError, Problem
from fairtrial.record.models import Plan, PlannedTrial
from fairtrial.run import elsewhere
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.systems import system_of


def refusals(plan: Plan, *, kinds: Sequence[str], has_places: bool) -> Iterator[tuple[PlannedTrial, InputError]]:
    """Everything that a farm refuses, with a trial of the levels where it was written.

    Args:
        plan: of the run.
        kinds: of its back end, see `Executor`.
        has_places: the same.
    """
    if (wrong := refused_order(plan)) is not None:
        yield plan.trials[0], wrong
    firsts = {(trial.cell, trial.arm): trial for trial in reversed(plan.trials)}
    for first in firsts.values():
        if (wrong := _refused_trial(plan.resolved[first.cell][first.arm], kinds, has_places=has_places)) is not None:
            yield first, wrong


def refused_order(plan: Plan) -> InputError | None:
    """An order that splits blocks."""
    if plan.design.order != "sequential":
        return None
    return _refused(
        "a host of a farm runs whole blocks, and `order: sequential` runs one arm after the other",
        field="trials.order",
        suggestion="leave the farm out, or write `order: randomised_blocks`",
    )


def _refused_trial(trial: ResolvedTrial, kinds: Sequence[str], *, has_places: bool) -> InputError | None:
    """A block is at one place, which its host has."""
    if trial.place.kind not in kinds:
        return _refused(
            f"expected a place that the farm's hosts have ({', '.join(kinds)}), found `{trial.place.kind}`",
            field="place",
            suggestion="write `place: {local: {}}`, and name hosts in the file of --places",
        )
    given = trial.place.parameters
    own = [key for key, value in given.items() if value is not None] if isinstance(given, dict) else []
    if has_places and own:
        return _refused(
            f"each host is a place of its own: expected `{trial.place.kind}: {{}}`, found {', '.join(own)}",
            field=f"place.{trial.place.kind}",
            suggestion="write it in the file of --places, for each host",
        )
    if elsewhere.of(trial):
        problem = Problem("a host of a farm has no second one for the load", "the study", field=elsewhere.FIELD)
        return InputError([problem], hint="leave `place` out of the workload; nothing was started")
    there = system_of(trial.system).there()
    if there is not None and there.is_remote:
        return _refused(
            f"all hosts of a farm would load the server at {there.text} at the same time",
            field=f"system.{trial.system.kind}.at",
            suggestion="leave the farm out, or name a server that each host has at its loopback address or socket",
        )
    return None


def _refused(message: str, *, field: str, suggestion: str) -> InputError:
    return InputError([Problem(message, "the study", field=field, suggestion=suggestion)], hint="nothing was started")
