"""One run of a tuning: a study of the default and some proposals, compiled, run by the ordinary loop, recorded."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue
from ruamel.yaml import YAML

from fairtrial import plan as planning
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.plan.shuffling import block_seed
from fairtrial.queries import loaded, run_whole
from fairtrial.record import Record, Writer
from fairtrial.record.files import MERGED
from fairtrial.record.models import Plan
from fairtrial.run import Progress, Run
from fairtrial.study import Factor, Study
from fairtrial.study.resolved import Section
from fairtrial.study.tuning import ARM, DEFAULT, Value
from fairtrial.study.tuning.levels import named_defaults, overlay

RETRIES: Final = 1  # blocks of the search that are replaced when a trial of theirs is invalid


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
        return planning.make(loaded(self.text(blocks)), catalogue=catalogue())

    def run(self, blocks: Blocks) -> Record:
        """Runs the blocks to their end, or goes on with them.

        Raises:
            FairtrialError: they cannot go on; what is finished stays.
            KeyboardInterrupt: the user stopped them.
        """
        only = next(iter(blocks.arms)) if len(blocks.arms) == 1 else ""
        return run_whole(self.directory / blocks.name, partial(self.text, blocks), self._conduct, arm=only)

    def _conduct(self, writer: Writer) -> None:
        source = partial(language.load, writer.directory / MERGED, catalogue=catalogue())
        Run(writer=writer, progress=self.progress, study=source, examined=self.examined, known=self.known).execute()


def _number(name: str) -> int:
    """A number of its own for every run of a tuning."""
    digits = name.rpartition("/")[2]
    return int(digits) if digits.isdigit() else -len(name)
