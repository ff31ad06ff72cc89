"""Estimates adjusted for covariates, in the same words for the text, the page and the summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from fairtrial.analyse.designs.adjusted import CovariateAdjustment, CovariateEffect, LeftOut, NoAdjustment
from fairtrial.analyse.inference.covariates import FEWEST_DF
from fairtrial.metrics.covariates import LABELS
from fairtrial.report import numbers
from fairtrial.report.tables import MetricTable, Row
from fairtrial.words import counted

NOTE: Final = (
    "Adjusted: the ratio where no covariate differs between the arms of a block, by least squares of the blocks' log"
    " ratios on the covariates' own differences within blocks. Width: of the interval on the log scale, as a share of"
    " the plain one's. Explained: share of the blocks' variance that the covariates account for; below 0 they cost more"
    " than they explain. In a run that could stop early both intervals are those of a single look. Nothing else is"
    " adjusted: neither interactions, nor curves, nor estimates over hosts and layouts."
)
EFFECTS: Final = (
    "Covariates were measured before each trial, before anything of its arm was in effect. Arm / baseline: within"
    " blocks; a small p says that the arm moves the covariate. Slope: change of the metric's log ratio per log ratio of"
    " the covariate; of a time, and of what can be 0, per unit."
)
EFFECT_HEADER: Final = ("comparison", "covariate", "slope", "arm / baseline", "p")
WITHOUT: Final[dict[NoAdjustment, str]] = {
    "": numbers.ABSENT,
    "few_blocks": f"none: fewer than {FEWEST_DF} degrees of freedom",
    "no_covariate": "none: no covariate varies",
    "no_ratio": "none: no log ratios of blocks",
    "by_class": "none: values are known by class",
    "not_computable": "none: cannot be computed",
}
LEFT_OUT: Final[dict[LeftOut, str]] = {
    "": "",
    "missing": "left out: missing in some trials",
    "does_not_vary": "left out: does not vary of its own",
}


def adjustments(rows: Iterable[Row]) -> list[CovariateAdjustment]:
    """Of the rows whose study has covariates."""
    return [row.comparison.covariates for row in rows if row.comparison.covariates is not None]


def columns(row: Row, *, confidence: float) -> dict[str, str]:
    """A row of the table of estimates, printed: by column."""
    interval = f"{numbers.percent(confidence)} interval"
    names = ("plain", f"plain {interval}", "adjusted", f"adjusted {interval}", "df", "p", "width", "explained")
    found = row.comparison.covariates
    if found is None:
        return dict.fromkeys(names, numbers.ABSENT)
    adjusted, within = numbers.ratio_and_interval(found.ratio, found.low, found.high)
    printed = (
        *numbers.ratio_and_interval(found.plain_ratio, found.plain_low, found.plain_high),
        adjusted if found.reason == "" else WITHOUT[found.reason],
        within,
        numbers.ABSENT if found.df is None else str(found.df),
        numbers.ABSENT if found.p is None else numbers.p_value(found.p),
        numbers.ABSENT if found.width is None else f"{found.width:.2f}",
        numbers.ABSENT if found.explained is None else f"{100 * found.explained:.0f} %",
    )
    return dict(zip(names, printed, strict=True))


def effects(rows: Sequence[Row], *, several: bool) -> list[list[str]]:
    """A row per comparison and covariate, under `EFFECT_HEADER`; its first two columns are text."""
    return [
        [" · ".join([*row.levels.values(), *([row.arm.arm] if several else [])]) or "all", *_effect(each)]
        for row in rows
        if row.comparison.covariates is not None
        for each in row.comparison.covariates.covariates
    ]


def _effect(effect: CovariateEffect) -> list[str]:
    label = LABELS.get(effect.name, effect.name)
    if effect.left_out:
        return [f"{label} ({LEFT_OUT[effect.left_out]})", *(numbers.ABSENT,) * 3]
    shift = numbers.ratio(effect.shift) if effect.scale == "ratio" else f"{effect.shift or 0.0:+.4g}"
    return [
        label,
        numbers.ABSENT if effect.slope is None else f"{effect.slope:.3g}",
        shift,
        numbers.ABSENT if effect.p_shift is None else numbers.p_value(effect.p_shift),
    ]


def sentences(judged: Sequence[MetricTable]) -> tuple[str, ...]:
    """How much the covariates narrow the intervals, and whose verdicts the report gives; nothing without any."""
    found = adjustments(row for table in judged if table.role == "primary" for row in table.rows)
    if not found:
        return ()
    *others, last = (LABELS.get(each.name, each.name) for each in found[0].covariates)
    names = f"{', '.join(others)} and {last}" if others else last
    widths = sorted(each.width for each in found if each.width is not None)
    if not widths:
        return (f"No estimate could be adjusted for {names}. Verdicts are of the plain estimates.",)
    spread = f", {widths[0]:.2f} to {widths[-1]:.2f} over {counted(len(widths), 'comparison')}" if widths[1:] else ""
    middle = median(widths)
    said = f"Adjusted for {names}, measured before each trial, intervals are {middle:.2f} times as wide{spread}"
    worth = f": as {1 / middle**2:.1f} times as many blocks would make them" if middle < 1 else ""
    whose = "adjusted" if found[0].decides else "plain"
    left = counted(len(found) - len(widths), "comparison") if found[0].decides and len(widths) < len(found) else ""
    plain = f"; {left} could not be adjusted, and the verdict is of the plain estimate" if left else ""
    return (f"{said}{worth}. Verdicts are of the {whose} estimates, as the study chose before the run{plain}.",)
