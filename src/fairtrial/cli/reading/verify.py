"""`fairtrial verify`: is the record what was written, and do its numbers follow from its raw files?"""

from __future__ import annotations

import sys
from pathlib import Path

from fairtrial import record
from fairtrial import verify as recomputation
from fairtrial.cli.terminal import say
from fairtrial.record import consistency
from fairtrial.record.reader import refuse_links

FINDING = 1
TUNING = "tune.jsonl"
BISECTION = "bisection.json"


def verify(directory: Path) -> None:
    """Prints every mismatch; exits with 1 if there is one."""
    for name, of_searches in ((TUNING, _tuning), (BISECTION, _bisection)):
        if (directory / name).exists():
            refuse_links(directory)
            of_searches(directory)
            return
    run = record.read(directory)
    consistency.require_whole(run.plan, run.planned, directory)
    mismatches = record.verify_hashes(run)
    if not mismatches:  # a changed file makes every number below it differ: one cause, one message
        mismatches = recomputation.recompute(run)
    for mismatch in mismatches:
        say(mismatch)
    files = sum(len(event.files) for event in run.events if event.event == "trial_finished")
    if mismatches:
        print(f"{len(mismatches)} mismatch{'' if len(mismatches) == 1 else 'es'} in {directory}")
        sys.exit(FINDING)
    drawn = "; figures/*.svg are not compared" if any((directory / "report").rglob("*.svg")) else ""
    print(f"{directory}: {len(run.committed)} trials, {files} files unchanged, every reported number recomputed{drawn}")


def _tuning(directory: Path) -> None:
    """The same of a tuning: its journal, its result and the records of all its runs."""
    from fairtrial.tune import result, verifying

    tuning = result.read(directory)
    mismatches = verifying.recompute(tuning)
    for mismatch in mismatches:
        say(mismatch)
    if mismatches:
        sys.exit(FINDING)
    trials = sum(len(each.committed) for each in tuning.records)
    print(f"{directory}: {len(tuning.records)} runs, {trials} trials, every decision and reported number recomputed")


def _bisection(directory: Path) -> None:
    """The same of a bisection: its journal, its result and the records of all its blocks."""
    from fairtrial.bisect import verifying

    mismatches = verifying.recompute(directory)
    for mismatch in mismatches:
        say(mismatch)
    if mismatches:
        sys.exit(FINDING)
    records = len(verifying.records(directory))
    print(f"{directory}: {records} records, every posterior, every decision and every reported number recomputed")
