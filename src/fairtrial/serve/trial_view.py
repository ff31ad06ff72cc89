"""What the page says of one trial, from its record or, while it runs or waits, from the plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairtrial.live.followed import FollowedRun
from fairtrial.live.outline import MARKS
from fairtrial.live.slots import Slot
from fairtrial.record.models import EffectiveSetting, TrialRecord
from fairtrial.report import numbers
from fairtrial.serve.tails import tails
from fairtrial.words import counted

ROLES: Final = ("primary", "secondary", "guardrails")


@dataclass(frozen=True)
class TrialView:
    """One trial.

    Attributes:
        series: address of its numbers over time, of one that measured.
        before, after: numbers of its neighbours in the order of the plan.
        metrics: label, value and unit; those that the study names first.
    """

    number: int
    label: str
    fate: str
    mark: str
    reason: str
    series: str
    has_series: bool
    before: int | None
    after: int | None
    began: str = ""
    ended: str = ""
    metrics: tuple[tuple[str, str, str], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    system: tuple[tuple[str, str], ...] = ()
    phases: tuple[tuple[str, str], ...] = ()
    checks: tuple[tuple[str, str], ...] = ()
    logs: tuple[tuple[str, str], ...] = ()


def view(run: FollowedRun, number: int) -> TrialView | None:
    """Of a trial by its number; None if there is none."""
    slots = run.fates
    if not 0 <= number < len(slots):
        return None
    slot = slots[number]
    record = run.trials.get(slot.trial.id)
    after = number + 1 if number + 1 < len(slots) else None
    whose = "" if record is None else f"/runs/{run.directory.name}/trials/{number}/series"
    plain = TrialView(
        number=number,
        label=_label(slot),
        fate=slot.fate,
        mark=MARKS[slot.fate],
        reason=slot.reason,
        series=whose,
        has_series=record is not None and record.window is not None,
        before=number - 1 if number else None,
        after=after,
    )
    return plain if record is None else _finished(plain, run, record)


def _label(slot: Slot) -> str:
    trial = slot.trial
    return f"{trial.cell} · {trial.arm}, {'with probes, ' if trial.diagnostic else ''}block {trial.block}"


def _finished(plain: TrialView, run: FollowedRun, record: TrialRecord) -> TrialView:
    names = [name for role in ROLES for name in getattr(run.plan.metrics, role)]
    return TrialView(
        **{
            **plain.__dict__,
            "began": record.started,
            "ended": record.finished,
            "metrics": tuple(_metric(run, record, name) for name in names),
            "settings": tuple((each.name, _effect(each)) for each in record.effective),
            "options": tuple(sorted(record.options.items())),
            "system": (*record.system_facts.items(), *record.subject.items()),
            "phases": tuple((name, f"{seconds:.3f}") for name, seconds in record.phases_s.items()),
            "checks": tuple(
                (each.name, f"{each.statement}: {counted(each.violations, 'violation')}") for each in record.checks
            ),
            "logs": tuple(tails(run.directory / "trials" / record.trial.id / "log")),
        }
    )


def _metric(run: FollowedRun, record: TrialRecord, name: str) -> tuple[str, str, str]:
    definition = run.plan.metrics.definitions[name]
    value = record.scalars.get(name)
    scale = numbers.scale(definition.unit, [value])
    return definition.label, scale.value(value), scale.unit


def _effect(setting: EffectiveSetting) -> str:
    before = "" if setting.before is None else f", before {setting.before}"
    return f"{setting.read_back} (asked {setting.asked}{before})"


def directory(run: FollowedRun, number: int) -> tuple[Path, TrialRecord] | None:
    """Of a committed trial by its number, with its record."""
    planned = list(run.slots.planned)
    record = run.trials.get(planned[number]) if 0 <= number < len(planned) else None
    return None if record is None else (run.directory / "trials" / record.trial.id, record)
