"""report.txt: the post one would send to a mailing list. Sections in the order a sceptic asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from fairtrial.analyse.models import Analysis, Comparison, Summary
from fairtrial.metrics.fidelity import Fidelity
from fairtrial.record import Record
from fairtrial.record.models import Plan
from fairtrial.record.screening import DESIGNS
from fairtrial.report import diagnostics, expected, fidelity, hosts, noise, numbers, why, within
from fairtrial.report.background import Background, Fact, PlaceFacts, clients
from fairtrial.report.concerns import concerns, doubts
from fairtrial.report.designs import covariates, curves, interactions, layouts, screening
from fairtrial.report.scene import Scene
from fairtrial.report.tables import (
    TWO_ARMS,
    MetricTable,
    Row,
    cell_label,
    conditions,
    equivalence_margin,
    estimated,
    opinion,
    opinions,
    over_hosts,
    procedure,
    ratio_interval,
    tested,
    verdict,
    word,
)
from fairtrial.report.text import summary
from fairtrial.report.text.columns import heading, pairs, prose, table
from fairtrial.report.text.grid import grid
from fairtrial.report.words import again, boots, counted, fates, stopping
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.words import cut, printable

OPTION_CHARACTERS: Final = 22  # of a name or value beside another: switches of optimizers have hundreds
ARMS_BESIDE: Final = 3  # columns of such values that fit a line
OPTIONS_SHOWN: Final = 40  # a server may read back hundreds; all are in every trial.json
VALUES_PER_LINE: Final = 6
RANKS: Final = (
    "the exact test and the Hodges-Lehmann shift, which assume no distribution of the noise. An interval is absent"
    " where n is too small for any. Ties are counted, and p is exact given them. The last column is the range that"
    " unseen stalls leave open for the ratio of means, for all comparisons together: a claim is about the mean only if"
    " this range supports it."
)
WELCH: Final = "Welch's two-sample t test on the raw values, unpaired, for comparison with the estimate above."
DESCRIPTIVE: Final = (
    "Each arm by itself, descriptive only: overlap of these intervals decides nothing, and with trials that are"
    " occasionally slow they cover the mean far less often than their confidence level."
)


def render(scene: Scene) -> str:
    """The whole text report."""
    record, analysis, behind = scene.record, scene.analysis, scene.background
    lines = [analysis.study, "=" * len(analysis.study), *prose(analysis.question)]
    lines += _summary(analysis)
    lines += _matrix(record, analysis)
    if analysis.screening is not None:
        lines += _screening(analysis, record.plan)
    else:
        lines += _stopping(analysis)
        lines += _differences(analysis, behind)
        for number, metric in enumerate(scene.tables, start=1):
            lines += _metric(analysis, metric, number=number)
    lines += _curves(analysis)
    lines += _interactions(analysis)
    lines += _why(analysis)
    lines += _diagnostics(scene)
    lines += _noise(analysis)
    lines += _expectations(record, analysis)
    lines += _doubts(analysis, scene.fidelity)
    lines += _within(analysis)
    lines += _counts(analysis, behind)
    lines += _fidelity(record, scene.fidelity)
    lines += _where(behind, clients(record.trials))
    commands = again(record, name=scene.name, contrast=scene.analysis.contrast)
    lines += [*heading("Run again and check"), *pairs(commands), ""]
    lines += [f"fairtrial {record.plan.fairtrial_version}"]
    lines += _raw_data(scene)
    return printable("\n".join(lines)) + "\n"


def _summary(analysis: Analysis) -> list[str]:
    lines = heading("Summary")
    if not analysis.finished:
        lines += [*prose("The run is not finished: results are preliminary and have no verdict."), ""]
    for sentence in summary.sentences(analysis):
        lines += prose(sentence)
    return lines


def _blocks(plan: Plan) -> str:
    design = plan.design
    said = f"{design.min_blocks} to {design.blocks}" if design.min_blocks else str(design.blocks)
    more = sum(extension.blocks for extension in plan.extensions)
    return f"{said}, {more} of them asked for while it ran" if more else said


def _matrix(record: Record, analysis: Analysis) -> list[str]:
    design = record.plan.design
    lines = heading("Matrix")
    if (matrix := record.plan.screening) is not None:
        return lines + pairs(
            [
                ("design", f"{DESIGNS[matrix.design]}, {len(matrix.options)} options in {len(matrix.rows)} rows"),
                ("replicates", str(design.blocks)),
                ("order", f"random within replicates, seed {design.seed}"),
                ("size", record.plan.size or "as in the study"),
            ]
        )
    lines += pairs(
        [(f"{analysis.contrast} (compared)", ", ".join(analysis.levels) + f"; baseline {analysis.levels[0]}")]
        + [(factor, ", ".join(levels)) for factor, levels in record.plan.factors.items() if factor != analysis.contrast]
        + [
            ("cells × arms", f"{len(analysis.cells)} × {len(analysis.levels)}"),
            ("blocks per cell", _blocks(record.plan)),
            ("order", f"{design.order.replace('_', ' ')}, seed {design.seed}"),
            *boots(record.plan),
            ("size", record.plan.size or "as in the study"),
        ]
    )
    return lines


def _screening(analysis: Analysis, plan: Plan) -> list[str]:
    """In place of what differs and of verdicts."""
    lines: list[str] = []
    for section in screening.sections(analysis, plan):
        lines += heading(section.title)
        for sentence in section.sentences:
            lines += prose(sentence)
        lines += ["", *table(section.header, section.rows, left=section.left)] if section.rows else []
        lines += ["", *prose(section.note)] if section.note else []
    return lines


def _stopping(analysis: Analysis) -> list[str]:
    rule, *cells = stopping(analysis) or [""]
    if not rule:
        return []
    return [*heading("Stopping"), *prose(rule), *(line for cell in cells for line in prose(f"* {cell}", indent="  "))]


def _differences(analysis: Analysis, behind: Background) -> list[str]:
    lines = heading(f"What differs: {analysis.contrast}")
    arms = analysis.levels
    if not behind.differences:
        return [*lines, "Nothing: an A/A comparison."]
    rows = [[path, *(values.get(arm, numbers.ABSENT) for arm in arms)] for path, values in behind.differences]
    return [*lines, *table(["path", *arms], rows, left=len(arms) + 1), *_in_effect(arms, behind)]


def _in_effect(arms: Sequence[str], behind: Background) -> list[str]:
    """What another build or default brought with it stands beside what was asked."""
    if not behind.in_effect:
        return []
    if len(arms) > ARMS_BESIDE:
        return ["", f"{len(behind.in_effect)} options in effect differ, set by the study or not: see report.html."]
    rows = [[name, *(values.get(arm, numbers.ABSENT) for arm in arms)] for name, values in behind.in_effect]
    both = [[cut(text, OPTION_CHARACTERS) for text in row] for row in rows if numbers.ABSENT not in row][:OPTIONS_SHOWN]
    lines = table(["option", *arms], both, left=len(arms) + 1) if both else []
    more = len(rows) - len(both)
    end = [f"{more} more are in report.html; most of them do not exist in every arm"] if more else []
    return ["", "Options in effect that differ, set by the study or not:", *lines, *end]


def _metric(analysis: Analysis, metric: MetricTable, *, number: int) -> list[str]:
    first, share = analysis.levels[0], numbers.percent(analysis.confidence)
    lines = [*heading(f"{metric.title} ({metric.role})"), *prose(procedure(analysis, metric)), ""]
    for arm in analysis.levels[1:]:
        if lines_of_grid := grid(metric, factors=conditions(analysis), arm=arm):
            apart = _in(points) if (points := metric.scale.difference_unit) != metric.scale.unit else ""
            means = f"Means of {first} / {arm}{_in(metric.scale.unit)}, and the {share} interval of the difference"
            lines += [*lines_of_grid, *prose(f"{means}{apart}."), ""]
    header = ("baseline", "mean", "ratio", f"{share} interval", "p", "adjusted p", "verdict")
    lines += _by_row(analysis, metric, header=header, figures=lambda row: _ratio(metric, row))
    methods = sorted({row.comparison.method for row in metric.rows})
    lines += ["", *prose(f"Table {number}a. Ratio to {first}; {'; '.join(methods)}.")]
    for floor in noise.floors(analysis, metric.definition.name):
        lines += prose(f"{floor[0].upper()}{floor[1:]}.")
    in_units = (
        f"Difference from {first}{_in(metric.scale.difference_unit)}. Equivalence p: two one-sided tests against the"
        f" margin of {equivalence_margin(analysis, metric.rows)}. Detectable: the change of the ratio (without a ratio:"
        " of the value) that this n and spread detect with power 0.8."
    )
    differences = ("n", "difference", f"{share} interval", "equivalence p", "detectable")
    welch = ("t", "df", "p", "difference", f"{share} interval")
    tables = (
        (_by_row(analysis, metric, header=differences, figures=lambda row: _in_units(metric, row)), in_units),
        (_ranks(analysis, metric), f"{opinions(metric)}: {RANKS}"),
        (_by_row(analysis, metric, header=welch, figures=lambda row: _welch(metric, row)), WELCH),
        (_descriptive(analysis, metric), DESCRIPTIVE),
    )
    for letter, (made, caption) in zip("bcde", tables, strict=True):
        lines += ["", *made, "", *prose(f"Table {number}{letter}. {caption}")]
    lines += _hosts(analysis, metric, number=number)
    return lines + _layouts(analysis, metric, number=number) + _covariates(analysis, metric, number=number)


def _in(unit: str) -> str:
    """` in ms`; nothing of a column without a unit."""
    return f" in {unit}" if unit else ""


def _hosts(analysis: Analysis, metric: MetricTable, *, number: int) -> list[str]:
    """Hosts like these, and each host; nothing if one place ran all trials."""
    if not over_hosts(metric.rows):
        return []
    said = partial(hosts.columns, metric, confidence=analysis.confidence)
    header = said(metric.rows[0])
    lines = ["", *_by_row(analysis, metric, header=header, figures=lambda row: said(row).values())]
    lines += ["", *prose(f"Table {number}f. Hosts like these. {hosts.NOTE}")]
    if each := hosts.by_host(metric.rows, several=len(analysis.levels) > TWO_ARMS):
        lines += ["", *table(hosts.by_host_header(analysis.confidence), each, left=2)]
        lines += ["", *prose(f"Table {number}g. {hosts.BY_HOST}")]
    return lines


def _layouts(analysis: Analysis, metric: MetricTable, *, number: int) -> list[str]:
    """Layouts like these, and each layout; nothing without builds."""
    if not layouts.over_layouts(metric.rows):
        return []
    said = partial(layouts.columns, metric, confidence=analysis.confidence)
    lines = ["", *_by_row(analysis, metric, header=said(metric.rows[0]), figures=lambda row: said(row).values())]
    lines += ["", *prose(f"Table {number}j. Layouts like these. {layouts.NOTE}"), ""]
    each = layouts.by_layout(metric.rows, several=len(analysis.levels) > TWO_ARMS)
    return [*lines, *table(layouts.header(analysis.confidence), each, left=2)]


def _covariates(analysis: Analysis, metric: MetricTable, *, number: int) -> list[str]:
    """With and without covariates; nothing where a study has none."""
    if not covariates.adjustments(metric.rows):
        return []
    said = partial(covariates.columns, confidence=analysis.confidence)
    lines = ["", *_by_row(analysis, metric, header=said(metric.rows[0]), figures=lambda row: said(row).values())]
    lines += ["", *prose(f"Table {number}h. Adjusted for covariates. {covariates.NOTE}"), ""]
    effects = covariates.effects(metric.rows, several=len(analysis.levels) > TWO_ARMS)
    lines += table(covariates.EFFECT_HEADER, effects, left=2)
    return [*lines, "", *prose(f"Table {number}i. {covariates.EFFECTS}")]


def _by_row(
    analysis: Analysis, metric: MetricTable, *, header: Iterable[str], figures: Callable[[Row], Iterable[str]]
) -> list[str]:
    """A table of one metric's comparisons: conditions and arm, then what `figures` says of each under `header`."""
    factors = conditions(analysis)
    rows = [[*(row.levels[factor] for factor in factors), row.arm.arm, *figures(row)] for row in metric.rows]
    return table([*factors, "arm", *header], rows, left=len(factors) + 1)


def _ratio(metric: MetricTable, row: Row) -> tuple[str, ...]:
    return (
        metric.scale.value(row.baseline.mean),
        metric.scale.value(row.arm.mean),
        estimated(row.comparison),
        ratio_interval(row.comparison),
        *tested(row.comparison),
        _verdict(row.comparison, metric.definition),
    )


def _in_units(metric: MetricTable, row: Row) -> tuple[str, ...]:
    comparison = row.comparison
    return (
        str(comparison.n),
        metric.scale.value(comparison.difference.estimate),
        metric.scale.interval(comparison.difference.low, comparison.difference.high),
        numbers.p_value(comparison.p_equivalence),
        _detectable(comparison, metric),
    )


def _verdict(comparison: Comparison, definition: MetricDefinition) -> str:
    """The bare word: margins are in the procedure's line."""
    if comparison.guardrail is not None:
        return verdict(comparison, definition, margin=comparison.guardrail.margin)
    return word(comparison.verdict, definition)


def _detectable(comparison: Comparison, metric: MetricTable) -> str:
    effect, difference = comparison.smallest_effect, comparison.smallest_difference
    if effect is not None:
        return f"± {numbers.percents(abs(effect))}"
    if comparison.ratio.estimate is None and difference is not None:
        return f"± {metric.scale.value(difference)}"
    return numbers.ABSENT


def _ranks(analysis: Analysis, metric: MetricTable) -> list[str]:
    if not metric.rows:
        return []
    said = partial(opinion, metric, confidence=analysis.confidence)
    return _by_row(analysis, metric, header=said(metric.rows[0]), figures=lambda row: said(row).values())


def _welch(metric: MetricTable, row: Row) -> tuple[str, ...]:
    welch = row.comparison.welch
    if welch is None:
        return (numbers.ABSENT,) * 5
    return (
        f"{welch.t:.4f}",
        f"{welch.df:.3f}",
        numbers.p_value(welch.p),
        metric.scale.value(welch.difference.estimate),
        metric.scale.interval(welch.difference.low, welch.difference.high),
    )


def _descriptive(analysis: Analysis, metric: MetricTable) -> list[str]:
    factors, value = conditions(analysis), metric.scale.value
    interval = f"{numbers.percent(analysis.confidence)} interval"
    rows = [
        [
            *(cell.levels[factor] for factor in factors),
            *(arm.arm, str(arm.n), value(arm.mean), metric.scale.interval(arm.low, arm.high)),
            *(
                value(each)
                for each in (arm.sd, arm.median, min(arm.values, default=None), max(arm.values, default=None))
            ),
        ]
        for cell in analysis.cells
        for arm in cell.summaries.get(metric.definition.name, ())
    ]
    header = [*factors, "arm", "n", "mean", interval, "sd", "median", "min", "max"]
    return table(header, rows, left=len(factors) + 1)


def _curves(analysis: Analysis) -> list[str]:
    """Over a numeric factor: what is said first, parameters of each arm, and what differs between arms."""
    sections = curves.sections(analysis)
    lines = heading(curves.TITLES[analysis.curves[0].model]) if sections else []
    for section in sections:
        lines += ["", *prose(section.title), ""]
        lines += [line for sentence in section.sentences for line in prose(f"* {sentence}", indent="  ")]
        lines += ["", *table(section.header, section.arms, left=1)] if section.arms else []
        lines += ["", *table(section.compared, section.pairs, left=curves.LEFT)] if section.pairs else []
        lines += [line for note in section.notes for line in ["", *prose(note)]]
    return lines


def _interactions(analysis: Analysis) -> list[str]:
    if not analysis.interactions:
        return []
    made, levels, pairs = (each(analysis) for each in (interactions.tests, interactions.levels, interactions.pairs))
    lines = [*heading(interactions.TITLE), *table(made.header, made.rows, left=made.left)]
    lines += [line for note in interactions.notes(analysis) for line in ["", *prose(note)]]
    if pairs.rows:
        lines += ["", *table(levels.header, levels.rows, left=levels.left)]
        lines += ["", *table(pairs.header, pairs.rows, left=pairs.left), "", *prose(interactions.PAIRS)]
    return lines


def _why(analysis: Analysis) -> list[str]:
    if not analysis.why:
        return []
    lines = heading("Why: what changed with the arm")
    for line in why.lines(analysis):
        lines += prose(line, indent="    ")
    lines += ["", *prose(why.CAUTION)]
    for cell in analysis.why:
        lines += ["", *prose(f"{cell.cell}: {why.summary(cell, shown=why.ROWS)}"), ""]
        lines += table(why.HEADER, why.rows(cell)[: why.ROWS], left=why.LEFT)
        lines += [line for note in why.notes(cell) for line in prose(note, indent="  ")]
    return lines


def _diagnostics(scene: Scene) -> list[str]:
    trials = scene.diagnostics if scene.is_of_arm else []
    sentences = diagnostics.summary(scene.record, trials) if trials else []
    lines = heading("Diagnostic trials") if sentences else []
    for sentence in sentences:
        lines += prose(sentence)
    for section in diagnostics.sections(scene.record, trials):
        lines += ["", *prose(section.title), ""]
        if section.header:
            lines += [*table(section.header, section.rows, left=section.left), "", *prose(section.note)]
        for output in section.outputs:
            shown = output.lines[: diagnostics.LINES_IN_TEXT]
            left_out = output.left_out + len(output.lines) - len(shown)
            lines += [output.caption, *(f"  {line}".rstrip() for line in shown)]
            lines += [f"  … and {left_out} more lines in the trial's directory"] if left_out else []
    return lines


def _noise(analysis: Analysis) -> list[str]:
    if analysis.noise is None:
        return []
    lines = heading("Noise of this place")
    for sentence in noise.sentences(analysis.noise):
        lines += [*prose(sentence), ""]
    return [*lines, *table(noise.HEADER, noise.rows(analysis.noise), left=noise.LEFT), *prose(noise.LEGEND)]


def _expectations(record: Record, analysis: Analysis) -> list[str]:
    rows = expected.rows(analysis, record.plan.metrics.definitions)
    if not rows:
        return []
    return [*heading("Expectations"), *table(expected.HEADER, rows, left=expected.LEFT), *prose(expected.NOTE)]


def _doubts(analysis: Analysis, drew: Sequence[Fidelity]) -> list[str]:
    lines = heading("Doubts")
    raised = concerns(doubts(analysis, drew))
    if not raised:
        return [*lines, "No check found a reason for doubt."]
    for concern in raised:
        kind = " · ".join(part for part in (concern.code, concern.where) if part)
        lines += prose(f"* {kind}", indent="    ")
        lines += ["  " + line for line in prose(f"{concern.message} {concern.advice}")]
    return lines


def _within(analysis: Analysis) -> list[str]:
    rows = within.rows(analysis)
    return (
        [*heading("Within trials"), *table(within.HEADER, rows, left=within.LEFT), "", *prose(within.NOTE)]
        if rows
        else []
    )


def _counts(analysis: Analysis, behind: Background) -> list[str]:
    lines = [*heading("Trials"), *pairs([(label, str(count)) for label, count in counted(analysis)])]
    for fate in fates(behind):
        lines += prose(f"* {fate}", indent="  ")
    return lines


def _fidelity(record: Record, drew: Sequence[Fidelity]) -> list[str]:
    lines: list[str] = []
    for section in fidelity.sections(record, drew):
        lines += heading(f"Fidelity: {section.title}" if section.title else "Fidelity")
        lines += [*prose(section.summary), ""]
        if section.shown:
            lines += [*table(fidelity.HEADER, section.rows, left=fidelity.LEFT), ""]
        if section.deviations:
            lines += ["Deviations from the specification that the study chose:"]
            lines += [line for deviation in section.deviations for line in prose(f"* {deviation}", indent="  ")]
    return [*lines, "", *prose(" ".join(fidelity.notes(drew)))] if lines else []


def _where(behind: Background, together: Sequence[Fact]) -> list[str]:
    lines: list[str] = []
    for place in behind.places:
        lines += [*heading(f"Place: {place.name}"), *pairs(_pairs(place.facts)), *_cautions(place)]
    if together:
        lines += [*heading("Clients that drove together"), *pairs(_pairs(together))]
    if behind.system or behind.options:
        lines += [*heading("System"), *pairs(_pairs(behind.system))]
    if behind.options:
        lines += ["", "Options as read back:", *pairs(_pairs(behind.options[:OPTIONS_SHOWN]))]
        if len(behind.options) > OPTIONS_SHOWN:
            lines.append(f"… and {len(behind.options) - OPTIONS_SHOWN} more in trials/*/trial.json")
    if behind.settings:
        lines += [*heading("Settings as read back"), *pairs(_pairs(behind.settings))]
    return lines


def _cautions(place: PlaceFacts) -> list[str]:
    """What was found of the place before the run and is not fine; what could not be seen is only counted."""
    known = [finding for finding in place.cautions if finding["grade"] != "unknown"]
    unseen = len(place.cautions) - len(known)
    lines = ["", f"Fitness before the run: {len(place.findings)} findings, {unseen} unknown"] if place.findings else []
    for finding in known:
        host = "host's " if finding["of_host"] else ""
        said = f"* {finding['grade']}: {host}{finding['name']}: {finding['value']}. {finding['fix']}"
        lines += prose(said, indent="  ")
    return lines


def _pairs(facts: Iterable[Fact]) -> list[tuple[str, str]]:
    return [(fact.label, fact.value) for fact in facts]


def _raw_data(scene: Scene) -> list[str]:
    """The appendix: every used value, in time order; raw_data.r has those that are not whole to the last digit."""
    lines = heading("Appendix: raw data")
    for metric in scene.tables:
        lines += ["", f"# {metric.definition.name} ({metric.definition.unit})"]
        for cell in scene.analysis.cells:
            for arm in cell.summaries.get(metric.definition.name, ()):
                blocks = " ".join(map(str, arm.blocks))
                lines += [f"# {cell_label(cell.levels)}, {arm.arm}, blocks {blocks}", *_values(arm)]
    return lines


def _values(arm: Summary) -> list[str]:
    printed = [f"{value:.{15 if value.is_integer() else 10}g}" for value in arm.values]
    return [", ".join(printed[at : at + VALUES_PER_LINE]) for at in range(0, len(printed), VALUES_PER_LINE)]
