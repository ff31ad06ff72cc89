"""The loop of a bisection: versions made ready, blocks run by the ordinary run, every step journalled.

The only part of the room with side effects. What was finished is never lost: each query is an ordinary record of its
own, and what was journalled decides what comes next.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from fairtrial.bisect import compiling, journal
from fairtrial.bisect.commits import Builds, UnbuildableError
from fairtrial.bisect.deciding import Change, History, Measure, believed, decide
from fairtrial.bisect.models import (
    Answered,
    Bisection,
    Confirmed,
    Event,
    FoundChange,
    Gap,
    Measured,
    Queried,
    Ready,
    Version,
)
from fairtrial.bisect.reading import (
    BLOCKS,
    CONFIRMATION,
    CONFIRMED_OUTCOMES,
    QUESTION,
    block_seconds,
    confirmation,
    confirming_blocks,
    log_ratios,
    shares,
    summary,
    take,
)
from fairtrial.errors import FairtrialError, PlaceError
from fairtrial.plan.shuffling import SEED_BITS, digest
from fairtrial.queries import failure, loaded, run_whole
from fairtrial.record import Record, Writer
from fairtrial.record.files import MERGED, make_directory, write_synced
from fairtrial.systems import system_of

LOGS: Final = "builds"


@dataclass
class Bisecting:
    """A bisection that goes on.

    Attributes:
        directory: its own.
        question: as it was begun.
        conduct: runs the trials of a record to their end.
        conclude: reports a confirmation.
        note: tells a person.
    """

    directory: Path
    question: Bisection
    conduct: Callable[[Writer], None]
    conclude: Callable[[Record], None]
    note: Callable[[str], None]
    merged: dict[str, Any] = field(init=False)
    history: History = field(init=False)
    done: list[Event] = field(init=False)

    def __post_init__(self) -> None:
        self.merged = compiling.read((self.directory / MERGED).read_text(encoding="utf-8"))
        self.history = History(len(self.question.versions))
        self._journal = journal.Journal(self.directory)
        self.done = journal.events(self.directory)
        for event in self.done:
            take(self.history, event)
        self.builds = Builds(Path(self.question.repository), self.question.build, self.directory / LOGS)

    def execute(self) -> None:
        """Goes on to the answer and its confirmation.

        Raises:
            FairtrialError: it cannot go on; what is finished stays.
            KeyboardInterrupt: the user stopped it; the same holds.
        """
        try:
            answer = next((event for event in self.done if isinstance(event, Answered)), None) or self._search()
            known = {event.number for event in self.done if isinstance(event, Confirmed)}
            confirmed = answer.changes if answer.outcome in CONFIRMED_OUTCOMES else []
            for number, change in enumerate(confirmed, 1):
                if number not in known:
                    self._confirm(number, change)
        finally:
            self._journal.close()

    def _search(self) -> Answered:
        while isinstance(step := decide(self.history, self.question.limits), Measure):
            if self._ready(0) and self._ready(step.version):
                self._measure(step)
        answer = Answered(outcome=step.outcome, changes=[found_change(change) for change in step.changes])
        self._append(answer)
        return answer

    def _ready(self, version: int) -> bool:
        """Whether a version can be run: built or fetched now, if it is not yet. What cannot be built is a gap."""
        try:
            seconds = self._prepared(version)
        except UnbuildableError as error:
            self._leave_out(version, str(error))
            return False
        if version not in self.history.ready:
            self._append(Ready(version=version, seconds=seconds))
        return True

    def _prepared(self, number: int) -> float:
        """Builds or fetches a version; the seconds that took."""
        version = self.question.versions[number]
        if version.commit:
            if number not in self.history.ready:
                self.note(f"building {version.name} {version.subject}")
            return self.builds.build(version.commit)
        if number in self.history.ready:
            return 0.0
        began = time.monotonic()
        study = loaded(self._text(self._pair(0, number or self.history.end, blocks=1, seed=self.question.seed)))
        system = system_of(study.resolve({**self.question.pinned, self.question.over: version.name}).system)
        if (source := system.awaited()) is None:
            return 0.0
        self.note(f"fetching {system.name}: {source}")
        system.fetched()
        return time.monotonic() - began

    def _leave_out(self, version: int, reason: str) -> None:
        name = self.question.versions[version].name
        if version in (0, self.history.end):
            hint = f"choose another end; what the build printed is in {self.directory / LOGS}"
            raise PlaceError(f"{name}, an end of the history, cannot be tested: {reason}", hint=hint)
        self.note(f"{name} is left out: {reason}")
        self._append(Gap(version=version, reason=reason))

    def _measure(self, step: Measure) -> None:
        """Blocks of a version against the reference: the query that a kill left unfinished, or a new one."""
        queried = [event for event in self.done if isinstance(event, Queried)]
        closed = {event.number for event in self.done if isinstance(event, Measured)}
        number = len(queried) + 1
        if queried and queried[-1].number not in closed and queried[-1].version not in self.history.gaps:
            number = queried[-1].number
            step = Measure(queried[-1].version, queried[-1].blocks, ends=queried[-1].ends)
        else:
            self._append(Queried(number=number, version=step.version, blocks=step.blocks, ends=step.ends))
        name = self.question.versions[step.version].name
        directory = self.directory / BLOCKS / f"{number:04}"
        pair = self._pair(0, step.version, blocks=step.blocks, seed=_seed(self.question.seed, number))
        try:
            finished = run_whole(directory, partial(self._text, pair), self.conduct, arm=name)
        except FairtrialError as error:
            if not (reason := failure(directory, error, arm=name)):
                raise
            self._leave_out(step.version, reason)
            return
        measured = Measured(
            number=number,
            version=step.version,
            log_ratios=log_ratios(finished, self.question, version=name),
            shares=shares(finished, self.question, version=name),
            seconds=block_seconds(finished),
        )
        after = copy.deepcopy(self.history)
        take(after, measured)
        self._append(measured.model_copy(update={"believed": summary(after)}))

    def _confirm(self, number: int, change: FoundChange) -> None:
        """The paired study whose verdict alone is a claim."""
        size, noise = math.log(change.ratio), math.sqrt(float(believed(self.history).noise))
        blocks = confirming_blocks(size, noise, alpha=self.question.alpha)
        pair = self._pair(
            change.after, change.at, blocks=blocks, seed=_seed(self.question.seed, -number), explained=True
        )
        self._ready(change.after)
        self._ready(change.at)
        directory = self.directory / CONFIRMATION.format(number=number)
        finished = run_whole(directory, partial(self._text, pair), self.conduct)
        self._append(confirmation(finished, self.question, number=number, change=change))
        self.conclude(finished)

    def _pair(self, first: int, second: int, *, blocks: int, seed: int, explained: bool = False) -> compiling.Pair:
        versions = [self.question.versions[number] for number in (first, second)]
        return compiling.Pair(
            over=self.question.over,
            levels={each.name: self._overlay(each) for each in versions},
            blocks=blocks,
            seed=seed,
            question=f"Is {versions[1].name} as fast as {versions[0].name}?",
            explained=explained,
        )

    def _overlay(self, version: Version) -> dict[str, Any]:
        if version.commit:
            return compiling.built(self.merged, str(self.builds.directory(version.commit)))
        return version.overlay

    def _text(self, pair: compiling.Pair) -> str:
        return compiling.study_text(self.merged, pair, pinned=self.question.pinned)

    def _append(self, event: Event) -> None:
        self._journal.append(event)
        self.done.append(event)
        take(self.history, event)


def begin(directory: Path, question: Bisection, merged: dict[str, Any]) -> None:
    """Fills a bisection's directory."""
    make_directory(directory)
    write_synced(directory / MERGED, compiling.written(merged).encode())
    write_synced(directory / QUESTION, question.model_dump_json(indent=1).encode() + b"\n")  # last: now it can resume


def found_change(change: Change) -> FoundChange:
    """A change as the journal has it."""
    ratio = math.exp(change.size)
    return FoundChange(after=change.after, at=change.at, probability=change.probability, ratio=ratio)


def _seed(seed: int, number: int) -> int:
    """Every query has an order and a load of its own."""
    return int.from_bytes(digest("bisect", seed, number)[:8], "big") >> (64 - SEED_BITS)
