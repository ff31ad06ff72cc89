"""A history in text: one table of series, then what happened in each that changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.history import Alarm, History, LevelChange, SeriesResult
from fairtrial.history.gating import constant_in_words, departure_in_words, interval_in_words, size_in_words
from fairtrial.report import numbers
from fairtrial.report.text import columns
from fairtrial.words import counted

FACTS_SHOWN = 6  # of what else differs at a change; a new place differs in everything


def text(history: History) -> Iterator[str]:
    """Line by line, without a trailing blank."""
    yield from _overview(history.series)
    for each in history.series:
        if each.changes or each.spikes or (each.alarm is not None and each.alarm.raised) or each.doubts:
            yield from _series(each)
    yield ""
    yield (
        f"{len(history.series)} series; probability of a change in a series without one: "
        f"{numbers.percent(history.alpha)}; of any false alarm on newest points: {numbers.percent(history.alarm_alpha)}"
    )
    for run, reason in history.left_out.items():
        yield f"left out: {run}: {reason}"


def shown(of: SeriesResult, value: float | None) -> str:
    """A value of a series in the scale of the whole series, with its unit."""
    scale = numbers.scale(of.unit, of.values)
    return f"{scale.value(value)} {scale.unit}".strip()


def change_in_words(of: SeriesResult, change: LevelChange) -> str:
    """`+12.3 % [+10.1 %, +14.5 %], better`."""
    size = size_in_words(change.ratio.estimate, change.difference, of.unit)
    return f"{size}{interval_in_words(change.ratio)}, {change.direction}"


def levels_in_words(of: SeriesResult, change: LevelChange) -> str:
    """`1000 tpm → 900 tpm; 9.8 standard deviations of a point; beyond the margin of 2 %`."""
    sds = "no noise" if change.noise_sds is None else f"{change.noise_sds:.1f} standard deviations of a point"
    size = "beyond" if change.relevant else "within"
    reverted = "; later reverted" if change.went_away else ""
    return (
        f"{shown(of, change.before)} → {shown(of, change.after)}; {sds}; {size} the margin of "
        f"{numbers.percent(of.margin)}{reverted}"
    )


def alarm_in_words(of: SeriesResult, alarm: Alarm) -> str:
    """The newest point beside what was expected."""
    size = size_in_words(alarm.ratio.estimate, alarm.value - alarm.expected, of.unit)
    return (
        f"{shown(of, alarm.value)}, expected {shown(of, alarm.expected)}: {size}, {alarm.direction}, "
        f"{numbers.p_in_words(alarm.p_adjusted)} after Holm"
    )


def _overview(series: Sequence[SeriesResult]) -> Iterator[str]:
    rows = [
        [
            each.series,
            each.metric,
            str(len(each.values)),
            shown(each, each.values[-1]),
            numbers.percent(float(f"{each.noise:.2g}")) if each.noise is not None and each.relative else numbers.ABSENT,
            numbers.p_value(each.p),
            numbers.p_value(each.p_adjusted),
            state(each),
        ]
        for each in series
    ]
    yield from columns.table(["series", "metric", "runs", "newest", "noise", "p", "BH p", "state"], rows, left=2)


def state(of: SeriesResult) -> str:
    """What happened, in a few words: `2 changes, alarm`, `steady`."""
    standing = [each for each in of.changes if not each.went_away]
    parts = [counted(len(of.changes), "change")] if of.changes else []
    if standing and all(each.known for each in standing):
        parts.append("known")
    if of.alarm is not None and of.alarm.raised:
        parts.append("alarm (known)" if of.alarm.known else "alarm")
    if of.spikes:
        parts.append(counted(len(of.spikes), "spike"))
    return ", ".join(parts) or constant_in_words(of) or ("too few" if of.p is None else "steady")


def _series(of: SeriesResult) -> Iterator[str]:
    yield from columns.heading(f"{of.series}: {of.metric}")
    for change in of.changes:
        yield ""
        yield f"change at {change.run}: {change_in_words(of, change)}"
        yield f"  {levels_in_words(of, change)}"
        if change.known:
            yield f"  known: {change.known.because}"
        for name, (before, after) in list(change.differing.items())[:FACTS_SHOWN]:
            yield f"  differs: {name}: {before or 'nothing'} → {after or 'nothing'}"
        if len(change.differing) > FACTS_SHOWN:
            yield f"  and {len(change.differing) - FACTS_SHOWN} more facts differ"
    for spike in of.spikes:
        yield f"spike at {spike.run}: {shown(of, spike.value)}, {spike.noise_sds:.1f} standard deviations; not a change"
    if of.alarm is not None and of.alarm.raised:
        departure = departure_in_words(of)
        said = f"left its constant: {departure}" if departure else alarm_in_words(of, of.alarm)
        known = f"; known: {of.alarm.known.because}" if of.alarm.known else ""
        yield f"alarm at {of.alarm.run}: {said}"
        yield f"  one point may be a change or a spike: run again{known}"
    for doubt in of.doubts:
        yield from columns.prose(f"doubt: {doubt}", indent="  ")
