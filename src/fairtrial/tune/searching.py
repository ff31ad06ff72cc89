"""The loop of a tuning: propose, run a block, tell; measure the best again; confirm. Every step is journalled.

The journal and the records are all there is: whoever goes on after a kill asks the same questions of the same answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from fairtrial import record
from fairtrial.errors import FairtrialError, RecordError
from fairtrial.queries import failure
from fairtrial.study import Study
from fairtrial.study.tuning import DEFAULT, Tuning
from fairtrial.study.tuning.levels import defaults
from fairtrial.tune import measuring, planning
from fairtrial.tune.events import (
    ConfirmationPlanned,
    Proposed,
    Shortlisted,
    Told,
    TuneEvent,
    TuningFinished,
    TuningStarted,
)
from fairtrial.tune.journal import TuneJournal
from fairtrial.tune.proposing import Observation, Proposer, require
from fairtrial.tune.running import RETRIES, Blocks, Runner

AGAIN: Final = "again"
CONFIRMATION: Final = "confirmation"
SEARCH: Final = "search"
FAILED_IN_A_ROW: Final = 3  # proposals, before any was measured: what fails then is not their values


@dataclass(frozen=True)
class Course:
    """What a tuning's journal says, in order."""

    events: tuple[TuneEvent, ...]

    @property
    def started(self) -> TuningStarted:
        """What it depends on.

        Raises:
            RecordError: it was killed before it had begun.
        """
        for event in self.events:
            if isinstance(event, TuningStarted):
                return event
        raise RecordError("the tuning has not begun", hint="remove its directory, and start it again")

    @property
    def proposed(self) -> dict[int, Proposed]:
        """Proposals by number."""
        return {event.number: event for event in self.events if isinstance(event, Proposed)}

    @property
    def told(self) -> dict[int, Told]:
        """What their blocks said, by number."""
        return {event.number: event for event in self.events if isinstance(event, Told)}

    @property
    def shortlisted(self) -> Shortlisted | None:
        """What is measured again, once the search is over."""
        return next((event for event in self.events if isinstance(event, Shortlisted)), None)

    @property
    def planned(self) -> ConfirmationPlanned | None:
        """What is confirmed, once that is decided."""
        return next((event for event in self.events if isinstance(event, ConfirmationPlanned)), None)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to run."""
        return any(isinstance(event, TuningFinished) for event in self.events)

    def history(self) -> list[Observation]:
        """What a proposer is told."""
        told = self.told
        return [
            Observation(each.values, told[number].gain, told[number].excess)
            for number, each in sorted(self.proposed.items())
            if number in told
        ]


def arm(number: int) -> str:
    """A proposal's name, where it is an arm."""
    return f"p{number:03}"


def search_run(number: int) -> str:
    """Where a proposal's block is, below the tuning's directory."""
    return f"{SEARCH}/{number:03}"


def again_blocks(course: Course, listed: Shortlisted) -> Blocks:
    """The run that measures the short list again."""
    arms = {arm(number): course.proposed[number].values for number in listed.numbers}
    return Blocks(name=AGAIN, arms=arms, blocks=listed.blocks)


def confirmation_blocks(course: Course, planned: ConfirmationPlanned) -> Blocks:
    """The run whose verdict is the claim."""
    assert planned.number is not None  # noqa: S101 - else there is none
    arms = {arm(planned.number): course.proposed[planned.number].values}
    return Blocks(name=CONFIRMATION, arms=arms, blocks=planned.blocks)


def confirmation_of(
    found: dict[str, list[measuring.Pair]], study: Study, tuning: Tuning, *, fewest: int | None = None
) -> ConfirmationPlanned:
    """What the fresh blocks decide; `fewest` as in `planning.Claim`."""
    by_arm = {arm_: int(arm_.removeprefix("p")) for arm_ in found}
    return planning.confirmation(
        {by_arm[name]: values for name, values in measuring.gains(found)},
        [by_arm[name] for name in measuring.breached(found)],
        tuning=tuning,
        claim=planning.Claim(margin=study.trials.margin, alpha=1 - study.trials.confidence, fewest=fewest),
    )


@dataclass
class Search:
    """A tuning under way.

    Attributes:
        runner: of its blocks.
        journal: open.
        say: told a line for each step.
    """

    runner: Runner
    journal: TuneJournal
    say: Callable[[str], None]

    @property
    def course(self) -> Course:
        """What is known by now."""
        return Course(tuple(self.journal.events))

    def execute(self) -> None:
        """Runs everything that is owed.

        Raises:
            FairtrialError: it cannot go on; every finished trial stays, and the next process goes on from there.
            KeyboardInterrupt: the user stopped it; the same holds.
        """
        self._search()
        if self.course.shortlisted is None:
            course = self.course
            self.journal.append(planning.shortlist(course.proposed, course.told.values(), course.started.stages))
        self._again()
        self._confirm()
        if not self.course.finished:
            self.journal.append(TuningFinished())

    def _search(self) -> None:
        study, started = self.runner.study, self.course.started
        tuning = tuning_of(study)
        proposer = Proposer(
            options=tuning.options,
            default=defaults(tuning, study.base),
            seed=started.seed,
            proposals=started.stages.proposals,
        )
        if started.optuna_version != require() and len(self.course.proposed) < started.stages.proposals:
            self.say(
                f"the search began with Optuna {started.optuna_version} and goes on with {require()}: what it proposes"
                " may differ from what it would have proposed"
            )
        for number in range(1, started.stages.proposals + 1):
            course = self.course
            if number in course.told:
                continue
            if number not in course.proposed:
                values = proposer.propose(course.history())
                self.journal.append(Proposed(number=number, values=values))
            said = self._block(self.course.proposed[number])
            self.journal.append(said)
            self.say(step(self.course, number))

    def _block(self, proposed: Proposed) -> Told:
        number = proposed.number
        blocks = Blocks(search_run(number), {arm(number): proposed.values}, blocks=1, retries=RETRIES)
        try:
            found = self.runner.run(blocks)
        except FairtrialError as error:
            reason = failure(self.runner.directory / blocks.name, error, arm=arm(number))
            if not reason or self._never_measured():
                raise
            return measuring.told(number, (), reason=reason)
        return measuring.told(number, measuring.pairs(found)[arm(number)], reason="no valid block")

    def _never_measured(self) -> bool:
        """Whether the last proposals that are allowed to fail have failed, and none before them was measured."""
        told = self.course.told.values()
        return len(told) >= FAILED_IN_A_ROW - 1 and all(each.state == "failed" for each in told)

    def _again(self) -> None:
        course = self.course
        listed = course.shortlisted
        assert listed is not None  # noqa: S101 - decided right before
        if course.planned is not None:
            return
        if not listed.numbers:
            reason = "no proposal was measured within the guardrails"
            self.journal.append(ConfirmationPlanned(number=None, reason=reason))
            return
        self.say(f"measuring {', '.join(map(arm, listed.numbers))} again in {listed.blocks} fresh blocks")
        found = measuring.pairs(self.runner.run(again_blocks(course, listed)))
        study = self.runner.study
        self.journal.append(confirmation_of(found, study, tuning_of(study)))

    def _confirm(self) -> None:
        course = self.course
        planned = course.planned
        if planned is None or planned.number is None:
            return
        directory = self.runner.directory / CONFIRMATION
        if not directory.exists():
            self.say(f"confirming {arm(planned.number)} against {DEFAULT} in {planned.blocks} blocks")
        self.runner.run(confirmation_blocks(course, planned))


def tuning_of(study: Study) -> Tuning:
    """The section of a study that has one."""
    assert study.file.tune is not None  # noqa: S101 - asked for before
    return study.file.tune


def step(course: Course, number: int) -> str:
    """One proposal's outcome in a line."""
    told, values = course.told[number], course.proposed[number].values
    what = told.state if told.gain is None else f"gain {math.expm1(told.gain) * 100:+.1f} %"
    shown = "  ".join(f"{name}={value}" for name, value in values.items())
    because = f"  ({told.state}: {told.reason})" if told.reason else ""
    return f"{arm(number)} of {course.started.stages.proposals}  {what}  {shown}{because}"


def started(study: Study, *, seed: int, budget: int) -> TuningStarted:
    """The first line of a new tuning."""
    return TuningStarted(
        fairtrial_version=version("fairtrial"),
        optuna_version=require(),
        seed=seed,
        budget=budget,
        stages=planning.stages(tuning_of(study), budget=budget),
    )


def confirmed(directory: Path) -> record.Record | None:
    """The confirmation's record, if it has run to its end."""
    if not (directory / CONFIRMATION / "plan.json").exists():
        return None
    found = record.read(directory / CONFIRMATION)
    return found if found.finished else None
