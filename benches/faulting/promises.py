"""What a record promises whatever happens: asked in forks, as reading one uses threads."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from fairtrial import record
from fairtrial.record.models import TrialFinished, TrialRecord

# What a record that was cut off says of a whole trial without a line, and of files that had no time to be written.
PENDING = ("--resume adds complete trials", "the journal has the original", "write it again with `fairtrial report`")


def finished(directory: Path) -> list[str]:
    """Trials that the journal calls finished, in order; none of a run that has not begun."""
    if not (directory / "journal.jsonl").exists():
        return []
    return [event.trial for event in record.read(directory).events if isinstance(event, TrialFinished)]


def of_interrupted(directory: Path) -> tuple[bool, list[str]]:
    """Whether a run has come to its end, and what is wrong with its record: it may lack its end, and nothing else."""
    if not (directory / "journal.jsonl").exists():
        return False, []
    found = record.read(directory)
    wrong = [each for each in _damaged(found) if not each.endswith(PENDING)]
    wrong += [f"called finished: {each}" for each in (_owed(found) if found.finished else ())]
    return found.finished, wrong


def of_finished(directory: Path, known: list[str]) -> list[str]:
    """What is wrong with a record that went on to its end.

    Args:
        directory: of the record.
        known: what it once called finished.
    """
    found = record.read(directory)
    names = finished(directory)
    wrong = [] if found.finished else ["not finished"]
    wrong += [f"lost: {name}" for name in sorted(set(known) - set(names))]
    wrong += [f"doubled: {name}" for name in sorted({name for name in names if names.count(name) > 1})]
    wrong += _owed(found)
    wrong += [f"left: trials/{path.name}" for path in (directory / "trials").glob(".*")]
    wrong += [f"{trial.trial.id} is invalid without a reason" for trial in _invalid(found) if not trial.invalid_reason]
    return wrong + [each for each in _damaged(found) if not each.endswith(PENDING[2:])]


def of_unharmed(directory: Path) -> list[str]:
    """What a run shows of a fault that must not concern it: it lost a trial, or had to go on."""
    found = record.read(directory)
    wrong = [f"{trial.trial.id} is invalid: {trial.invalid_reason}" for trial in _invalid(found)]
    return wrong + ([] if len(finished(directory)) == len(found.plan.trials) else ["more or fewer trials than planned"])


def of_noticed(directory: Path) -> list[str]:
    """Nothing where a trial is invalid: the one whose load was killed."""
    return [] if _invalid(record.read(directory)) else ["a load was killed, and every trial is called valid"]


def _damaged(found: record.Record) -> list[str]:
    from fairtrial import verify  # noqa: PLC0415 - loads slowly, and only for whole runs

    return record.verify_hashes(found) or verify.recompute(found)


def _invalid(found: record.Record) -> list[TrialRecord]:
    return [trial for trial in found.committed if not trial.valid]


def _owed(found: record.Record) -> list[str]:
    """Blocks that are not whole, and how many are missing."""
    voided = {(event.cell, event.block) for event in found.voided}
    blocks: dict[tuple[str, int], list[TrialRecord]] = defaultdict(list)
    for trial in found.trials:
        key = trial.trial.cell, trial.trial.block
        if key not in voided:
            blocks[key].append(trial)
    arms = sorted(found.plan.factors[found.plan.arm])
    wrong = [
        f"block {block} of {cell} counts and is not whole"
        for (cell, block), trials in blocks.items()
        if sorted(trial.trial.arm for trial in trials) != arms or not all(trial.valid for trial in trials)
    ]
    planned = found.plan.design.blocks * len(found.plan.cells)
    return wrong + ([f"{len(blocks)} blocks instead of {planned}"] if len(blocks) != planned else [])


def of_cut(directory: Path, reported: list[str], *, all_there: bool) -> list[str]:
    """Takes a record up that lost power, or the end of its journal, and says what is wrong with it then.

    Args:
        directory: of the record.
        reported: what had been called finished, durably.
        all_there: whether every trial is on the disk, with or without its line.
    """
    if not (directory / "plan.json").exists():
        return [f"lost with its run: {name}" for name in reported]
    before = set(finished(directory))
    record.resume(directory).close()
    names = finished(directory)
    whole = {path.name for path in (directory / "trials").iterdir()}
    wrong = [f"lost: {name}" for name in sorted((set(reported) | before) - set(names))]
    wrong += [f"doubled: {name}" for name in sorted({name for name in names if names.count(name) > 1})]
    wrong += [f"not taken up: {name}" for name in sorted(whole - set(names))] if all_there else []
    damaged = record.verify_hashes(record.read(directory))
    return wrong + [each for each in damaged if not each.endswith(PENDING)]
