"""What a run shows of itself in a few words, the same on a terminal and on a page."""

from __future__ import annotations

from typing import Final

from fairtrial.protocol.generated import LoadingProgress, ProbedProgress, ProbingProgress
from fairtrial.record.events import HostLeft, JournalLine, RunInterrupted, Steered
from fairtrial.record.models import (
    BlockAdded,
    BlockVoided,
    Extended,
    LookTaken,
    PlannedTrial,
    TrialFinished,
    TrialRecord,
)
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.words import STOP_REASONS, counted, duration
from fairtrial.workloads import throughput_of

UNSAID: Final = ("trial_", "place_", "page_", "farm_", "block_leased")  # how such events begin
MINUTE_S = 60
MILLISECOND_NS = 1e6


def rate(per_s: float, throughput: MetricDefinition | None) -> str:
    """How much a workload does now, in the unit of its throughput."""
    if throughput is None:
        return f"{per_s:,.0f}/s"
    return f"{per_s * unit_s(throughput):,.0f} {throughput.unit}"


def unit_s(throughput: MetricDefinition | None) -> int:
    """Seconds of the time that a throughput is counted per."""
    return MINUTE_S if throughput is not None and throughput.unit.endswith("/min") else 1


def outcome(trial: TrialRecord) -> str:
    """One trial in a few words: its throughput and errors, or the time it took, or why it is invalid."""
    if not trial.valid:
        return f"invalid: {trial.invalid_reason}"
    if "highest_rate_per_s" in trial.scalars:
        return f"highest rate {trial.scalars['highest_rate_per_s']:,.0f}/s"
    throughput = throughput_of(trial.resolved)
    if throughput is not None and throughput.name in trial.scalars:
        errors = trial.scalars.get("errors")
        failed = f", {errors:,.0f} error{'' if errors == 1 else 's'}" if errors else ""
        return f"{trial.scalars[throughput.name]:,.0f} {throughput.unit}{failed}"
    if "elapsed_s" in trial.scalars:
        return f"{trial.scalars['elapsed_s']:.3g} s"
    return "done"


def journalled(line: JournalLine) -> str:
    """One journal line in words; empty for what the plan shows as well."""
    match line.entry:
        case TrialFinished(valid=False):
            return f"{line.entry.trial} is invalid: {line.entry.invalid_reason}"
        case RunInterrupted():
            return f"run interrupted: {line.entry.reason}"
        case BlockVoided():
            return f"block {line.entry.block} of {line.entry.cell} is void: {line.entry.reason}"
        case BlockAdded() | Extended() | Steered() | HostLeft():
            return _changed(line.entry)
        case LookTaken():
            return "; ".join([f"look after round {line.entry.round}: {line.entry.decision}", *_stops(line.entry)])
        case _:
            name = line.entry.event
            return "" if name.startswith(UNSAID) else name.replace("_", " ")


def _changed(event: BlockAdded | Extended | Steered | HostLeft) -> str:
    if isinstance(event, HostLeft):
        return f"{event.host} gets no more blocks: {event.reason}"
    if isinstance(event, BlockAdded):
        return f"block {event.block} of {event.cell} replaces block {event.replaces}"
    if isinstance(event, Extended):
        return f"up to {counted(event.blocks, 'block')} more in every open cell"
    by = f" by {counted(event.blocks, 'block')}" if event.act == "extend" else ""
    return f"asked to {event.act.replace('_', ' ')}{by}" + ("" if event.obeyed else f", refused: {event.reason}")


def _stops(look: LookTaken) -> list[str]:
    return [
        f"{each.cell} stops after {counted(each.blocks, 'block')}: {STOP_REASONS[each.reason]}"
        for each in look.cells
        if each.decision == "stop"
    ]


def stage(trial: PlannedTrial) -> str:
    """Where in the run a trial stands: its round, or that it is one with probes."""
    return "diagnostic" if trial.diagnostic else f"round {trial.round}"


def loading(line: LoadingProgress) -> str:
    """How far a load is: units, rows, rows per second, time left."""
    text = f"loading {line.done:.0f}/{line.total:.0f}  {line.rows:,} rows  {line.rows_per_s:,.0f}/s"
    return text if line.left_s is None else f"{text}  {duration(line.left_s)} left"


def probing(line: ProbingProgress | ProbedProgress) -> str:
    """The probe that a search has begun, and the rate that it offers."""
    return f"probe {line.probe} at {line.rate_per_s:,.0f}/s"


def probed(line: ProbedProgress) -> str:
    """What came out of a probe, and the bounds that are believed now."""
    measured = "no request completed"
    if line.latency_ns is not None:
        measured = f"{line.percentile} {line.latency_ns / MILLISECOND_NS:.3g} ms"
    text = f"{probing(line)} {'met' if line.met else 'missed'} ({measured})"
    if line.met_per_s is not None or line.missed_per_s is not None:
        text += f", between {_bound(line.met_per_s)} and {_bound(line.missed_per_s)}"
    return text


def _bound(rate_per_s: float | None) -> str:
    return "?" if rate_per_s is None else f"{rate_per_s:,.0f}/s"
