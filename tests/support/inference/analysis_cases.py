"""Plans and trials with values given, for the analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from fairtrial.metrics.latency import definitions as percentiles
from fairtrial.record.models import (
    Cell,
    Clock,
    Design,
    Plan,
    PlannedMetrics,
    PlannedTrial,
    RangeExpectation,
    TrialRecord,
    Window,
)
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.resolved import ResolvedTrial

RESOLVED = ResolvedTrial(place={"local": {}}, system={"command": {"run": None}}, workload={"command": {"run": "true"}})
THROUGHPUT = MetricDefinition(name="tpm", label="throughput", unit="transactions/min", better="higher", kind="count")
LATENCY = MetricDefinition(name="p99", label="latency", unit="ns", better="lower", kind="wall_clock")

Value = Callable[[Mapping[str, str], int], float]  # levels of all factors, block → value


@dataclass(frozen=True)
class Case:
    """One study: factors with levels, the arm first, and what was measured."""

    factors: Mapping[str, Sequence[str]]
    blocks: int
    arm: str = "kernel"
    order: str = "randomised_blocks"
    margin: float = 0.02
    roles: Mapping[str, Sequence[str]] = field(default_factory=lambda: {"primary": ["tpm"]})
    expectations: Sequence[RangeExpectation] = ()

    def plan(self) -> Plan:
        conditions = [name for name in self.factors if name != self.arm]
        combinations = list(product(*(self.factors[name] for name in conditions)))
        cells = [
            Cell(name="+".join(levels) or "all", levels=dict(zip(conditions, levels, strict=True)))
            for levels in combinations
        ]
        return Plan(
            fairtrial_version="0",
            study="case",
            question="",
            size=None,
            factors={name: list(levels) for name, levels in self.factors.items()},
            arm=self.arm,
            also_compare=[],
            cells=cells,
            resolved={cell.name: dict.fromkeys(self.factors[self.arm], RESOLVED) for cell in cells},
            differences=[],
            expectations=list(self.expectations),
            metrics=PlannedMetrics(
                primary=list(self.roles.get("primary", [])),
                secondary=list(self.roles.get("secondary", [])),
                guardrails=list(self.roles.get("guardrails", [])),
                definitions={"tpm": THROUGHPUT, "p99": LATENCY, **percentiles()},
            ),
            design=Design.model_validate(
                {
                    "blocks": self.blocks,
                    "order": self.order,
                    "seed": 1,
                    "stop": "fixed",
                    "margin": self.margin,
                    "voided_limit": self.blocks,
                }
            ),
            telemetry_interval_ms=1000,
            trials=list(self.planned(cells)),
            duration_s=1.0,
            disk_bytes=0,
        )

    def planned(self, cells: Sequence[Cell]) -> list[PlannedTrial]:
        found: list[PlannedTrial] = []
        arms = self.factors[self.arm]
        for block in range(1, self.blocks + 1):
            for cell in cells:
                turned = arms if block % 2 else list(reversed(arms))
                for arm in turned:
                    found.append(planned(cell.name, arm, block, position=len(found)))
        return found

    def trials(self, **metrics: Value) -> list[TrialRecord]:
        """Every planned trial, measured; keyword: metric → value from levels and block."""
        plan = self.plan()
        cells = {cell.name: cell.levels for cell in plan.cells}
        found = []
        for each in plan.trials:
            levels = {**cells[each.cell], self.arm: each.arm}
            ordered = {name: levels[name] for name in self.factors}
            scalars = {name: value(ordered, each.block) for name, value in metrics.items()}
            found.append(trial(each, levels=ordered, scalars=scalars))
        return found


def planned(cell: str, arm: str, block: int, *, position: int) -> PlannedTrial:
    return PlannedTrial(
        id=f"{cell}.b{block:02d}.{arm}", cell=cell, arm=arm, block=block, round=block, position=position, seed=block
    )


def trial(of: PlannedTrial, *, levels: Mapping[str, str], scalars: Mapping[str, float]) -> TrialRecord:
    return TrialRecord(
        trial=of,
        levels=dict(levels),
        resolved=RESOLVED,
        valid=True,
        started="2026-01-01T00:00:00.000Z",
        finished="2026-01-01T00:00:01.000Z",
        clock=Clock(monotonic_ns=1, realtime_ns=2),
        window=Window(start_ns=1, end_ns=2),
        scalars=dict(scalars),
    )


def invalid(of: TrialRecord) -> TrialRecord:
    return of.model_copy(update={"valid": False, "invalid_reason": "broken on purpose"})
