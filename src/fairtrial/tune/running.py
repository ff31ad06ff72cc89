"""One run of a tuning: a study of the default and some proposals, compiled, run by the ordinary loop, recorded."""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue
from ruamel.yaml import YAML

from fairtrial import plan as planning
from fairtrial import record
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.errors import FairtrialError, InputError, SystemStartError
from fairtrial.plan.shuffling import block_seed
from fairtrial.record import Record, Writer
from fairtrial.record import journal as records
from fairtrial.record.models import Plan, TrialStarted
from fairtrial.run import Progress, Run, watched
from fairtrial.study import Factor, Study
from fairtrial.study.resolved import Section
from fairtrial.study.tuning import ARM, DEFAULT, Value
from fairtrial.study.tuning.levels import named_defaults, overlay

RETRIES: Final = 1  # blocks of the search that are replaced when a trial of theirs is invalid
MERGED: Final = "study.merged.yaml"


@dataclass(frozen=True)
class Blocks:
    """What one run compares.

    Attributes:
        name: of the run's directory, below the tuning's; the order and the load's seed follow from it.
        arms: values by arm, beside the default's.
        blocks: of each.
        retries: blocks that may be lost and replaced; None for as many as there are.
    """

    name: str
    arms: Mapping[str, Mapping[str, Value]]
    blocks: int
    retries: int | None = None


@dataclass
class Runner:
    """Runs blocks of a study that tunes.

    Attributes:
        directory: of the tuning.
        study: as merged.
        seed: of the search.
        progress: who is told of trials.
        examined: places whose fitness was looked at; it takes a second each time.
        known: what earlier runs found out at a place.
    """

    directory: Path
    study: Study
    seed: int
    progress: Progress
    examined: set[Section] = field(default_factory=set)
    known: dict[Section, dict[str, JsonValue]] = field(default_factory=dict)

    def text(self, blocks: Blocks) -> str:
        """The study of these blocks, complete: `fairtrial run` takes it, too."""
        tuning = self.study.file.tune
        assert tuning is not None  # noqa: S101 - only such studies come here
        base = self.study.base
        levels = {DEFAULT: overlay(tuning, base, named_defaults(tuning))}
        levels |= {arm: overlay(tuning, base, values) for arm, values in blocks.arms.items()}
        file = self.study.file.model_copy(update={"tune": None})
        plain = replace(self.study, file=file, factors=(Factor(ARM, tuple(levels.items())),))
        yaml = YAML()
        document: dict[str, Any] = yaml.load(language.dump(plain))
        document["trials"] |= {"blocks": blocks.blocks, "seed": block_seed(self.seed, "tune", _number(blocks.name))}
        if blocks.retries is not None:
            document["trials"]["voided_limit"] = blocks.retries
        stream = io.StringIO()
        yaml.width = 4096
        yaml.dump(document, stream)
        return stream.getvalue()

    def plan(self, blocks: Blocks) -> Plan:
        """What these blocks would run."""
        return planning.make(_loaded(self.text(blocks)), catalogue=catalogue())

    def run(self, blocks: Blocks) -> Record:
        """Runs the blocks to their end, or goes on with them.

        Raises:
            FairtrialError: they cannot go on; what is finished stays.
            KeyboardInterrupt: the user stopped them.
        """
        directory = self.directory / blocks.name
        if not (directory / "plan.json").exists():  # killed before it was begun
            shutil.rmtree(directory, ignore_errors=True)
            writer = self._created(directory, blocks)
        elif (directory / records.NAME).exists() and (found := record.read(directory)).finished:
            return found
        else:
            writer = record.resume(directory)
        self._execute(writer)
        return record.read(directory)

    def _created(self, directory: Path, blocks: Blocks) -> Writer:
        text = self.text(blocks)
        study = _loaded(text)
        sources = {"study.yaml": text, MERGED: language.dump(study)}
        return record.create(directory, plan=planning.make(study, catalogue=catalogue()), sources=sources)

    def _execute(self, writer: Writer) -> None:
        try:
            with watched(writer.directory, self.progress) as progress:
                source = partial(_read, writer.directory / MERGED)
                Run(writer=writer, progress=progress, study=source, examined=self.examined, known=self.known).execute()
        finally:
            writer.close()


def is_the_proposals_fault(error: FairtrialError, run: Path) -> bool:
    """Whether values of options made a run end, not the machine: they are refused, or their trials are invalid."""
    if not (run / records.NAME).exists():
        return isinstance(error, InputError)
    found = record.read(run)
    arms = [event.trial.arm for event in found.events if isinstance(event, TrialStarted)]
    refused = isinstance(error, InputError | SystemStartError) and arms[-1:] != [DEFAULT]
    return refused or len(found.voided) > found.plan.design.voided_limit


def _number(name: str) -> int:
    """A number of its own for every run of a tuning."""
    digits = name.rpartition("/")[2]
    return int(digits) if digits.isdigit() else -len(name)


def _loaded(text: str) -> Study:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "study.yaml"
        path.write_text(text, encoding="utf-8")
        return _read(path)


def _read(path: Path) -> Study:
    return language.load(path, catalogue=catalogue())
