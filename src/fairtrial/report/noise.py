"""The noise of a place in words and rows: an A/A run's own profile, and the floor beside the effects of other runs."""

from __future__ import annotations

from typing import Final

from fairtrial.analyse.models import Analysis
from fairtrial.analyse.noise.models import MetricNoise, NoiseFloor, NoiseProfile, Rate
from fairtrial.report import numbers
from fairtrial.words import counted

HEADER: Final = (
    "metric", "cell", "blocks", "trial sd", "block sd", "pair sd", "upper bound", "floor", "slot", "lag-1", "ratio",
    "p",
)  # fmt: skip
LEFT: Final = 2
LEGEND: Final = (
    "In percent, on logarithms: sd between trials of a block, between blocks beyond that, and of the log ratios of "
    "blocks with its upper confidence bound (one-sided, 80 %), which planning uses. Floor: half the 95 % interval of "
    "a ratio of the baseline to itself. Slot: the second trial of a block over the first; * where its interval "
    "excludes 0. Lag-1: autocorrelation in the order in which the trials ran; * where only 1 in 20 series of "
    "independent trials exceeds it."
)


def rows(profile: NoiseProfile) -> list[list[str]]:
    """A row per metric and cell, under `HEADER`."""
    return [
        [
            each.metric,
            each.cell,
            str(each.blocks),
            _percent(each.trial_sd),
            _percent(each.block_sd),
            _percent(each.pair_sd),
            _percent(each.pair_sd_upper),
            f"± {_percent(each.floor)}",
            _slot(each),
            _lag(each),
            numbers.ratio(each.ratio),
            numbers.p_value(each.p),
        ]
        for each in profile.metrics
    ]


def sentences(profile: NoiseProfile) -> list[str]:
    """What the profile says as a whole."""
    what = (
        f"An A/A run: the baseline against itself in {counted(profile.blocks, 'block')} per cell. Every difference is "
        "noise, and later reports of this place show it as their noise floor."
    )
    rejected = (
        f"False positives at level {profile.alpha:g} without adjustment: {_rate(profile.false_positives)} of all cells "
        "and metrics; metrics of one trial are not independent. After random exchanges of the labels within blocks: "
        f"{_rate(profile.resampled)}."
    )
    parts = [what, rejected]
    if profile.uniformity is not None:
        parts.append(
            f"The {profile.uniformity.n} p values against a uniform distribution: Kolmogorov-Smirnov D = "
            f"{profile.uniformity.statistic:.3f}, {numbers.p_in_words(profile.uniformity.p)}."
        )
    if profile.left_out:
        parts.append(
            "No figure, for lack of blocks, positive values or variation: " + ", ".join(profile.left_out) + "."
        )
    return parts


def floors(analysis: Analysis, metric: str) -> list[str]:
    """The noise floor beside one metric's effects: a sentence per group of cells that one A/A speaks for."""
    spoken: dict[str, list[NoiseFloor]] = {}
    for each in analysis.floors:
        if each.metric == metric:
            spoken.setdefault(_source(each, study=analysis.study), []).append(each)
    return [f"noise floor of this place: {_shares(group)} ({source})" for source, group in spoken.items()]


def _source(floor: NoiseFloor, *, study: str) -> str:
    size = f" in size {floor.size}" if floor.size else ""
    other = f"different study, {floor.study}" if floor.study != study else f"different size of the study, {floor.study}"
    whose = f"{floor.study}{size}" if floor.same_study else f"from a {other}{size}: only a rough guide"
    return f"A/A, {counted(floor.aa_blocks, 'block')}, {floor.date[:10]}, {whose}"


def _shares(group: list[NoiseFloor]) -> str:
    """One share where all cells agree as printed, else each cell's; for as many blocks as the comparison has."""
    printed = {each.cell: f"± {_percent(each.share)} with {counted(each.at_blocks, 'block')}" for each in group}
    if len(set(printed.values())) == 1:
        return next(iter(printed.values()))
    return ", ".join(f"{share} in {cell}" for cell, share in printed.items())


def _slot(each: MetricNoise) -> str:
    if each.slot is None:
        return numbers.ABSENT
    return numbers.change(each.slot.ratio) + ("" if each.slot.low <= 1 <= each.slot.high else " *")


def _lag(each: MetricNoise) -> str:
    if each.autocorrelation is None:
        return numbers.ABSENT
    return f"{each.autocorrelation:.2f}".replace("-", "−") + (
        " *" if abs(each.autocorrelation) > each.autocorrelation_limit else ""
    )


def _rate(rate: Rate) -> str:
    if rate.rate is None or rate.low is None or rate.high is None:
        return "none tested"
    interval = f"{rate.low * 100:.1f} to {rate.high * 100:.1f} %"
    return f"{rate.rejected} of {rate.tests} ({rate.rate * 100:.1f} %, 95 % interval {interval})"


def _percent(share: float) -> str:
    return f"{float(f'{share * 100:.2g}'):g} %" if share < 1 else f"{share * 100:.0f} %"  # 99.6 has no power of ten
