"""A record seen from one contrast: everything that text, page and report.json say, computed once for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from fairtrial.analyse.inference.shift import ShiftCurve
from fairtrial.analyse.models import Analysis, CellResult
from fairtrial.analyse.selection import Selection, as_run, select
from fairtrial.analyse.sequential import in_time
from fairtrial.metrics import fidelity
from fairtrial.metrics.fidelity import Fidelity
from fairtrial.metrics.latency import Distribution, merged_latency
from fairtrial.metrics.series import stability, throughput
from fairtrial.metrics.series.stability import Dip
from fairtrial.record import Record
from fairtrial.record.models import TrialRecord
from fairtrial.report import diagnostics, shifts
from fairtrial.report.background import Background, background
from fairtrial.report.diagnostics import DiagnosticTrial
from fairtrial.report.figures.thinning import thinned
from fairtrial.report.tables import MetricTable, metric_tables

BASELINE_COLOUR: Final = "#7f8c99"  # the baseline is what is known: grey; colours are for what is tried
POINTS_PER_FIGURE: Final = 6_000  # keeps a page of a dozen cells below 5 MiB
FEWEST_POINTS: Final = 20  # ten stretches: fewer tell no course
POINTS_PER_TRIAL: Final = 400  # more than a figure has pixels for
# Of two arms alike in hue, one is much darker, so that those who see fewer hues tell them apart too; none is paler on
# white than 3 : 1, or darker on the dark page than 2 : 1.
ARM_COLOURS: Final = (
    *("#d9622b", "#1a8f83", "#7a5fc0", "#c23b66", "#9c8420", "#2f78c4"),
    *("#5aa02c", "#7b401b", "#2e9bcb", "#8e1d78", "#d272ab", "#1f44b8"),
)


@dataclass(frozen=True)
class ContrastTrial:
    """A trial in the contrast.

    Attributes:
        slot: its place in time among all trials of the run.
        used: whether the contrast's estimates use it.
        fate: `used`, or why they do not.
    """

    trial: TrialRecord
    cell: str
    arm: str
    slot: int
    used: bool
    fate: str


@dataclass(frozen=True)
class ThroughputTimeline:
    """A trial's throughput over time: what is drawn of it, ramp-up included, and the dips of its measured window."""

    seconds: list[float]
    per_s: list[float]
    is_thinned: bool
    dips: list[Dip]


@dataclass(frozen=True)
class Scene:
    """What every form of a report is made from; each part is computed when it is first asked for.

    Attributes:
        written_as: the name the record's directory had when its report was written; empty for the name it has now.
    """

    record: Record
    analysis: Analysis
    written_as: str = ""

    @property
    def name(self) -> str:
        """The record's name in its report."""
        return self.written_as or self.record.directory.name

    @cached_property
    def trials(self) -> tuple[ContrastTrial, ...]:
        """Every trial that belongs to a cell of the contrast, in the order they were run."""
        slots = {each.trial.id: each.trial.position for each in as_run(self.record.plan, self.record.trials)}
        return tuple(
            ContrastTrial(
                trial=trial,
                cell=cell.cell,
                arm=trial.levels[self.analysis.contrast],
                slot=slots[trial.trial.id],
                used=trial.trial.id in self.used,
                fate=self.fate(trial),
            )
            for trial in self.record.trials
            for cell in self.analysis.cells
            if cell.levels.items() <= trial.levels.items() and self.analysis.contrast in trial.levels
        )

    @cached_property
    def _selection(self) -> Selection:
        plan, void = self.record.plan, self.record.voided_blocks
        kept = in_time(plan, self.record.trials, voided=void)
        return select(plan, kept, contrast=self.analysis.contrast, voided=void)

    @cached_property
    def used(self) -> frozenset[str]:
        """Ids of the trials that the contrast's estimates use."""
        return frozenset(each.trial.id for each in self._selection.used)

    @cached_property
    def _void(self) -> frozenset[tuple[str, int]]:
        return frozenset(self._selection.voided)

    @cached_property
    def _in_time(self) -> frozenset[str]:
        return frozenset(each.trial.id for each in self._selection.trials)

    def fate(self, trial: TrialRecord) -> str:
        """`used`, or why the contrast's estimates do not use a trial."""
        own = trial.trial
        if own.id in self.used:
            return "used"
        if trial.invalid_reason:
            return trial.invalid_reason
        if (own.cell, own.block) in self._void:
            return "its block was voided"
        if self.is_of_arm or own.id not in self._in_time:
            return "its round came after its cell's last"
        return f"only comparisons by {self.record.plan.arm} use its block"

    @cached_property
    def courses(self) -> dict[str, ThroughputTimeline]:
        """Throughput over time of every used trial that measured, by trial id."""
        timelines = {}
        for cell in self.analysis.cells:
            placed = self.of(cell)
            points = min(POINTS_PER_TRIAL, max(FEWEST_POINTS, POINTS_PER_FIGURE // max(1, len(placed))))
            for each in placed:
                if each.trial.window is not None:
                    directory = self.record.trial_directory(each.trial.trial.id)
                    whole, measured = throughput.course(directory, window=each.trial.window)
                    kept = thinned(whole.per_s, points=points)
                    by_second = throughput.merged(measured, interval_s=stability.SECOND_S)
                    timelines[each.trial.trial.id] = ThroughputTimeline(
                        seconds=whole.starts_s[kept].tolist(),
                        per_s=whole.per_s[kept].tolist(),
                        is_thinned=len(kept) < whole.n,
                        dips=stability.dips(by_second),
                    )
        return timelines

    @cached_property
    def whole_distributions(self) -> dict[str, Distribution]:
        """All transaction types of a trial together, of trials that have latencies."""
        names = (trial.trial.id for trial in self.record.trials)
        distributions = {name: merged_latency.whole(self.record.trial_directory(name)) for name in names}
        return {name: whole for name, whole in distributions.items() if whole is not None}

    @cached_property
    def dips(self) -> dict[str, list[Dip]]:
        """The dips of every used trial, by trial id."""
        return {trial: course.dips for trial, course in self.courses.items()}

    @cached_property
    def tables(self) -> tuple[MetricTable, ...]:
        """A table per analysed metric."""
        return metric_tables(self.analysis)

    @cached_property
    def background(self) -> Background:
        """Everything a report says besides results."""
        return background(self.record, contrast=self.analysis.contrast)

    @cached_property
    def fidelity(self) -> tuple[Fidelity, ...]:
        """What the record's drives drew."""
        return fidelity.of_record(self.record)

    @cached_property
    def diagnostics(self) -> list[DiagnosticTrial]:
        """What the probes of every diagnostic trial gave."""
        return diagnostics.of_record(self.record)

    @cached_property
    def curves(self) -> tuple[ShiftCurve, ...]:
        """How the arms shift latency."""
        return shifts.of_record(self.record, self.analysis, self.whole_distributions)

    @property
    def is_of_arm(self) -> bool:
        """Whether the contrast is the study's own: diagnostic trials are of its arms."""
        return self.analysis.contrast == self.record.plan.arm

    @property
    def colours(self) -> dict[str, str]:
        """Colour by arm, baseline first; more arms than colours go round, and figures tell them apart by marks too."""
        arms = self.analysis.levels[1:]
        return {self.analysis.levels[0]: BASELINE_COLOUR} | {
            arm: ARM_COLOURS[index % len(ARM_COLOURS)] for index, arm in enumerate(arms)
        }

    def of(self, cell: CellResult, *, used_only: bool = True) -> tuple[ContrastTrial, ...]:
        """The cell's trials."""
        return tuple(placed for placed in self.trials if placed.cell == cell.cell and (placed.used or not used_only))
