"""A record's shift curves of latency, from its raw histograms; `report.json` holds them, `verify` makes them again."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

from fairtrial.analyse.boots import parts
from fairtrial.analyse.inference.shift import Resampling, ShiftCurve, curve, observed
from fairtrial.analyse.models import Analysis
from fairtrial.analyse.selection import ContrastCell, select
from fairtrial.analyse.sequential import in_time
from fairtrial.metrics.latency import Counts, Distribution, merged
from fairtrial.record import Record
from fairtrial.record.models import TrialRecord

Distributions = Mapping[str, Distribution]  # by trial, or by the first one of a boot; all transaction types together


def of_record(record: Record, analysis: Analysis, distributions: Distributions) -> tuple[ShiftCurve, ...]:
    """The curve of every arm against the baseline in every cell where both have latencies, all types together.

    `distributions` are those of single trials; latencies of all trials of a boot count as those of one.
    """
    void = record.voided_blocks
    selection = select(
        record.plan, in_time(record.plan, record.trials, voided=void), contrast=analysis.contrast, voided=void
    )
    first, *others = selection.levels
    units = {
        unit: merged(known)
        for unit, trials in parts(selection.used).items()
        if (known := [distributions[each.trial.id] for each in trials if each.trial.id in distributions])
    }
    curves = []
    for cell in selection.cells:
        for arm in others:
            seed = zlib.crc32(f"{record.plan.design.seed}/{selection.contrast}/{cell.name}/{arm}".encode())
            how = Resampling(paired=analysis.paired, confidence=analysis.confidence, seed=seed)
            one = _curve(cell, (first, arm), distributions=units, how=how)
            curves += [one] if one is not None and one.points else []
    return tuple(curves)


def _curve(
    cell: ContrastCell, arms: tuple[str, str], *, distributions: Distributions, how: Resampling
) -> ShiftCurve | None:
    trials = [[each for each in cell.groups[arm] if each.trial.id in distributions] for arm in arms]
    if how.paired:
        common = set.intersection(*({each.trial.block for each in side} for side in trials))
        trials = [
            sorted((each for each in side if each.trial.block in common), key=lambda each: each.trial.block)
            for side in trials
        ]
    if not all(trials):
        return None
    baseline, arm = (_counts(side, distributions) for side in trials)
    return curve(observed(baseline, arm), cell=cell.name, arms=arms, how=how)


def _counts(trials: Sequence[TrialRecord], distributions: Distributions) -> list[tuple[Counts, Counts]]:
    of_trials = [distributions[each.trial.id] for each in trials]
    return [(each.highest_ns, each.counts) for each in of_trials]
