"""What a report says of a screening, in place of verdicts: effects, what they were judged by, what stays mixed.

A screening nominates. No word of a verdict is used here, and nothing here is in a family of claims.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from fairtrial.analyse.designs.screening_models import ErrorSource, MainEffect, ScreenedMetric, ScreeningResult
from fairtrial.analyse.models import Analysis
from fairtrial.plan import screening as matrices
from fairtrial.record.models import Plan
from fairtrial.record.screening import DESIGNS, Screening
from fairtrial.report import numbers
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.words import counted

CONFIRMED: Final = 3  # as many as `fairtrial screen --confirm` takes by default
CAUTION: Final = (
    "A screening nominates and claims nothing: effects are averages over all other options, and what is mixed with an "
    "effect may be what moves. `fairtrial screen RUN --confirm 3` compares the strongest options, each alone, in pairs "
    "with the baseline; its verdicts are the claims."
)
RATIOS: Final = (
    "Ratio of the geometric means of all trials at the option's second (of three: third) level and at its first. An "
    "interval of one holds one at a time, the next for all options together; adjusted p is over all options of this "
    "metric. `better` is the level at which the metric is better; options that stand out are marked."
)
COLUMNS: Final = (
    "Columns of the design that no option has, strongest first: interactions of two options, each line as a whole. A "
    "large one says that some of its options do not act alone."
)
CURVATURE: Final = (
    "Ratio of the geometric means at the middle level and at its two ends, beside the effects above. A level in the "
    "middle that is better than both ends shows here and not there. Intervals come from replicates. Only three rows of "
    "a replicate have an option in the middle, however many there are; interactions are partly mixed with these ratios."
)
UNJUDGED: Final[Mapping[ErrorSource, str]] = {
    "none": "add options or replicates",
    "replicates": "replicates of a row do not vary",
    "unassigned columns": "rows do not vary by more than the effects",
    "Lenth": "too many effects are 0",
}
_CODES: Final = {-1: "−", 0: "0", 1: "+"}


@dataclass(frozen=True)
class Section:
    """A titled part: sentences, then a table, then how to read it."""

    title: str
    sentences: tuple[str, ...]
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    left: int = 1
    note: str = ""


def headline(of: ScreeningResult) -> str:
    """For a page's title."""
    first = of.metrics[0] if of.nominated else None
    if first is None:
        return "screening without an effect that can be estimated"
    return f"{len(_standing(first))} of {counted(len(first.effects), 'option')} stand out"


def summary(analysis: Analysis, of: ScreeningResult) -> tuple[str, ...]:
    """What stands out, metric by metric, and what is nominated."""
    said = [
        sentence
        for each in of.metrics
        if analysis.roles[each.metric] == "primary"
        for sentence in _found(each, analysis.metrics[each.metric], confidence=analysis.confidence)
    ]
    if of.nominated:
        by, strongest = analysis.metrics[of.metrics[0].metric].label, ", ".join(of.nominated[:CONFIRMED])
        said.append(f"Nominated by {by} for a paired study, strongest first: {strongest}.")
    if of.absent:
        said.append(f"Without effects, for lack of rows or of logarithms: {', '.join(of.absent)}.")
    return (*said, CAUTION)


def _found(each: ScreenedMetric, definition: MetricDefinition, *, confidence: float) -> Iterator[str]:
    standing, among = _standing(each), f"of {counted(len(each.effects), 'option')}"
    if each.margin is None:
        yield f"Effects on {definition.label} cannot be judged: {UNJUDGED[each.error]}."
    elif not standing:
        yield f"None {among} stands out in {definition.label}."
    else:
        verb = "stands" if len(standing) == 1 else "stand"
        yield f"In {definition.label} {len(standing)} {among} {verb} out: {_listed(standing, confidence=confidence)}."
    if bent := [effect for effect in each.curvature if effect.stands_out]:
        yield (
            f"In {definition.label} the middle level differs from its ends: {_listed(bent, confidence=confidence)}. "
            "A paired study with that level as an arm decides."
        )


def _listed(every: Sequence[MainEffect], *, confidence: float) -> str:
    return "; ".join(
        f"{effect.option} ({effect.high} instead of {effect.low}: {ratio} times as high, "
        f"{numbers.percent(confidence)} interval {interval}{_suspected(effect)})"
        for effect in every
        for ratio, interval in [_ratio_and_interval(effect)]
    )


def _suspected(effect: MainEffect) -> str:
    """What an effect may be instead."""
    of = " or ".join(each.removeprefix("-") for each in effect.mixed_with)
    return f"; it cannot be told from {of}, whose effects are larger" if of else ""


def _standing(each: ScreenedMetric) -> list[MainEffect]:
    return [effect for effect in each.effects if effect.stands_out]


def sections(analysis: Analysis, plan: Plan) -> Iterator[Section]:
    """Effects by metric, what the design cannot tell apart, and the design itself; nothing without a screening."""
    if analysis.screening is None or plan.screening is None:
        return
    for number, each in enumerate(analysis.screening.metrics):
        yield effects(analysis, each, note="" if number else RATIOS)
        if each.columns and analysis.roles[each.metric] == "primary":
            yield _interactions(each, analysis.metrics[each.metric])
        if each.curvature and analysis.roles[each.metric] == "primary":
            yield _curvature(analysis, each)
    title = f"What this {DESIGNS[plan.screening.design]} cannot tell apart"
    yield Section(title, tuple(matrices.sentences(plan.screening)))
    yield _options(plan.screening)
    yield _rows(analysis, plan.screening)


def effects(analysis: Analysis, each: ScreenedMetric, *, note: str = "") -> Section:
    """All options on one metric, strongest first."""
    definition = analysis.metrics[each.metric]
    unit = f", {definition.unit}" if definition.unit else ""
    title = f"Effects on {definition.label}{unit}, {definition.better} is better ({analysis.roles[each.metric]})"
    judged = tuple(_judged_by(each, confidence=analysis.confidence))
    return replace(_table(title, each.effects, definition, confidence=analysis.confidence), sentences=judged, note=note)


def _curvature(analysis: Analysis, each: ScreenedMetric) -> Section:
    definition = analysis.metrics[each.metric]
    title = f"Curvature in {definition.label}"
    return replace(_table(title, each.curvature, definition, confidence=analysis.confidence), note=CURVATURE)


def _table(title: str, every: Sequence[MainEffect], definition: MetricDefinition, *, confidence: float) -> Section:
    share = numbers.percent(confidence)
    return Section(
        title=title,
        sentences=(),
        header=("option", "levels", "ratio", f"{share} interval", "for all", "p", "adjusted p", "better"),
        rows=tuple(_row(effect, definition) for effect in every),
        left=2,
    )


def _interactions(each: ScreenedMetric, definition: MetricDefinition) -> Section:
    return Section(
        title=f"Interactions in {definition.label}",
        sentences=(),
        header=("ratio", "interactions of two options"),
        rows=tuple((numbers.ratio(column.ratio), ", ".join(column.interactions)) for column in each.columns),
        left=2,
        note=COLUMNS,
    )


def _row(effect: MainEffect, definition: MetricDefinition) -> tuple[str, ...]:
    gains = (effect.effect > 0) == (definition.better == "higher")
    return (
        f"{'* ' if effect.stands_out else ''}{effect.option}",
        f"{effect.high} / {effect.low}",
        *_ratio_and_interval(effect),
        _interval(effect.simultaneous),
        numbers.p_value(effect.p),
        numbers.p_value(effect.p_adjusted),
        effect.high if gains else effect.low,
    )


def _ratio_and_interval(effect: MainEffect) -> tuple[str, str]:
    return numbers.ratio_and_interval(effect.ratio, *(effect.interval or (None, None)))


def _interval(of: tuple[float, float] | None) -> str:
    return numbers.ABSENT if of is None else numbers.ratio_interval(*of)


def _judged_by(each: ScreenedMetric, *, confidence: float) -> Iterator[str]:
    """The error, and what an effect of nothing may look like."""
    trials = counted(each.n, "trial")
    if each.margin is None or each.simultaneous_margin is None:
        yield f"{trials}; effects cannot be judged: {UNJUDGED[each.error]}."
        return
    if each.error == "Lenth":
        by = "Lenth's pseudo standard error of the effects themselves, with simulated quantiles"
    else:
        by = f"{each.error} ({each.df:g} degrees of freedom; one trial varies by {_size(each.sd or 0.0)})"
    reach, largest = (_size(math.expm1(margin)) for margin in (each.margin, each.simultaneous_margin))
    yield (
        f"{trials}, judged by {by}. At {numbers.percent(confidence)}, an option that does nothing shows up to ± "
        f"{reach} by itself, and the largest of {len(each.effects)} such up to ± {largest}."
    )
    if each.lack_of_fit_p is not None and each.lack_of_fit_p < 1 - confidence:
        yield (
            f"Rows differ by more than main effects and noise ({numbers.p_in_words(each.lack_of_fit_p)}): options "
            "interact, or are not linear."
        )


def _size(share: float) -> str:
    percent = 100 * share
    return f"{percent:,.0f} %" if percent >= 100 else f"{percent:.{1 if percent >= 1 else 2}f} %"  # noqa: PLR2004


def _options(of: Screening) -> Section:
    return Section(
        title="Options",
        sentences=(),
        header=("column", "option", "levels, low to high"),
        rows=tuple(
            (str(number), option, ", ".join(levels))
            for number, (option, levels) in enumerate(of.options.items(), start=1)
        ),
        left=3,
    )


def _rows(analysis: Analysis, of: Screening) -> Section:
    """Every row with its trials' values of the first metric, replicates in order of time."""
    first = next(iter(analysis.metrics), "")
    measured = {each.arm: each.values for cell in analysis.cells for each in cell.summaries.get(first, ())}
    scale = numbers.scale(
        analysis.metrics[first].unit if first else "", [value for values in measured.values() for value in values]
    )
    printed = {row: ", ".join(scale.value(value) for value in values) for row, values in measured.items()}
    label = f"{analysis.metrics[first].label}, {scale.unit}".removesuffix(", ") if first else ""
    return Section(
        title="Rows",
        sentences=("Levels are in the order of the columns above: − is low, + high, 0 the middle of three.",),
        header=("row", "levels", label),
        rows=tuple((row, _coded(codes), printed.get(row, numbers.ABSENT)) for row, codes in of.rows.items()),
        left=3,
    )


def _coded(codes: Sequence[int]) -> str:
    return " ".join(_CODES[code] for code in codes)
