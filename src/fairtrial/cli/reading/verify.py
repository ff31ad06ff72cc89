"""`fairtrial verify`: is the record what was written, and do its numbers follow from its raw files?"""

from __future__ import annotations

import sys
from pathlib import Path

from fairtrial import record
from fairtrial import verify as recomputation

FINDING = 1


def verify(directory: Path) -> None:
    """Prints every mismatch; exits with 1 if there is one."""
    run = record.read(directory)
    mismatches = record.verify_hashes(run)
    if not mismatches:  # a changed file makes every number below it differ: one cause, one message
        mismatches = recomputation.recompute(run)
    for mismatch in mismatches:
        print(mismatch)
    files = sum(len(event.files) for event in run.events if event.event == "trial_finished")
    if mismatches:
        print(f"{len(mismatches)} mismatch{'' if len(mismatches) == 1 else 'es'} in {directory}")
        sys.exit(FINDING)
    print(f"{directory}: {len(run.committed)} trials, {files} files unchanged, every reported number recomputed")
