"""Recomputes what a tuning's journal and result say from the raw files of its records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic_core import from_json

from fairtrial import foreign, record
from fairtrial import study as language
from fairtrial import verify as recomputation
from fairtrial.catalogue import catalogue
from fairtrial.record import Record
from fairtrial.record.files import MERGED
from fairtrial.study.tree.nodes import plain
from fairtrial.study.tuning import DEFAULT
from fairtrial.study.tuning.levels import overlay
from fairtrial.tune import measuring, planning
from fairtrial.tune.events import ConfirmationPlanned, Told
from fairtrial.tune.result import TuneRecord, result
from fairtrial.tune.searching import arm, confirmation_of, tuning_of

RESULT: Final = "report/tune.json"


def recompute(tuning: TuneRecord) -> list[str]:
    """Every mismatch between what is stored and what the raw files give; empty if there is none."""
    mismatches = [text for each in tuning.records for text in _of_record(each, tuning.directory)]
    if mismatches:
        return mismatches  # what is decided from a changed record differs, too: one cause, one message
    return [*_proposed(tuning), *_told(tuning), *_decided(tuning), *_result(tuning)]


def _of_record(each: Record, directory: Path) -> Iterator[str]:
    name = each.directory.relative_to(directory)
    found = record.verify_hashes(each) or recomputation.recompute(each)
    yield from (f"{name}/{text}" for text in found)


def _proposed(tuning: TuneRecord) -> Iterator[str]:
    """The journal's values are what ran."""
    options, base = tuning_of(tuning.study), tuning.study.base
    proposed = {arm(number): each for number, each in tuning.course.proposed.items()}
    for found in tuning.records:
        merged = language.load(found.directory / MERGED, catalogue=catalogue(), recorded=True)
        for name, level in (each for factor in merged.factors for each in factor.levels):
            known = proposed.get(name)
            if name != DEFAULT and (known is None or plain(overlay(options, base, known.values)) != plain(level)):
                run = found.directory.relative_to(tuning.directory)
                yield f"tune.jsonl: {name}: {known.values if known else 'not proposed'}, but {run} has other values"


def _told(tuning: TuneRecord) -> Iterator[str]:
    for number, stored in tuning.course.told.items():
        found = tuning.search.get(number)
        if found is None and stored.state == "failed":
            continue  # its values were refused before anything ran
        if found is None:
            yield f"proposal {number}: its record is missing"
            continue
        again = measuring.told(number, measuring.pairs(found)[arm(number)], reason=stored.reason)
        yield from _differing(f"proposal {number}", stored, again)


def _differing(what: str, stored: Told | ConfirmationPlanned, again: Told | ConfirmationPlanned) -> Iterator[str]:
    found = recomputation.differences(stored.model_dump(mode="json"), again.model_dump(mode="json"))
    yield from (f"tune.jsonl: {what}: {text}" for text in found)


def _decided(tuning: TuneRecord) -> Iterator[str]:
    course = tuning.course
    if course.shortlisted is not None:
        again = planning.shortlist(course.proposed, course.told.values(), course.started.stages)
        if again != course.shortlisted:
            yield f"tune.jsonl: {course.shortlisted.numbers} were measured again, recomputed {again.numbers}"
    if course.planned is not None and tuning.again is not None:
        study = tuning.study
        fewest = planning.fewest_of(course.planned)
        planned = confirmation_of(measuring.pairs(tuning.again), study, tuning_of(study), fewest=fewest)
        yield from _differing("confirmation", course.planned, planned)


def _result(tuning: TuneRecord) -> Iterator[str]:
    path = tuning.directory / RESULT
    if path.is_file():
        try:
            stored = from_json(foreign.read(path))
        except (OSError, ValueError) as error:
            yield f"{RESULT}: cannot be read: {error}"
            return
        again = result(tuning).model_dump(mode="json")
        yield from (f"{RESULT}: {text}" for text in recomputation.differences(stored, again))
