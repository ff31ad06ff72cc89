"""A record seen from one contrast: which trial belongs to which of its cells and arms. Read once, drawn many times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import polars as pl

from fairtrial.analyse.models import Analysis, CellResult
from fairtrial.metrics import frames, latency
from fairtrial.metrics.latency import Distribution
from fairtrial.metrics.series import stability, timeline
from fairtrial.metrics.series.stability import Dip
from fairtrial.record import Record
from fairtrial.record.models import TrialRecord

BASELINE_COLOUR: Final = "#7f8c99"  # the baseline is what is known: grey; colours are for what is tried
ARM_COLOURS: Final = ("#d9622b", "#1a8f83", "#7a5fc0", "#c23b66", "#9c8420", "#2f78c4")


@dataclass(frozen=True)
class Placed:
    """A trial in the contrast. `used` says whether estimates use it."""

    trial: TrialRecord
    cell: str
    arm: str
    used: bool


@dataclass(frozen=True)
class Scene:
    """What every figure draws from."""

    record: Record
    analysis: Analysis

    @cached_property
    def trials(self) -> tuple[Placed, ...]:
        """Every trial that belongs to a cell of the contrast, in the order they were run."""
        used = {trial.trial.id for trial in frames.used_trials(self.record)}
        return tuple(
            Placed(
                trial=trial,
                cell=cell.cell,
                arm=trial.levels[self.analysis.contrast],
                used=trial.trial.id in used,
            )
            for trial in self.record.trials
            for cell in self.analysis.cells
            if cell.levels.items() <= trial.levels.items() and self.analysis.contrast in trial.levels
        )

    def timeline(self, trial: TrialRecord) -> pl.DataFrame:
        """`second` and `transactions_per_s` of a trial's intervals, ramp-up included; no rows if it did not measure."""
        if trial.window is None:
            return pl.DataFrame(schema={"second": pl.Float64, "transactions_per_s": pl.Float64})
        directory = self.record.trial_directory(trial.trial.id)
        rates = timeline.rates(directory, window=trial.window, measured_only=False)
        return rates.select("second", "transactions_per_s")

    @cached_property
    def distributions(self) -> dict[str, dict[str, Distribution]]:
        """`frames.distributions`."""
        return frames.distributions(self.record)

    @cached_property
    def whole_distributions(self) -> dict[str, Distribution]:
        """All transaction types of a trial together, of trials that have latencies."""
        return {trial: latency.merged(found.values()) for trial, found in self.distributions.items() if found}

    @cached_property
    def dips(self) -> dict[str, list[Dip]]:
        """The dips of every trial that measured, by trial id."""
        return {
            trial.trial.id: stability.dips(
                stability.seconds(self.record.trial_directory(trial.trial.id), window=trial.window)
            )
            for trial in self.record.trials
            if trial.window is not None
        }

    @property
    def colours(self) -> dict[str, str]:
        """Colour by arm, baseline first."""
        arms = self.analysis.levels[1:]
        return {self.analysis.levels[0]: BASELINE_COLOUR} | {
            arm: ARM_COLOURS[index % len(ARM_COLOURS)] for index, arm in enumerate(arms)
        }

    def of(self, cell: CellResult, *, used_only: bool = True) -> tuple[Placed, ...]:
        """The cell's trials."""
        return tuple(placed for placed in self.trials if placed.cell == cell.cell and (placed.used or not used_only))
