"""May this run pass? One check for each series of a history, or for each comparison of two runs or of a run's arms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from itertools import takewhile
from typing import Final, Literal

from pydantic import computed_field

from fairtrial.analyse import lower_bounds
from fairtrial.analyse.boots import averaged
from fairtrial.analyse.expectations import expectations, unmet
from fairtrial.analyse.inference import comparing, guardrails, judging
from fairtrial.analyse.measured import ArmValues, measured
from fairtrial.analyse.models import Comparison, Interval, Role
from fairtrial.analyse.models import Outcome as GuardrailOutcome
from fairtrial.analyse.result import Result
from fairtrial.history.examining import FEWEST_TO_ALARM
from fairtrial.history.models import Alarm, History, LevelChange, SeriesResult
from fairtrial.metrics.frames import in_time, last_rounds, used_trials
from fairtrial.record import Record
from fairtrial.record.models import PlannedMetrics, TrialRecord
from fairtrial.report import numbers, tables
from fairtrial.study.catalogue import Better, MetricDefinition

Status = Literal["passed", "failed", "accepted", "undecided", "skipped"]
Outcome = Literal["passed", "failed", "undecided"]
LedgerState = Literal["used", "unused", "exceeded", "expired"]
OF_GUARDRAIL: Final[dict[GuardrailOutcome, Status]] = {
    "kept": "passed",
    "breached": "failed",
    "unclear": "undecided",
    "none": "undecided",
}
UNMET: Final = "the cell failed an expectation"
UNPLANNED: Final = "the newest run does not plan it"
DIGITS: Final = ".10g"  # of a constant: what differs beyond them is rounding
BETWEEN_RUNS: Final = (
    "two runs are compared by their trials, so noise from run to run counts as a difference; "
    "a history accounts for that noise"
)


class GateCheck(Result):
    """One thing that must hold.

    Attributes:
        series, metric: what was looked at.
        status: `accepted`: it would fail, and the ledger excuses it.
        message: what was found.
        worse_by: the estimated share by which the metric is worse; None where it is not, or where it has no share.
    """

    series: str
    metric: str
    status: Status
    message: str
    worse_by: float | None = None


class AcceptedRegression(Result):
    """An entry of the ledger, as `fairtrial.history.accepted` reads it, and what became of it at this gate.

    Attributes:
        at: where it stands, `file:line`.
        state: `exceeded`: a check of its metric is worse than it accepts.
    """

    at: str
    metric: str
    series: str
    worse_by: float
    because: str
    by: str
    until: date
    state: LedgerState


class Gate(Result):
    """Every check, and what holds for all of them; `ledger` has the regressions that the project accepts."""

    against: str
    checks: tuple[GateCheck, ...]
    notes: tuple[str, ...] = ()
    ledger: tuple[AcceptedRegression, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def outcome(self) -> Outcome:
        """Whether it is open. Skipped checks do not hold it shut, but a gate of nothing else is no gate."""
        found = {check.status for check in self.checks}
        if "failed" in found or found <= {"skipped"}:
            return "failed"
        return "undecided" if "undecided" in found else "passed"

    @property
    def passed(self) -> bool:
        """Whether no check failed, and none is undecided."""
        return self.outcome == "passed"


def by_history(history: History) -> Gate:
    """Fails where the newest point alarms, or where the level that holds now is worse than one before it.

    Only what is larger than the margin, not for the better, not acknowledged and not made good, back to the last
    acknowledged change. Where nobody said which direction is better, every direction fails. Changes get the part of
    alpha that alarms leave, half of it at least, so that both together fail a gate for nothing in a share of alpha;
    constants have no such rate.
    """
    level = max(history.alpha - history.alarm_alpha, history.alpha / 2)
    return Gate(
        against="history",
        checks=tuple(_of_series(each, level) for each in history.series),
        notes=tuple(f"left out: {run}: {reason}" for run, reason in history.left_out.items()),
    )


def _of_series(of: SeriesResult, level: float) -> GateCheck:
    if of.unmet:
        return _check(of, "undecided", f"{UNMET} in the newest run, {of.newest}")
    if of.unplanned:
        return _check(of, "skipped", UNPLANNED)
    if of.newest and of.newest != of.runs[-1]:
        return _check(
            of, "failed", f"the newest run, {of.newest}, has no value; the last run with a value is {of.runs[-1]}"
        )
    if of.alarm is None:
        words = constant_in_words(of)
        return _check(of, "passed" if words else "skipped", words or f"too few runs ({len(of.values)})")
    last = of.changes[-1] if of.changes else None
    losses = _losses(of) if of.p_adjusted is not None and of.p_adjusted <= level else []
    alarm = _matters(of.alarm)
    found = [_loss_in_words(of, losses[0])] if losses else []
    if alarm and (departure := departure_in_words(of)):
        found.append(departure)
    elif alarm := alarm and of.alarm.raised:
        found.append(f"newest run against the previous level: {_size(of, of.alarm)}; {of.alarm.direction}")
    if found:
        return _check(of, "failed", "; ".join(found), worse=_worse_by_all(of, losses, of.alarm if alarm else None))
    known = [each.known.because for each in (last, of.alarm) if each is not None and each.known is not None]
    note = f" (known: {known[0]})" if known else ""
    return _check(of, "passed", f"newest run against the previous level: {_size(of, of.alarm)}{note}")


def _losses(of: SeriesResult) -> list[LevelChange]:
    """Changes for the worse since the last acknowledged one that the newest level has not made good, newest first."""
    since = takewhile(lambda change: change.known is None, reversed(of.changes))
    return [change for change in since if _matters(change) and change.holds and not change.went_away]


def _worse_by_all(of: SeriesResult, losses: Sequence[LevelChange], alarm: Alarm | None) -> float | None:
    """How much worse the newest run is than before the losses and its alarm, and at least as by each alone.

    A ledger accepts so much of a metric, not so much each time.
    """
    rest = [*_untold_step(of), *([] if alarm is None else [alarm.ratio.estimate])]
    since = [_since(of, change) for change in losses]
    sizes = [each for each in (*since, *rest) if each is not None]
    if len(sizes) < len(since) + len(rest):
        return None
    sizes += [math.prod([size, *sizes[len(since) :]]) for size in sizes[: len(since)] or [1.0]]
    together = (worse_by(Interval(estimate=each, low=None, high=None), of.better) for each in sizes)
    return max((each for each in together if each is not None), default=None)


def _since(of: SeriesResult, change: LevelChange) -> float | None:
    """The newest level in that before a change; None where that is no number."""
    ratio = of.changes[-1].after / change.before if of.relative else math.inf
    return ratio if math.isfinite(ratio) else None


def _loss_in_words(of: SeriesResult, change: LevelChange) -> str:
    """`level changed at r20: −20.0 %, now −17.5 %; worse`."""
    newest = of.changes[-1].after - change.before
    now = "" if change is of.changes[-1] else f", now {size_in_words(_since(of, change), newest, of.unit)}"
    return f"level changed at {change.run}: {_size(of, change)}{now}; {change.direction}"


def _untold_step(of: SeriesResult) -> list[float]:
    """The step onto the constant that the newest run is held against, where too few runs make it no level's change."""
    start = of.constant[0] if of.constant is not None else 0
    if not start or not of.relative or any(each.index == start for each in of.changes):
        return []
    return [of.values[start] / of.values[start - 1]]


def constant_in_words(of: SeriesResult) -> str:
    """`all 30 runs have 100`; empty if they differ by more than rounding, or are too few to say so."""
    if of.constant != (0, len(of.values)) or len(of.values) < FEWEST_TO_ALARM:
        return ""
    return f"all {len(of.values)} runs have {of.values[0]:{DIGITS}}"


def departure_in_words(of: SeriesResult) -> str:
    """`the first 29 of 30 runs have 100, the newest has 90`; empty unless it left by more than the margin."""
    if of.constant is None or of.alarm is None or not of.alarm.relevant:
        return ""
    start, end = of.constant
    which = f"{end - start} runs from {of.runs[start]} on" if start else f"the first {end} of {len(of.values)} runs"
    return f"{which} have {of.values[start]:{DIGITS}}, the newest has {of.alarm.value:{DIGITS}}"


def size_in_words(ratio: float | None, difference: float, unit: str) -> str:
    """A change in percent, or in the unit where there is no percentage."""
    if ratio is None or math.isinf(100 * ratio):
        return f"{difference:+.4g} {unit}".strip()
    return numbers.change(ratio)


def interval_in_words(of: Interval) -> str:
    """` [+10.1 %, +14.5 %]`; empty without one, or where percentages are not finite."""
    if of.low is None or of.high is None or math.isinf(100 * of.high):
        return ""
    return f" [{numbers.change(of.low)}, {numbers.change(of.high)}]"


def _matters(change: LevelChange | Alarm) -> bool:
    return change.relevant and change.direction != "better" and change.known is None


def _size(of: SeriesResult, change: LevelChange | Alarm) -> str:
    difference = change.difference if isinstance(change, LevelChange) else change.value - change.expected
    return size_in_words(change.ratio.estimate, difference, of.unit)


def worse_by(ratio: Interval, better: Better | None) -> float | None:
    """The estimated share by which a metric got worse; where nobody said what is better, by which it changed."""
    if ratio.estimate is None or not math.isfinite(ratio.estimate):
        return None
    rise = ratio.estimate - 1
    worse = abs(rise) if better is None else -rise if better == "higher" else rise
    return worse if worse > 0 else None


def _check(of: SeriesResult, status: Status, message: str, *, worse: float | None = None) -> GateCheck:
    return GateCheck(series=of.series, metric=of.metric, status=status, message=message, worse_by=worse)


def by_baseline(
    run: Record, baseline: Record, *, metrics: Sequence[str], alpha: float, margin: float | None = None
) -> Gate:
    """Fails where a cell's arm is slower than the same cell's arm of the baseline run: Welch on logs, Holm over all.

    Guardrails of the run's plan are no part of that family: each is tested against its own margin, and fails where it
    is breached. It fails as well where the run has no value, for its plan asks for one. A cell that failed an
    expectation in either run is undecided.
    """
    used = (used_trials(run), used_trials(baseline))
    planned, definitions = run.plan.metrics, run.plan.metrics.definitions
    roles: dict[str, Role] = {
        metric: "guardrail" if metric in planned.guardrails and metric not in planned.primary else "primary"
        for metric in metrics
    }
    pairs = [
        (cell.name, arm, metric)
        for metric in metrics
        for cell in run.plan.cells
        for arm in run.plan.factors[run.plan.arm]
    ]
    setting = comparing.ComparisonOptions(
        paired=False,
        confidence=1 - alpha,
        margin=run.plan.design.margin if margin is None else margin,
        family_size=sum(roles[metric] == "primary" for *_, metric in pairs),
    )
    both = {pair: _measured(used, pair) for pair in pairs}
    cut = [lower_bounds.cut_off_of(trials) for trials in used]
    made = {
        pair: lower_bounds.bounded(
            _compared(pair, (new, old), role=roles[pair[2]], of=planned, setting=setting),
            arm=pair in cut[0],
            baseline=pair in cut[1],
        )
        for pair, (new, old) in both.items()
        if comparing.comparable(old, new, paired=False)
    }
    failed = _unmet(run) | _unmet(baseline)
    withheld = {named(cell, arm) for cell, arm, _ in pairs if cell in failed}
    judged = judging.judge(
        list(made.values()),
        metrics=definitions,
        setting=setting,
        without_verdict=lambda each: each.cell in withheld,
        missing={"primary": sum(roles[pair[2]] == "primary" for pair in pairs if pair not in made)},
    )
    verdicts = dict(zip(made, judged, strict=True))
    checks = tuple(
        _of_pair(pair, both[pair][0], comparison=verdicts.get(pair), definition=definitions[pair[2]]) for pair in pairs
    )
    return Gate(against=baseline.directory.resolve().name, checks=checks, notes=(BETWEEN_RUNS,))


def _unmet(record: Record) -> frozenset[str]:
    """Cells that failed an expectation, on the trials that the run's report judges it by."""
    ends = last_rounds(record.events)
    trials = [each for each in record.trials if not each.trial.diagnostic and in_time(each.trial, ends)]
    return unmet(expectations(record.plan, trials))


def _measured(
    used: tuple[Sequence[TrialRecord], Sequence[TrialRecord]], pair: tuple[str, str, str]
) -> tuple[ArmValues, ArmValues]:
    cell, arm, metric = pair
    new, old = (
        measured(
            averaged([trial for trial in trials if (trial.trial.cell, trial.trial.arm) == (cell, arm)]),
            metric=metric,
            arm=arm,
        )
        for trials in used
    )
    return new, old


def _compared(
    pair: tuple[str, str, str],
    both: tuple[ArmValues, ArmValues],
    *,
    role: Role,
    of: PlannedMetrics,
    setting: comparing.ComparisonOptions,
) -> Comparison:
    cell, arm, metric = pair
    new, old = both
    definition = of.definitions[metric]
    # Every arm is held against its own past, so arms share no baseline: each is a place of its own in the family.
    subject = comparing.Subject(
        metric=metric,
        role=role,
        cell=named(cell, arm),
        resolution=definition.resolution,
        total=definition.total,
    )
    comparison = comparing.compare(old, new, subject=subject, setting=setting)
    if role != "guardrail":
        return comparison
    rail = guardrails.rule(definition, of.guardrail_margins, otherwise=setting.margin)
    return comparison.model_copy(update={"guardrail": guardrails.guarded(old, new, rail=rail, setting=setting)})


def _of_pair(
    pair: tuple[str, str, str], new: ArmValues, *, comparison: Comparison | None, definition: MetricDefinition
) -> GateCheck:
    cell, arm, metric = pair
    status: Status = "skipped"
    worse: float | None = None
    if comparison is None:
        status = "skipped" if len(new.values) else "failed"
        message = f"{'the baseline' if len(new.values) else 'the run'} has no value"
    elif comparison.verdict == "none":
        status, message = "undecided", UNMET
    elif not comparison.claimable:
        message = f"too few trials for a verdict ({comparison.n})"
    else:
        size = size_in_words(comparison.ratio.estimate, comparison.difference.estimate or 0.0, definition.unit)
        if comparison.guardrail is None:
            status = "failed" if comparison.verdict == "slower" else "passed"
            p = 1.0 if comparison.p_adjusted is None else comparison.p_adjusted
            found = f"{comparison.verdict}, p = {p:.3g} after Holm"
        else:
            status = OF_GUARDRAIL[comparison.guardrail.outcome]
            found = tables.verdict(comparison, definition, margin=comparison.margin)
        message = f"{size}{interval_in_words(comparison.ratio)}: {found}"
        worse = worse_by(comparison.ratio, definition.better)
    return GateCheck(series=named(cell, arm), metric=metric, status=status, message=message, worse_by=worse)


def named(cell: str, arm: str) -> str:
    """A series of one arm in one cell."""
    return arm if cell == "all" else f"{cell} · {arm}"
