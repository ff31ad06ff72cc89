"""What crosses between a run's controller and a host of its farm: a block to run, and what came of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from fairtrial.errors import FairtrialError, InputError, PlaceError, Problem
from fairtrial.record.models import PlaceOpened, Plan, PlannedTrial, TrialFinished, TrialRecord
from fairtrial.study.resolved import ResolvedTrial, Section


class Crossing(BaseModel):
    """Frozen, and checked on arrival."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Order(Crossing):
    """A block to run.

    Attributes:
        run: name of the record.
        plan: with this block's trials alone, at the places where the host runs them.
        started: arms of the cell whose system has started before, on whatever host.
    """

    run: str
    plan: Plan
    started: list[str]

    @property
    def trials(self) -> list[PlannedTrial]:
        """In their order."""
        return [*self.plan.trials, *self.plan.diagnostics]

    @property
    def cell(self) -> str:
        """Whose block it is."""
        return self.trials[0].cell

    @property
    def block(self) -> int:
        """Its number in the cell."""
        return self.trials[0].block

    def at(self, place: Section) -> Order:
        """The same block at another place."""
        resolved = {
            cell: {arm: _moved(each, place) for arm, each in arms.items()} for cell, arms in self.plan.resolved.items()
        }
        return self.model_copy(update={"plan": self.plan.model_copy(update={"resolved": resolved})})


def _moved(trial: ResolvedTrial, place: Section) -> ResolvedTrial:
    """A trial at another place; so is its load, where the study names the system's place for it."""
    beside = {"workload_place": place} if trial.clients == (trial.place,) else {}
    return trial.model_copy(update={"place": place, **beside})


class Failure(Crossing):
    """Why a host could not go on. `problems`: mistakes in the study, where it was one; `trial`: in whose levels."""

    message: str
    hint: str
    field: str = ""
    problems: list[Problem] = []
    trial: str = ""

    @classmethod
    def of(cls, error: FairtrialError, *, trial: str = "") -> Failure:
        """An error, so that it can cross."""
        problems = error.problems if isinstance(error, InputError) else []
        field = getattr(error, "field", "")
        return cls(message=str(error), hint=error.hint, field=field, problems=problems, trial=trial)

    def error(self) -> FairtrialError:
        """The error again."""
        if self.problems:
            return InputError(self.problems, hint=self.hint)
        return PlaceError(self.message, hint=self.hint, field=self.field)


class Outcome(Crossing):
    """What came of a block.

    Attributes:
        host: that ran it.
        trials: finished ones, valid or not, in their order; each has a directory of its name.
        finished: what the host's own journal says of them, with the hashes of their files.
        places: that were opened.
        notes: worth a line each.
        failure: why the rest of the block was not run.
        begun: whether any of its trials began; the block is as it was if none did.
        processor_s, elapsed_s: what the farm's own processes used on the host meanwhile.
    """

    host: str
    trials: list[TrialRecord] = []
    finished: list[TrialFinished] = []
    places: list[PlaceOpened] = []
    notes: list[str] = []
    failure: Failure | None = None
    begun: bool = True
    processor_s: float = 0.0
    elapsed_s: float = 0.0


def order(plan: Plan, trials: Sequence[PlannedTrial], *, run: str, started: Sequence[str]) -> Order:
    """A block's order.

    Args:
        plan: of the whole run.
        trials: of one block, or one diagnostic trial.
        run: name of the record.
        started: arms of the cell whose system has started before.
    """
    cell = trials[0].cell
    resolved = {trial.arm: plan.resolved[cell][trial.arm] for trial in trials}
    diagnostics = [trial for trial in trials if trial.diagnostic]
    small = plan.model_copy(
        update={
            "resolved": {cell: resolved},
            "design": plan.design.model_copy(update={"stop": "fixed"}),
            "trials": [trial for trial in trials if not trial.diagnostic],
            "diagnostics": diagnostics,
            "probes": plan.probes if diagnostics else [],
            "extensions": [],
            "warnings": [],
        }
    )
    return Order(run=run, plan=small, started=list(started))
