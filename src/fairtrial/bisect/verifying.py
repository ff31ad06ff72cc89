"""Is a bisection what its records give? Every query's log ratios, every posterior, every decision, the answer."""

from __future__ import annotations

from pathlib import Path

from pydantic_core import from_json

from fairtrial import foreign, record, verify
from fairtrial.bisect import journal, wording
from fairtrial.bisect.deciding import Answer, History, decide
from fairtrial.bisect.loop import found_change
from fairtrial.bisect.models import Answered, Bisection, Confirmed, Event, Measured, Queried
from fairtrial.bisect.reading import (
    BLOCKS,
    CONFIRMATION,
    block_seconds,
    confirmation,
    log_ratios,
    question,
    result,
    shares,
    summary,
    take,
)

RESULT = "bisect.json"
TEXT = "bisect.txt"


def recompute(directory: Path) -> list[str]:
    """One sentence per mismatch; empty if everything follows from the raw files of the records.

    Raises:
        RecordError: not a bisection, or a damaged one.
    """
    bisection, events = question(directory), journal.events(directory)
    mismatches: list[str] = []
    history = History(len(bisection.versions))
    for event in events:
        mismatches += _step(directory, event, bisection=bisection, history=history)
        take(history, event)
        if isinstance(event, Measured):
            mismatches += _differences(event, "believed", summary(history))
    mismatches += _answer(bisection, events, history)
    return mismatches + _files(directory, bisection, events)


def records(directory: Path) -> list[Path]:
    """Every record of a bisection, in the order they were begun."""
    found = [*sorted((directory / BLOCKS).glob("*")), *sorted(directory.glob(CONFIRMATION.format(number="*")))]
    return [path for path in found if (path / "plan.json").exists()]


def _step(directory: Path, event: Event, *, bisection: Bisection, history: History) -> list[str]:
    if isinstance(event, Queried):
        step = decide(history, bisection.limits)
        asked = None if isinstance(step, Answer) else (step.version, step.blocks, step.ends)
        if asked != (event.version, event.blocks, event.ends):
            return [f"journal.jsonl: query {event.number} is of version {event.version} but recomputed {asked}"]
    if isinstance(event, Measured):
        of = _read(directory / BLOCKS / f"{event.number:04}")
        if isinstance(of, str):
            return [of]
        name = bisection.versions[event.version].name
        again = {
            "log_ratios": log_ratios(of, bisection, version=name),
            "shares": [list(pair) for pair in shares(of, bisection, version=name)],
            "seconds": block_seconds(of),
        }
        return [text for what, value in again.items() for text in _differences(event, what, value)]
    if isinstance(event, Confirmed):
        of = _read(directory / CONFIRMATION.format(number=event.number))
        if isinstance(of, str):
            return [of]
        return _confirmation(of, event, bisection=bisection, history=history)
    return []


def _read(directory: Path) -> record.Record | str:
    """A record whose files are what was written and whose numbers follow from them; else what is wrong."""
    if not (directory / "plan.json").exists():
        return f"{directory.name} is missing"
    of = record.read(directory)
    wrong = record.verify_hashes(of) or verify.recompute(of)
    return f"{directory.parent.name}/{directory.name}: {wrong[0]}" if wrong else of


def _confirmation(of: record.Record, event: Confirmed, *, bisection: Bisection, history: History) -> list[str]:
    step = decide(history, bisection.limits)
    changes = step.changes if isinstance(step, Answer) else ()
    if event.number > len(changes):
        return [f"journal.jsonl: confirmation {event.number} is of a change that is not recomputed"]
    again = confirmation(of, bisection, number=event.number, change=found_change(changes[event.number - 1]))
    if "confidence" not in event.model_fields_set:  # journals of before did not say it
        again = again.model_copy(update={"confidence": event.confidence})
    texts = verify.differences(event.model_dump(mode="json"), again.model_dump(mode="json"))
    return [f"journal.jsonl: confirmation {event.number}: {text}" for text in texts]


def _answer(bisection: Bisection, events: list[Event], history: History) -> list[str]:
    stored = next((event for event in events if isinstance(event, Answered)), None)
    if stored is None:
        return []
    step = decide(history, bisection.limits)
    if not isinstance(step, Answer):
        return [f"journal.jsonl: answered {stored.outcome} but recomputed no answer yet"]
    again = Answered(outcome=step.outcome, changes=[found_change(each) for each in step.changes])
    texts = verify.differences(stored.model_dump(mode="json"), again.model_dump(mode="json"))
    return [f"journal.jsonl: answer: {text}" for text in texts]


def _files(directory: Path, bisection: Bisection, events: list[Event]) -> list[str]:
    if not (directory / RESULT).is_file():
        return []
    again = result(bisection, events)
    try:
        stored = from_json(foreign.read(directory / RESULT))
    except (OSError, ValueError) as error:
        return [f"{RESULT}: cannot be read: {error}"]
    texts = verify.differences(stored, again.model_dump(mode="json"))
    mismatches = [f"{RESULT}: {text}" for text in texts]
    text = directory / TEXT
    if not mismatches and (not text.is_file() or text.read_text(encoding="utf-8") != wording.render(again)):
        mismatches.append(f"{TEXT}: does not match {RESULT}")
    return mismatches


def _differences(event: Measured, name: str, again: object) -> list[str]:
    stored = event.model_dump(mode="json").get(name, [])
    computed = again.model_dump(mode="json") if hasattr(again, "model_dump") else again
    return [f"journal.jsonl: query {event.number}: {name}: {text}" for text in verify.differences(stored, computed)]
