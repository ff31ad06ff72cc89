"""The analysis of a run: trials in, verdicts with their doubts out. Puts the other modules of this package in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairtrial.analyse import lower_bounds, sequential, within
from fairtrial.analyse.boots import by_boot
from fairtrial.analyse.designs import screening
from fairtrial.analyse.designs.covariates import Adjusting, adjusting, by_class
from fairtrial.analyse.designs.curves import curves
from fairtrial.analyse.designs.interactions import Circumstances, interactions
from fairtrial.analyse.designs.layouts import over_layouts
from fairtrial.analyse.doubts import comparisons as doubts
from fairtrial.analyse.doubts import covariates as covariate_doubts
from fairtrial.analyse.doubts import curves as curve_doubts
from fairtrial.analyse.doubts import fitness
from fairtrial.analyse.doubts import hosts as host_doubts
from fairtrial.analyse.doubts import layouts as layout_doubts
from fairtrial.analyse.doubts import order as order_doubts
from fairtrial.analyse.doubts import runs as run_doubts
from fairtrial.analyse.doubts.course import course
from fairtrial.analyse.expectations import expectations, unmet
from fairtrial.analyse.hosts.comparing import over_hosts
from fairtrial.analyse.inference import guardrails, judging, power, sharing
from fairtrial.analyse.inference.comparing import CENSORED, ComparisonOptions, Subject, comparable, compare
from fairtrial.analyse.measured import ArmValues, measured, summary
from fairtrial.analyse.models import (
    Analysis,
    CellResult,
    Comparison,
    Doubt,
    ExpectationResult,
    Guardrail,
    Role,
    Summary,
)
from fairtrial.analyse.noise import profile as noise
from fairtrial.analyse.noise.floors import floors
from fairtrial.analyse.selection import ContrastCell, Selection, select
from fairtrial.analyse.tidy import Course, CurveRequest, Request, Table
from fairtrial.record.models import BlockVoided, PlaceOpened, Plan, TrialRecord
from fairtrial.study.service_counters import ERROR_SUFFIX

FAMILIES: Final[tuple[Role, Role]] = ("primary", "secondary")  # roles whose p values are adjusted together
Expected = Mapping[str, tuple[ExpectationResult, ...]]


def analyse(
    plan: Plan,
    trials: Sequence[TrialRecord],
    *,
    contrast: str | None = None,
    finished: bool = True,
    events: Sequence[PlaceOpened | BlockVoided] = (),
) -> Analysis:
    """Analyses a run's trials.

    Args:
        plan: as recorded; the study itself is never read.
        trials: every committed trial, valid or not, in any order; diagnostic ones are counted and left out.
        contrast: the factor to compare, its first level as baseline; the plan's arm if None. The cells are then the
            combinations of all other factors, and trials pair by block.
        finished: whether the run reached its planned end; without it there is no verdict.
        events: of the journal: places, whose facts hold the noise profiles that were kept there when the run began, and
            whose findings say how fit they were; blocks that are void, those too that a host of a farm lost.

    Raises:
        InputError: the plan has no such factor.
        RecordError: two trials stand for the same arm in the same block.
    """
    places = [event for event in events if isinstance(event, PlaceOpened)]
    voided = {(event.cell, event.block) for event in events if isinstance(event, BlockVoided)}
    diagnostic = sum(trial.trial.diagnostic for trial in trials)
    every = [trial for trial in trials if not trial.trial.diagnostic]  # probes change what they look at
    trials = sequential.in_time(plan, every, voided=voided)
    selection = select(plan, trials, contrast=contrast, voided=voided)
    plan, roles = _as_read(plan, trials), _roles(plan)
    expected = expectations(plan, trials)
    steadiness = within.steadiness(selection)
    withheld = {cell.name: _unmet_levels(cell, expected) for cell in selection.cells}
    run = sequential.follow(plan, trials, contrast=contrast, voided=voided)
    request = _request(plan, selection, roles)
    analysis = analyse_table(
        _table(selection, roles),
        request,
        Course(
            counts=selection.counts.model_copy(update={"diagnostic": diagnostic, "late": len(every) - len(trials)}),
            finished=finished,
            doubts=(
                *course(plan, selection, expected=expected, finished=finished),
                *within.doubts(selection, steadiness, metrics=list(roles)),
                *fitness.doubts(plan, places),
            ),
            expectations={cell.name: _expectations(cell, expected) for cell in selection.cells},
            without_verdict=lambda each: bool(withheld[each.cell] & {each.baseline, each.arm}),
            steadiness=steadiness,
            fixed=plan.design.stop == "fixed",
            in_step=selection.in_step,
            boots=selection.boots,
            cut_off=lower_bounds.cut_off(selection.cells),
            run=run,
            stopping=sequential.stopping(plan, run) if selection.contrast == plan.arm else None,
        ),
    )
    analysis = by_boot(analysis, plan)
    if plan.screening is not None:
        result = screening.screened(plan.screening, _by_row(selection, roles), confidence=plan.design.confidence)
        return analysis.model_copy(update={"screening": result})
    if plan.against_itself and selection.contrast == plan.arm:  # a condition of an A/A run can be compared as well
        return analysis.model_copy(update={"noise": noise.profile(plan, selection)})
    if not request.paired:
        return analysis
    compared = [each for cell in analysis.cells for family in cell.comparisons.values() for each in family]
    return analysis.model_copy(update={"floors": floors(plan, selection, compared, places=places)})


def _by_row(selection: Selection, metrics: Iterable[str]) -> dict[str, list[tuple[str, int, float]]]:
    """Of every metric: the row, the replicate and the value of each used trial that has one."""
    return {
        metric: [
            (trial.trial.arm, trial.trial.round, trial.scalars[metric])
            for trial in selection.used
            if metric in trial.scalars
        ]
        for metric in metrics
    }


def _request(plan: Plan, selection: Selection, roles: Mapping[str, Role]) -> Request:
    return Request(
        study=plan.study,
        question=plan.question,
        contrast=selection.contrast,
        levels=selection.levels,
        cells={cell.name: cell.levels for cell in selection.cells},
        metrics={name: plan.metrics.definitions[name] for name in roles},
        roles=roles,
        paired=power.is_paired(plan),
        confidence=plan.design.confidence,
        margin=plan.design.margin,
        guardrail_margins=plan.metrics.guardrail_margins,
        seed=plan.design.seed,
        covariates=_table(selection, plan.metrics.covariates),
        adjust=plan.metrics.adjust,
        screens=plan.screening is not None,
        curve=None if plan.curve is None else CurveRequest(**dict(plan.curve), numbers=plan.values[plan.curve.over]),
    )


def _as_read(plan: Plan, trials: Sequence[TrialRecord]) -> Plan:
    """The plan, in which growth that depends on when counters were read is no count."""
    timed = {name for name in plan.metrics.own if any(trial.scalars.get(f"{name}{ERROR_SUFFIX}") for trial in trials)}
    if not timed:
        return plan
    definitions = {
        name: each.model_copy(update={"kind": "wall_clock"}) if name in timed else each
        for name, each in plan.metrics.definitions.items()
    }
    return plan.model_copy(update={"metrics": plan.metrics.model_copy(update={"definitions": definitions})})


def analyse_table(table: Table, request: Request, course: Course) -> Analysis:
    """Analyses numbers, whatever they were read from; the table has every cell, metric and level, empty ones too."""
    setting = _setting(table, request, fixed=course.fixed)
    pairs = _pairs(table, request)
    compared = [_compared(pair, setting, request) for pair in pairs]
    if setting.once:
        compared = _with_shares(compared, table, setting=setting)
    looked = compared if course.run is None else sequential.adjusted(compared, course.run, request.metrics)
    judged = judging.judge(
        list(lower_bounds.heeded(looked, course.cut_off)),
        metrics=request.metrics,
        setting=setting,
        without_verdict=lambda each: not course.finished or course.without_verdict(each),
        missing={role: setting.size(role) - sum(pair.subject.role == role for pair in pairs) for role in FAMILIES},
    )
    if setting.once:
        judged = [_with_power(each, table, setting=setting) for each in judged]
    rule = None if course.run is None else course.run.rule
    judged = over_hosts(judged, table, metrics=request.metrics, setting=setting, rule=rule)
    judged = over_layouts(judged, table, metrics=request.metrics, setting=setting, rule=rule)
    more = [(*host_doubts.about(each), *layout_doubts.about(each)) for each in judged]
    judged = [each.model_copy(update={"doubts": (*each.doubts, *new)}) for each, new in zip(judged, more, strict=True)]
    failed = unmet(course.expectations)
    fitted = curves(table, request, finished=course.finished, unmet=failed, cut_off=course.cut_off)
    return Analysis(
        study=request.study,
        question=request.question,
        contrast=request.contrast,
        levels=request.levels,
        finished=course.finished,
        paired=setting.paired,
        margin=setting.margin,
        confidence=setting.confidence,
        metrics=dict(request.metrics),
        roles=dict(request.roles),
        cells=_cells(table, request, judged=judged, expected=course.expectations),
        counts=course.counts,
        stopping=course.stopping,
        steadiness=course.steadiness,
        doubts=(
            *course.doubts,
            *_run_doubts(table, request, judged=judged, setting=setting, course=course),
            *curve_doubts.about(fitted),
        ),
        curves=fitted,
        interactions=interactions(
            judged,
            table,
            request,
            setting=setting,
            circumstances=Circumstances(course.finished, course.without_verdict, rule=rule, in_step=course.in_step),
        ),
    )


def _setting(table: Table, request: Request, *, fixed: bool) -> ComparisonOptions:
    others = len(request.levels) - 1
    primary, secondary = (sum(request.roles[metric] == role for _, metric in table) * others for role in FAMILIES)
    return ComparisonOptions(
        paired=request.paired,
        confidence=request.confidence,
        margin=request.margin,
        family_size=primary,
        screening_size=secondary,
        once=fixed,
        seed=request.seed,
    )


@dataclass(frozen=True)
class _Pair:
    """Two arms to compare on one metric in one cell."""

    subject: Subject
    baseline: ArmValues
    arm: ArmValues


def _roles(plan: Plan) -> dict[str, Role]:
    """Role by metric name: primary first."""
    named: list[tuple[Role, list[str]]] = [
        ("primary", plan.metrics.primary),
        ("secondary", plan.metrics.secondary),
        ("guardrail", plan.metrics.guardrails),
    ]
    roles: dict[str, Role] = {}
    for role, names in named:
        for name in names:
            roles.setdefault(name, role)  # named twice, a metric keeps its stricter role
    return roles


def _table(selection: Selection, metrics: Iterable[str]) -> Table:
    return {
        (cell.name, metric): {
            level: measured(cell.groups[level], metric=metric, arm=level) for level in selection.levels
        }
        for cell in selection.cells
        for metric in metrics
    }


def _pairs(table: Table, request: Request) -> list[_Pair]:
    """Every level against the first, cell by cell and metric by metric, where there is anything to compare."""
    first, *others = request.levels
    if request.screens:
        return []
    return [
        _Pair(
            Subject(
                metric=metric,
                role=request.roles[metric],
                cell=cell,
                resolution=request.metrics[metric].resolution,
                total=request.metrics[metric].total,
            ),
            baseline=arms[first],
            arm=arms[level],
        )
        for (cell, metric), arms in table.items()
        for level in others
        if comparable(arms[first], arms[level], paired=request.paired)
    ]


def _compared(pair: _Pair, setting: ComparisonOptions, request: Request) -> Comparison:
    adjusted = _adjusting(pair, request)
    deciding = None if adjusted is None else adjusted.deciding
    comparison = compare(pair.baseline, pair.arm, subject=pair.subject, setting=setting, covariates=deciding)
    if adjusted is not None:
        found = adjusted.adjustment
        found = by_class(found, comparison.ratio) if CENSORED in comparison.method else found
        comparison = comparison.model_copy(update={"covariates": found})
    reasons = (
        *doubts.about(comparison, pair.baseline, pair.arm, alpha=setting.alpha),
        *covariate_doubts.about(comparison),
    )
    return comparison.model_copy(update={"doubts": reasons, "guardrail": _guardrail(pair, setting, request)})


def _adjusting(pair: _Pair, request: Request) -> Adjusting | None:
    """Of primary metrics, where trials have covariates."""
    if not request.paired or pair.subject.role != "primary":
        return None
    own = {name: arms for (cell, name), arms in request.covariates.items() if cell == pair.subject.cell}
    if not own:
        return None
    return adjusting(pair.baseline, pair.arm, covariates=own, confidence=request.confidence, decides=request.adjust)


def _with_power(comparison: Comparison, table: Table, *, setting: ComparisonOptions) -> Comparison:
    """Adds what a claim's size is worth, which only its verdict tells to ask."""
    if comparison.role == "guardrail":
        return comparison
    arms = table[comparison.cell, comparison.metric]
    reasons = doubts.little_power(comparison, arms[comparison.baseline], arms[comparison.arm], setting=setting)
    return comparison.model_copy(update={"doubts": (*comparison.doubts, *reasons)})


def _guardrail(pair: _Pair, setting: ComparisonOptions, request: Request) -> Guardrail | None:
    if pair.subject.role != "guardrail":
        return None
    rail = guardrails.rule(request.metrics[pair.subject.metric], request.guardrail_margins, otherwise=setting.margin)
    return guardrails.guarded(pair.baseline, pair.arm, rail=rail, setting=setting)


def _with_shares(compared: Sequence[Comparison], table: Table, *, setting: ComparisonOptions) -> list[Comparison]:
    """Adds what comparisons of one cell and metric share, having one baseline."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in compared:
        places[each.cell, each.metric].append(each.arm)
    shares = {
        (*place, arm): share
        for place, arms in places.items()
        if len(arms) > 1
        for arm, share in sharing.shares(table[place], arms, paired=setting.paired).items()
    }
    return [
        each.model_copy(update={"baseline_share": shares.get((each.cell, each.metric, each.arm), 0.0)})
        for each in compared
    ]


def _unmet_levels(cell: ContrastCell, expected: Expected) -> set[str]:
    """Levels of the contrast whose planned cell failed an expectation."""
    return {level for level, name in cell.planned_cells.items() if any(not result.met for result in expected[name])}


def _expectations(cell: ContrastCell, expected: Expected) -> tuple[ExpectationResult, ...]:
    """Of every planned cell whose trials stand in this one."""
    return tuple(result for name in dict.fromkeys(cell.planned_cells.values()) for result in expected[name])


def _cells(
    table: Table, request: Request, *, judged: Sequence[Comparison], expected: Expected
) -> tuple[CellResult, ...]:
    comparisons: dict[tuple[str, str], list[Comparison]] = defaultdict(list)
    for each in judged:
        comparisons[each.cell, each.metric].append(each)
    metrics = list(dict.fromkeys(metric for _, metric in table))
    return tuple(
        CellResult(
            cell=name,
            levels=levels,
            summaries={metric: _summaries(table[name, metric], confidence=request.confidence) for metric in metrics},
            comparisons={metric: tuple(comparisons[name, metric]) for metric in metrics},
            expectations=expected.get(name, ()),
            covariates={
                covariate: _summaries(arms, confidence=request.confidence)
                for (cell, covariate), arms in request.covariates.items()
                if cell == name
            },
        )
        for name, levels in request.cells.items()
    )


def _summaries(arms: Mapping[str, ArmValues], *, confidence: float) -> tuple[Summary, ...]:
    """Of the levels that have a value, in the contrast's order."""
    summaries = (summary(each, confidence=confidence) for each in arms.values())
    return tuple(each for each in summaries if each is not None)


def _run_doubts(
    table: Table, request: Request, *, judged: Sequence[Comparison], setting: ComparisonOptions, course: Course
) -> tuple[Doubt, ...]:
    """What shows only across cells."""
    if request.screens:
        return ()
    compared = {(each.cell, each.metric, each.arm) for each in judged}
    intended = [(cell, metric, level) for cell, metric in table for level in request.levels[1:]]
    absent = [each for each in intended if each not in compared]
    reasons = [*run_doubts.not_compared(absent, planned=len(intended))]
    if setting.once:
        reasons += run_doubts.few_blocks(
            judged, paired=setting.paired, alpha=setting.alpha, family_size=setting.family_size
        )
    else:
        reasons += [doubt for each in judged for doubt in sequential.rests_on_normality(each)]
    for metric in dict.fromkeys(metric for _, metric in table):
        groups = [(cell, each) for cell in request.cells for each in table[cell, metric].values()]
        cells = [[*table[cell, metric].values()] for cell in request.cells]
        noun, unit, advice = "trials", request.metrics[metric].unit, _on_drift(cells, setting)
        if boots := course.boots:
            levels = [each.arm if boots == request.contrast else request.cells[cell][boots] for cell, each in groups]
            groups, noun = [*run_doubts.of_boots(groups, levels)], "boots"
        reasons += run_doubts.sorted_values(metric, groups)
        reasons += run_doubts.drift(metric, groups, unit=unit, advice=advice, noun=noun)
        if setting.paired and request.roles[metric] == "primary":
            reasons += order_doubts.fixed_slots(metric, cells, in_step=course.in_step)
            reasons += order_doubts.dependent_blocks(metric, cells, in_step=course.in_step)
    return tuple(reasons)


def _on_drift(cells: order_doubts.Cells, setting: ComparisonOptions) -> str:
    if not setting.paired:
        return run_doubts.NOT_INTERLEAVED
    return run_doubts.PROTECTED if order_doubts.interleaved(cells) else run_doubts.ONE_SIDE
