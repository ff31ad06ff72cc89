"""The Python API: a run's directory as Polars frames, for notebooks and papers.

```python
run = fairtrial.read("runs/sqlite-wal-20261120T220000Z")
run.trials.filter("used").group_by("arm").agg(pl.col("throughput_tpm").mean())
```
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from fairtrial import record as records
from fairtrial.analyse.models import Analysis
from fairtrial.errors import InputError, Problem
from fairtrial.metrics import frames, latency
from fairtrial.metrics.latency import Distribution
from fairtrial.record import Record
from fairtrial.record.models import Plan

__all__ = ["RunFrames", "read"]


@dataclass(frozen=True)
class RunFrames:
    """A run, read. Frames are made when first asked for and kept.

    Attributes:
        record: the record itself: journal, places, trials as models.
    """

    record: Record

    @property
    def plan(self) -> Plan:
        """plan.json: the study, fully resolved."""
        return self.record.plan

    @cached_property
    def trials(self) -> pl.DataFrame:
        """One row per trial, in the order they were run; see `metrics.frames.trials`.

        `used` says whether estimates use the trial: it is valid, and so is every other trial of its block.
        """
        return frames.trials(self.record)

    @cached_property
    def timelines(self) -> pl.DataFrame:
        """Rates per interval of every trial, ramp-up included (`measured` tells); see `metrics.frames.timelines`."""
        return frames.timelines(self.record, measured_only=False)

    def telemetry(self, source: str) -> pl.DataFrame:
        """Every trial's samples of one source (`cpu`, `memory`, `vmstat`, `disks`, `pressure`, `process-<name>`).

        Returns:
            `trial`, `cell`, `arm`, `second` (since the measured window began) and the source's rates and levels.

        Raises:
            InputError: no trial has telemetry of that source.
        """
        known = sorted({name for trial in self.record.trials for name in trial.telemetry})
        if source not in known:
            raise _unknown("source of telemetry", source, known)
        return frames.telemetry(self.record, source)

    def latency(self, trial: str | None = None, type: str | None = None) -> pl.DataFrame:  # noqa: A002 - the word of the field
        """A latency distribution, from merged histogram counts.

        Args:
            trial: one trial's id; all used trials together if left out.
            type: one transaction type (`new_order`, …); all types together if left out.

        Returns:
            `lowest_ns`, `highest_ns`, `count`, `share_up_to`; one row per value class of 3 significant digits.

        Raises:
            InputError: no such trial or type.
        """
        used = [each.trial.id for each in frames.used_trials(self.record)]
        if trial is not None and trial not in self._distributions:
            raise _unknown("trial", trial, sorted(self._distributions))
        by_type = [self._distributions[each] for each in ([trial] if trial is not None else used)]
        known = sorted({name for types in by_type for name in types})
        if type is not None and type not in known:
            raise _unknown("transaction type", type, known)
        chosen = [one for types in by_type for name, one in types.items() if type in (None, name)]
        return frames.distribution_frame(latency.merged(chosen))

    def analyse(self, contrast: str | None = None) -> Analysis:
        """The verdicts, as `fairtrial report` computes them; `contrast` compares another factor than the arm."""
        from fairtrial.report.analysing import analysed  # noqa: PLC0415 - SciPy is slow to load

        return analysed(self.record, contrast=contrast)

    @cached_property
    def _distributions(self) -> dict[str, dict[str, Distribution]]:
        return frames.distributions(self.record)


def read(directory: str | Path) -> RunFrames:
    """Reads a run's directory.

    Raises:
        RecordError: it is not a record, or a damaged one.
    """
    return RunFrames(record=records.read(Path(directory)))


def _unknown(what: str, name: str, known: list[str]) -> InputError:
    return InputError([Problem(message=f"no {what} `{name}`", file="")], hint=f"one of: {', '.join(known) or 'none'}")
