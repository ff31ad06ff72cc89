"""What an A/A run says of its place, and what a later report says of the place's noise.

Owns the shape of the profile that is kept at a place and stands in `report.json`. All figures are on natural logarithms
of a metric's values, so that 0.01 is very nearly 1 %.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from fairtrial.analyse.result import Result

WHOLE: Final = ""  # as a size: the study as it is, in none of its sizes
SizeIfKnown = Annotated[str | None, Field(exclude_if=lambda size: size is None)]


class Rate(Result):
    """How many of some tests rejected, with the exact (Clopper-Pearson) interval of the rate; None without tests."""

    rejected: int
    tests: int
    rate: float | None
    low: float | None
    high: float | None


class Uniformity(Result):
    """Kolmogorov-Smirnov test of p values against the uniform distribution they have where nothing differs."""

    n: int
    statistic: float
    p: float


class SlotEffect(Result):
    """The second trial of a block against the first, whatever its label: a ratio with Student's interval."""

    ratio: float
    low: float
    high: float
    p: float


class MetricNoise(Result):
    """One metric in one cell of an A/A run.

    Attributes:
        blocks: that have both labels.
        trial_sd: between trials of a block (within-block component).
        block_sd: between blocks, beyond what trials alone would give; 0 if less than that.
        slot: effect of the position within the block; None if it cannot be computed.
        autocorrelation: lag 1, over all trials of the cell in the order they ran; None if nothing varies.
        autocorrelation_limit: what independent trials exceed, in either direction, 1 time in 20 (about).
        pair_sd: standard deviation of the log ratios of blocks.
        pair_sd_upper: its upper bound, one-sided, at `PILOT_CONFIDENCE`.
        ratio: second label over first: what differed, though nothing does.
        floor: half the width of the 95 % interval of that ratio, as a share.
        p: of the paired t test on logs.
    """

    cell: str
    metric: str
    blocks: int
    trial_sd: float
    block_sd: float
    slot: SlotEffect | None
    autocorrelation: float | None
    autocorrelation_limit: float
    pair_sd: float
    pair_sd_upper: float
    ratio: float
    floor: float
    p: float


class NoiseProfile(Result):
    """An A/A run's noise: what this place says when it is asked the same thing twice.

    Attributes:
        study: whose baseline ran against itself.
        size: which size of the study that was, or `WHOLE`, in a profile that is kept at a place; None and left out in a
            report, whose record says it, and in what earlier versions kept.
        date: when its last trial ended, ISO 8601.
        blocks: per cell, planned.
        workload, system: kinds of the baseline, for choosing a profile that resembles a later study.
        kernel: of the place, empty if it is not known.
        metrics: of every cell and metric with positive values and at least three whole blocks.
        left_out: `metric in cell` of those without.
        alpha: level at which tests of the rates below reject.
        uniformity: of the p values of all cells and metrics; None with fewer than two.
        false_positives: of all cells and metrics. Metrics of one trial are not independent of each other.
        resampled: the same tests after swapping the two labels at random within blocks, many times; the interval is
            that of the resampling and takes this run's noise as given.
    """

    study: str
    size: SizeIfKnown = None
    date: str
    blocks: int
    workload: str
    system: str
    kernel: str = ""
    metrics: tuple[MetricNoise, ...]
    left_out: tuple[str, ...]
    alpha: float
    uniformity: Uniformity | None
    false_positives: Rate
    resampled: Rate


class NoiseFloor(Result):
    """The noise floor of one place beside one metric in one cell of a later report.

    Attributes:
        place: its name.
        share: half the width that the 95 % interval of an A/A ratio has with `at_blocks` blocks.
        aa_blocks, date, study, cell: of the A/A run that says so.
        size: as the profile says it.
        same_study: whether that was this study in this size, as far as the profile says; others' noise is a hint only.
    """

    cell: str
    metric: str
    place: str
    share: float
    at_blocks: int
    aa_blocks: int
    aa_cell: str
    date: str
    study: str
    size: SizeIfKnown = None
    same_study: bool
