"""Whether a trial's raw files tell the same story. The run asks when it commits a trial, and `verify` asks again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairtrial.errors import RecordError
from fairtrial.metrics.latency import merged_latency
from fairtrial.workloads.workload import Workload


def contradictions(directory: Path, workload: Workload[Any]) -> list[str]:
    """Where the files in `directory` disagree, a sentence each; empty if nowhere.

    Args:
        directory: of a trial that measured, with its latencies added up.
        workload: what wrote the files.

    Raises:
        PlaceError: what a program printed is not that program's output.
        RecordError: a file is missing, cut or damaged.
    """
    try:
        return [*merged_latency.contradictions(directory), *workload.contradictions(directory)]
    except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"cannot compare the files: {error!r}", hint="restore the trial from a backup") from error
