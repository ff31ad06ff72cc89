"""May this run pass? One check for each series of a history, or for each comparison of two runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from fairtrial.analyse.inference import comparing, judging
from fairtrial.analyse.measured import Measured, measured
from fairtrial.analyse.models import Comparison
from fairtrial.analyse.result import Result
from fairtrial.history.examining import FEWEST_TO_ALARM
from fairtrial.history.models import Alarm, Change, Examined, History
from fairtrial.history.segments import SHORTEST
from fairtrial.metrics.frames import used_trials
from fairtrial.record import Record
from fairtrial.record.models import TrialRecord
from fairtrial.report import numbers
from fairtrial.study.catalogue import MetricDefinition

Status = Literal["passed", "failed", "skipped"]
DIGITS: Final = ".10g"  # of a constant: what differs beyond them is rounding
BETWEEN_RUNS: Final = (
    "two runs are compared by their trials, so noise from run to run counts as a difference; "
    "a history accounts for that noise"
)


class Check(Result):
    """One thing that must hold.

    Attributes:
        series, metric: what was looked at.
        message: what was found.
    """

    series: str
    metric: str
    status: Status
    message: str


class Gate(Result):
    """Every check, and what holds for all of them."""

    against: str
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no check failed. Skipped ones do not hold it shut, but a gate of nothing else is no gate."""
        return all(check.status != "failed" for check in self.checks) and any(
            check.status == "passed" for check in self.checks
        )


def by_history(history: History) -> Gate:
    """Fails where the newest point alarms, or where the level that holds now is worse than the one before it.

    Only what is larger than the margin, not for the better and not acknowledged. Where nobody said which direction is
    better, every direction fails. Changes get the part of alpha that alarms leave, half of it at least, so that both
    together fail a gate for nothing in a share of alpha.
    """
    level = max(history.alpha - history.alarm_alpha, history.alpha / 2)
    return Gate(
        against="history",
        checks=tuple(_of_series(each, level) for each in history.series),
        notes=tuple(f"left out: {run}: {reason}" for run, reason in history.left_out.items()),
    )


def _of_series(of: Examined, level: float) -> Check:
    if of.newest and of.newest != of.runs[-1]:
        return _check(
            of, "failed", f"the newest run, {of.newest}, has no value; the last run with a value is {of.runs[-1]}"
        )
    if of.alarm is None:
        return _of_constants(of)
    if (constant := _left_its_constant(of)) is not None:
        return constant
    last = of.changes[-1] if of.changes else None
    if last is not None and of.p_adjusted is not None and of.p_adjusted <= level and _matters(last):
        return _check(of, "failed", f"level changed at {last.run}: {_size(of, last)}; {last.direction}")
    if of.alarm.raised and _matters(of.alarm):
        return _check(
            of, "failed", f"newest run against the previous level: {_size(of, of.alarm)}; {of.alarm.direction}"
        )
    known = [each.known.because for each in (last, of.alarm) if each is not None and each.known is not None]
    note = f" (known: {known[0]})" if known else ""
    return _check(of, "passed", f"newest run against the previous level: {_size(of, of.alarm)}{note}")


def _of_constants(of: Examined) -> Check:
    """A series without noise: one that is too short, or a deterministic count that never changed."""
    words = constant_in_words(of)
    return _check(of, "passed" if words else "skipped", words or f"too few runs ({len(of.values)})")


def constant_in_words(of: Examined) -> str:
    """`all 30 runs have 100`; empty if they differ by more than rounding, or are too few to say so."""
    if not FEWEST_TO_ALARM <= len(of.values) == of.alike:
        return ""
    return f"all {of.alike} runs have {of.values[0]:{DIGITS}}"


def _left_its_constant(of: Examined) -> Check | None:
    """A count that was the same in every run has no noise that could excuse the newest: None if it was not.

    It stays so until the runs that differ are enough for a level of their own, which is a change.
    """
    runs = len(of.values)
    is_constant = of.alike >= FEWEST_TO_ALARM - 1 and runs - of.alike < SHORTEST
    if not is_constant or of.alarm is None or not _matters(of.alarm):
        return None
    constant, newest = (f"{value:{DIGITS}}" for value in (of.values[0], of.values[-1]))
    return _check(of, "failed", f"the first {of.alike} of {runs} runs have {constant}, the newest has {newest}")


def _matters(found: Change | Alarm) -> bool:
    return found.relevant and found.direction != "better" and found.known is None


def _size(of: Examined, found: Change | Alarm) -> str:
    if found.ratio.estimate is not None:
        return numbers.change(found.ratio.estimate)
    moved = found.difference if isinstance(found, Change) else found.value - found.expected
    return f"{moved:+.4g} {of.unit}".strip()


def _check(of: Examined, status: Status, message: str) -> Check:
    return Check(series=of.series, metric=of.metric, status=status, message=message)


def by_baseline(
    run: Record, baseline: Record, *, metrics: Sequence[str], alpha: float, margin: float | None = None
) -> Gate:
    """Fails where a cell's arm is slower than the same cell's arm of the baseline run: Welch on logs, Holm over all.

    It fails as well where the run has no value, for its plan asks for one.
    """
    used = (used_trials(run), used_trials(baseline))
    definitions = run.plan.metrics.definitions
    pairs = [
        (cell.name, arm, metric)
        for metric in metrics
        for cell in run.plan.cells
        for arm in run.plan.factors[run.plan.arm]
    ]
    setting = comparing.Setting(
        paired=False,
        confidence=1 - alpha,
        margin=run.plan.design.margin if margin is None else margin,
        family_size=len(pairs),
    )
    both = {pair: _measured(used, pair) for pair in pairs}
    made = {
        pair: _compared(pair, (new, old), setting=setting)
        for pair, (new, old) in both.items()
        if comparing.comparable(old, new, paired=False)
    }
    judged = judging.judge(
        list(made.values()),
        metrics=definitions,
        setting=setting,
        without_verdict=lambda _: False,
        missing={"primary": len(pairs) - len(made)},
    )
    verdicts = dict(zip(made, judged, strict=True))
    checks = tuple(
        _of_pair(pair, verdicts[pair], definitions[pair[2]])
        if pair in verdicts
        else _without_value(pair, both[pair][0])
        for pair in pairs
    )
    return Gate(against=baseline.directory.name, checks=checks, notes=(BETWEEN_RUNS,))


def _measured(
    used: tuple[Sequence[TrialRecord], Sequence[TrialRecord]], pair: tuple[str, str, str]
) -> tuple[Measured, Measured]:
    cell, arm, metric = pair
    new, old = (
        measured(
            [trial for trial in trials if (trial.trial.cell, trial.trial.arm) == (cell, arm)], metric=metric, arm=arm
        )
        for trials in used
    )
    return new, old


def _compared(pair: tuple[str, str, str], both: tuple[Measured, Measured], *, setting: comparing.Setting) -> Comparison:
    cell, arm, metric = pair
    new, old = both
    # Every arm is held against its own past, so arms share no baseline: each is a place of its own in the family.
    named = comparing.Named(metric=metric, role="primary", cell=" · ".join(_named(cell, arm)))
    return comparing.compare(old, new, named=named, setting=setting)


def _without_value(pair: tuple[str, str, str], new: Measured) -> Check:
    cell, arm, metric = pair
    status: Status = "skipped" if len(new.values) else "failed"
    lacking = "the baseline" if status == "skipped" else "the run"
    return Check(series=" · ".join(_named(cell, arm)), metric=metric, status=status, message=f"{lacking} has no value")


def _of_pair(pair: tuple[str, str, str], found: Comparison, definition: MetricDefinition) -> Check:
    cell, arm, metric = pair
    series = " · ".join(_named(cell, arm))
    if not found.claimable:
        return Check(
            series=series, metric=metric, status="skipped", message=f"too few trials for a verdict ({found.n})"
        )
    size = found.ratio.estimate
    moved = f"{found.difference.estimate:+.4g} {definition.unit}" if size is None else numbers.change(size)
    interval = (
        ""
        if size is None or found.ratio.low is None or found.ratio.high is None
        else f" [{numbers.change(found.ratio.low)}, {numbers.change(found.ratio.high)}]"
    )
    p = 1.0 if found.p_adjusted is None else found.p_adjusted
    return Check(
        series=series,
        metric=metric,
        status="failed" if found.verdict == "slower" else "passed",
        message=f"{moved}{interval}: {found.verdict}, p = {p:.3g} after Holm",
    )


def _named(cell: str, arm: str) -> Iterator[str]:
    if cell != "all":
        yield cell
    yield arm
