"""Doubts about counters: readings that took long, and readings of endpoints and commands that are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from fairtrial.analyse.models import Doubt
from fairtrial.record.models import Plan, TrialRecord
from fairtrial.study.service_counters import ERROR_SUFFIX

MISSED: Final = "series_samples_missed"


def about(plan: Plan, used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """Every such doubt of a run. None can be a false alarm: an error bar is a bound, and the other counts."""
    for metric in plan.metrics.definitions:
        yield from _slow(metric, used, margin=plan.design.margin)
    yield from _missed(used)


def _slow(metric: str, used: Sequence[TrialRecord], *, margin: float) -> Iterator[Doubt]:
    """Asks whether the time that readings took and lay apart leaves a growth less certain than the study's margin."""
    shares = {
        trial.trial.id: error / abs(value)
        for trial in used
        if (error := trial.scalars.get(f"{metric}{ERROR_SUFFIX}")) and (value := trial.scalars.get(metric))
    }
    wide = {name: share for name, share in shares.items() if share > margin}
    if wide:
        worst = max(wide, key=lambda name: wide[name])
        yield Doubt(
            code="slow_readings",
            message=f"in {len(wide)} of {len(used)} used trials readings took so long or lay so far apart that the "
            f"value may be off by more than the margin of {100 * margin:g} %, in {worst} by up to "
            f"{100 * wide[worst]:.2g} %",
            advice="measure longer, or read endpoints and commands more often (`interval`); of an endpoint `match` "
            "only the metrics that are needed, and see what holds its answer up",
            metric=metric,
        )


def _missed(used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    missed = {trial.trial.id: count for trial in used if (count := trial.scalars.get(MISSED, 0.0))}
    if missed:
        worst = max(missed, key=lambda name: missed[name])
        yield Doubt(
            code="missed_readings",
            message=f"in {len(missed)} of {len(used)} used trials endpoints or commands gave nothing at some readings, "
            f"in {worst} at {missed[worst]:.0f}",
            advice="log/sampler.log of these trials says which and why; between the readings beside a hole counters "
            "are taken to grow evenly",
        )
