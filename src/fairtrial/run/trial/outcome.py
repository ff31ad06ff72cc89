"""What a trial gathers on its way; becomes its trial.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fairtrial.record.journal import utc_now
from fairtrial.record.models import (
    Check,
    ClientRecord,
    Clock,
    ClockShift,
    EffectiveSetting,
    Plan,
    PlannedTrial,
    TrialData,
    TrialRecord,
    Window,
)
from fairtrial.study.resolved import ResolvedTrial

STREAM_LOST: Final = "the stream to the place was lost"


@dataclass
class TrialOutcome:
    """A trial so far. Fields as in `TrialRecord`."""

    started: str = field(default_factory=utc_now)
    invalid_reason: str = ""
    window: Window | None = None
    scalars: dict[str, float] = field(default_factory=dict)
    effective: list[EffectiveSetting] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)
    system_facts: dict[str, str] = field(default_factory=dict)
    data: TrialData = field(default_factory=TrialData)
    checks: list[Check] = field(default_factory=list)
    phases_s: dict[str, float] = field(default_factory=dict)
    telemetry: list[str] = field(default_factory=list)
    clock_shift: ClockShift | None = None
    clients: list[ClientRecord] = field(default_factory=list)
    layout: str = ""
    left_running: list[str] = field(default_factory=list)

    @property
    def shift_ns(self) -> int:
        """How far the clock of the workload's place, or of its first client, is ahead of the system's place's."""
        return self.clock_shift.shift_ns if self.clock_shift else 0

    @property
    def load_ended_ns(self) -> int | None:
        """The measured window's end on the monotonic clock of the system's place; None without a window."""
        if self.window is None:
            return None
        return self.window.end_ns - self.shift_ns

    def invalidate(self, reason: str) -> None:
        """Marks the trial invalid if there is a reason; the first one stays, it is the cause of the later ones."""
        self.invalid_reason = self.invalid_reason or reason

    def explain(self, cause: str) -> None:
        """Adds what is behind the reason, if there is one."""
        if self.invalid_reason and cause:
            self.invalid_reason = f"{self.invalid_reason}; {cause}"

    def contradict(self, sentences: Sequence[str]) -> None:
        """Marks the trial invalid if its files disagree; told beside another reason, too: `verify` asks again."""
        if sentences:
            text = "its files disagree: " + "; ".join(sentences)
            self.invalid_reason = f"{self.invalid_reason}; {text}" if self.invalid_reason else text

    def lose(self, reason: str) -> None:
        """Marks the trial invalid and takes its window away: some of its raw files may have stayed at the place.

        The reason goes before all others: whoever runs trials must know that the place is gone.
        """
        self.invalid_reason = reason if not self.invalid_reason else f"{reason}; before that: {self.invalid_reason}"
        self.window = None

    def record(
        self, planned: PlannedTrial, *, plan: Plan, resolved: ResolvedTrial, clock: Clock, subject: dict[str, str]
    ) -> TrialRecord:
        """The finished trial."""
        cell = next(cell for cell in plan.cells if cell.name == planned.cell)
        return TrialRecord(
            trial=planned,
            levels=levels_of(cell.levels, arm=(plan.arm, planned.arm)),
            resolved=resolved,
            valid=not self.invalid_reason,
            invalid_reason=self.invalid_reason,
            started=self.started,
            finished=utc_now(),
            clock=clock,
            window=self.window,
            scalars=self.scalars,
            effective=self.effective,
            options=self.options,
            system_facts=self.system_facts,
            subject=subject,
            data=self.data,
            checks=self.checks,
            phases_s={name: round(seconds, 3) for name, seconds in self.phases_s.items()},
            telemetry=self.telemetry,
            clock_shift=self.clock_shift,
            clients=self.clients,
            layout=self.layout,
            left_running=self.left_running,
        )


def levels_of(conditions: Mapping[str, str], *, arm: tuple[str, str]) -> dict[str, str]:
    """The level of every factor: the cell's conditions and the arm."""
    return {**conditions, arm[0]: arm[1]}
