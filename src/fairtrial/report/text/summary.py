"""The summary sentence: what changed, by how much and how sure, and what showed no significant change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from fairtrial.analyse.models import Analysis, Comparison, Estimand, Guardrail, Outcome
from fairtrial.analyse.result import Verdict
from fairtrial.report import hosts, numbers
from fairtrial.report.designs import covariates, curves, interactions, layouts, screening
from fairtrial.report.tables import MetricTable, Row, metric_tables, without_values, word
from fairtrial.words import counted

TWO_ARMS: Final = 2
_ESTIMANDS: Final[tuple[Estimand, ...]] = ("mean", "typical", "some")
_FEW: Final = "few"
_NO_CLAIM: dict[Verdict | Literal["few"], str] = {
    "equivalent": "They are equivalent within {margin}",
    "undecided": "There was no statistically significant change",
    _FEW: "Too few trials were made to claim a change",
    "none": "There is no verdict",
}
_ORDER: Final = ("faster", "better", "slower", "worse", "equivalent", "undecided", "no verdict")


def sentences(analysis: Analysis) -> tuple[str, ...]:
    """A paragraph per primary metric and arm; per metric and arm of every role if the study named no primary one."""
    if analysis.screening is not None:
        return screening.summary(analysis, analysis.screening)
    chosen = judged_tables(analysis)
    return (
        tuple(
            paragraph
            for table in chosen
            for arm in analysis.levels[1:]
            if (paragraph := _paragraph(analysis, table, arm=arm))
        )
        + breaches(analysis)
        + unclear(analysis)
        + estimands(analysis)
        + hosts.sentences(analysis, chosen)
        + tuple(curves.lines(analysis))
        + interactions.sentences(analysis)
        + layouts.sentences(chosen)
        + covariates.sentences(chosen)
    )


def judged_tables(analysis: Analysis) -> list[MetricTable]:
    """Primary metrics; those of every role if the study named no primary one."""
    tables = metric_tables(analysis)
    return [table for table in tables if table.role == "primary"] or list(tables)


def estimands(analysis: Analysis) -> tuple[str, ...]:
    """What claims and outcomes of guardrails are about, the mean or the typical trial only, and what stalls may cost.

    A sentence each, and one on stalls for what is not shown of the mean.
    """
    tables = judged_tables(analysis)
    judged = [(table, row) for table in tables for row in table.rows if row.comparison.verdict != "none"]
    claims = [(table, row, row.comparison.estimand) for table, row in judged]
    outcomes = [
        (table, row, row.comparison.guardrail.estimand)
        for table in metric_tables(analysis)
        for row in table.rows
        if row.comparison.guardrail is not None
    ]
    said = f"{_about('Claims', analysis, claims)} {_open([row.comparison for _, row in judged])}".strip()
    return tuple(each for each in (said, _about("Outcomes of guardrails", analysis, outcomes)) if each)


def _about(subject: str, analysis: Analysis, rows: Sequence[tuple[MetricTable, Row, Estimand | None]]) -> str:
    several = len({table.definition.name for table, _, _ in rows}) > 1
    spots: dict[Estimand | None, dict[str, None]] = defaultdict(dict)
    for table, row, estimand in rows:
        spots[estimand][_spot(analysis, table, row, named=several)] = None
    of_mean, typical, some = ([*spots[each]] for each in _ESTIMANDS)
    said = []
    if of_mean and typical:
        said.append(f"{subject} are about the typical trial, and about the mean as well at {_joined(of_mean)}.")
    elif of_mean:
        said.append(f"{subject} are about the typical trial and the mean: unseen stalls cannot explain them.")
    elif typical:
        said.append(f"{subject} are about the typical trial, not about the mean.")
    if some:
        where = f" at {_joined(some)}" if of_mean or typical else ""
        said.append(f"{subject}{where} are about some trials only: the typical trial does not change.")
    return " ".join(said)


def _spot(analysis: Analysis, table: MetricTable, row: Row, *, named: bool) -> str:
    """What tells a comparison from the others: its metric if `named`, its conditions, its arm if there are several."""
    metric = [table.definition.label] if named else []
    arm = [row.arm.arm] if len(analysis.levels) > TWO_ARMS else []
    return ", ".join([*metric, *row.levels.values(), *arm]) or table.definition.label


def _open(judged: Sequence[Comparison]) -> str:
    """Where nothing is shown of the mean. A stall costs a share, which values without logarithms do not have."""
    undecided = [
        each.stalls
        for each in judged
        if each.estimand != "mean" and each.stalls is not None and each.ratio.estimate is not None
    ]
    if not undecided:
        return ""
    most = max(undecided, key=lambda each: each.share)
    share, depth, worth = (f"{100 * value:.3g} %" for value in (most.share, most.depth, most.worth))
    unseen = f"Even if no trial stalled, stalls in up to {share} of an arm's trials cannot be excluded"
    return f"{unseen}: with a loss of {depth} each, they cost the arm up to {worth}."


def breaches(analysis: Analysis) -> tuple[str, ...]:
    """A sentence per guardrail and arm shown to be worse by its margin: a claim may not hide its price."""
    return tuple(
        f"Guardrail breached: with {analysis.contrast} {arm}, {table.definition.label} was "
        f"{_joined([_claim(analysis, table, row) for row in rows])}."
        for table, arm, rows in _guarded(analysis, "breached")
        if rows
    )


def unclear(analysis: Analysis) -> tuple[str, ...]:
    """A sentence per guardrail and arm of which neither is shown: silence would read as kept."""
    said = []
    for table, arm, rows in _guarded(analysis, "unclear"):
        margin = next((row.comparison.guardrail.margin for row in rows if row.comparison.guardrail is not None), None)
        places, absent = [_place(row.levels) for row in rows], _absent(analysis, table, arm=arm)
        open_ = [] if margin is None else [f"is not shown to stay within {numbers.percent(margin)}{_at(places)}"]
        open_ += [f"has no value to compare{_at(absent)}"] if absent else []
        if open_:
            subject = f"with {analysis.contrast} {arm}, {table.definition.label}"
            said.append(f"Guardrail unclear: {subject} {_joined(open_)}.")
    return tuple(said)


def _guarded(analysis: Analysis, outcome: Outcome) -> Iterator[tuple[MetricTable, str, list[Row]]]:
    """Guardrails by arm, with the rows that have this outcome."""
    for table in (table for table in metric_tables(analysis) if table.role == "guardrail"):
        for arm in analysis.levels[1:]:
            yield (
                table,
                arm,
                [
                    row
                    for row in table.rows
                    if row.arm.arm == arm and (guarded := row.comparison.guardrail) and guarded.outcome == outcome
                ],
            )


def _absent(analysis: Analysis, table: MetricTable, *, arm: str) -> list[str]:
    return [_place(cell.levels) for cell, other in without_values(analysis, table) if other == arm]


def _paragraph(analysis: Analysis, table: MetricTable, *, arm: str) -> str:
    label = table.definition.label
    compared = f"{analysis.contrast} {arm} instead of {analysis.levels[0]}"
    rows = [row for row in table.rows if row.arm.arm == arm]
    claims = [_claim(analysis, table, row) for row in rows if row.comparison.verdict in ("faster", "slower")]
    spoken = [f"With {compared}, {label} was {_joined(claims)}."] if claims else []
    about = "" if claims else f" in {label} with {compared}"
    for verdict, words in _NO_CLAIM.items():
        places = [_place(row.levels) for row in rows if _outcome(row.comparison) == verdict]
        if places:
            outcome = words.format(margin=numbers.percent(analysis.margin))
            spoken.append(f"{outcome}{about}{_at(places)}.")
    if absent := _absent(analysis, table, arm=arm):
        spoken.append(f"There is no verdict{about}{_at(absent)}, because there is no value to compare.")
    return " ".join(spoken)


def _outcome(of: Comparison) -> Verdict | Literal["few"]:
    """The verdict; undecided is also what so few trials could not have decided."""
    return _FEW if of.verdict == "undecided" and not of.claimable else of.verdict


def _claim(analysis: Analysis, table: MetricTable, row: Row) -> str:
    compared = row.comparison
    if compared.ratio.estimate is None:  # values without a logarithm have a difference only
        moved = compared.difference.estimate or 0.0
        size = f"{table.scale.value(abs(moved))} {table.scale.difference_unit}".rstrip()
        changed = f"{size} {'higher' if moved > 0 else 'lower'}"
        interval = table.scale.interval(compared.difference.low, compared.difference.high)
    else:
        of = compared.ratio
        ratio, interval = numbers.ratio_and_interval(of.estimate, of.low, of.high)
        changed = f"{ratio} times as high"
    share = numbers.percent(analysis.confidence)
    outcome = _breach(compared.guardrail) or word(compared.verdict, table.definition)
    return f"{changed} ({share} interval {interval}, {outcome}){_at([_place(row.levels)])}"


def _breach(guardrail: Guardrail | None) -> str:
    """How a guardrail is breached: the comparison's verdict is about another margin."""
    if guardrail is None or guardrail.outcome != "breached":
        return ""
    bound = "" if guardrail.bound is None else f", at worst {numbers.ratio(guardrail.bound)}"
    return f"worse by more than {numbers.percent(guardrail.margin)}{bound}"


def _place(levels: Mapping[str, str]) -> str:
    return ", ".join(f"{factor} {level}" for factor, level in levels.items())


def _at(places: list[str]) -> str:
    """Where; nothing for a study without conditions."""
    return f" at {_joined(places)}" if any(places) else ""


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else "; ".join(parts[:-1]) + " and " + parts[-1]


def headline(analysis: Analysis) -> str:
    """Counts of verdicts over the primary metrics, and of guardrails whatever the arms: `2 faster, 1 undecided`."""
    if analysis.screening is not None:
        return screening.headline(analysis.screening)
    primary = [table for table in metric_tables(analysis) if table.role == "primary"]
    said = Counter(word(row.comparison.verdict, table.definition) for table in primary for row in table.rows)
    said["no verdict"] += sum(len(without_values(analysis, each)) for each in primary)
    words = [f"{said[each]} {'without verdict' if each == 'no verdict' else each}" for each in _ORDER if said[each]]
    broken = {table.definition.name for table, _, rows in _guarded(analysis, "breached") if rows}
    words += [f"{counted(len(broken), 'guardrail')} breached"] if broken else []
    open_ = {
        table.definition.name
        for table, arm, rows in _guarded(analysis, "unclear")
        if rows or _absent(analysis, table, arm=arm)
    }
    words += [f"{counted(len(open_), 'guardrail')} unclear"] if open_ else []
    return ", ".join(words) or "no primary comparison"
