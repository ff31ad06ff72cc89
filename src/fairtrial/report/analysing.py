"""The analysis of a record, with everything besides trials that it takes from the record's files."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.analyse import analyse
from fairtrial.analyse.doubts import page as page_doubts
from fairtrial.analyse.doubts import rules as rule_doubts
from fairtrial.analyse.models import Analysis
from fairtrial.analyse.sequential import in_time
from fairtrial.analyse.why.models import CellWhy
from fairtrial.analyse.why.ranking import explain
from fairtrial.metrics.telemetry import counters
from fairtrial.record import Record
from fairtrial.record.models import BlockVoided, PlaceOpened, TrialRecord
from fairtrial.report.background import contrasted


def analysed(record: Record, *, contrast: str | None = None, trials: Sequence[TrialRecord] | None = None) -> Analysis:
    """What a report of this record says.

    Args:
        record: read.
        contrast: the factor to compare; the plan's arm if None.
        trials: in place of the record's own, with scalars computed again.
    """
    used = record.trials if trials is None else tuple(trials)
    every = (*used, *record.diagnostics)
    events: tuple[PlaceOpened | BlockVoided, ...] = (*record.places, *record.voided)
    analysis = analyse(record.plan, every, contrast=contrast, finished=record.measured, events=events)
    analysis = analysis.model_copy(update={"doubts": (*analysis.doubts, *page_doubts.about(record.events))})
    if record.plan.against_itself:
        return analysis
    paths = [difference.path for difference in contrasted(record.plan, analysis.contrast)]
    kernels = {str(opened.facts.get("kernel", "")) for opened in record.places}
    doubted = rule_doubts.about(list(analysis.metrics), paths=paths, kernels=kernels)
    timely = in_time(record.plan, used, voided=record.voided_blocks)
    whole = [trial for trial in timely if (trial.trial.cell, trial.trial.block) not in record.voided_blocks]
    why = _why(record, analysis, whole, paths=paths)
    return analysis.model_copy(update={"why": why, "doubts": (*analysis.doubts, *doubted)})


def _why(
    record: Record, analysis: Analysis, trials: Sequence[TrialRecord], *, paths: Sequence[str]
) -> tuple[CellWhy, ...]:
    def read(trial: TrialRecord) -> counters.Counters | None:
        return counters.read(record.trial_directory(trial.trial.id), trial)

    return explain(analysis, record.plan, trials, read=read, paths=paths)
