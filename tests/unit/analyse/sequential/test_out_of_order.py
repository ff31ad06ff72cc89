"""Blocks of a farm come back in any order: looks are at complete rounds, and say what they say of one host."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from support.inference.analysis_cases import Case, invalid, trial

from fairtrial.analyse import analyse
from fairtrial.analyse.models import Comparison
from fairtrial.analyse.sequential import Following, follow
from fairtrial.plan import replacement
from fairtrial.record.models import CellLook, LookTaken, Plan, PlannedTrial, TrialFinished, TrialRecord
from fairtrial.run.schedule import Schedule

CASE = Case({"kernel": ("a", "b"), "load": ("low", "middle", "high")}, blocks=12)
EFFECTS = {"low": 0.05, "middle": 0.0, "high": 0.012}
BROKEN = ("middle", 3)  # a trial of this block is invalid, so another joins the next round


def plan_of(**design: Any) -> Plan:
    rule = {"stop": "sequential", "min_blocks": 3, "spending": "pocock", "futility": True, "equivalence": True}
    plan = CASE.plan()
    return plan.model_copy(update={"design": plan.design.model_copy(update={**rule, **design})})


def measured(of: PlannedTrial, *, host: str, minute: int) -> TrialRecord:
    """What a trial gives depends on the trial alone, whenever and wherever it ran."""
    random = np.random.default_rng([of.block, *map(ord, of.cell + of.arm)])
    value = 1000 * math.exp(random.normal(0, 0.012) + (EFFECTS[of.cell] if of.arm == "b" else 0.0))
    made = trial(of, levels={"kernel": of.arm, "load": of.cell}, scalars={"tpm": value})
    when = f"2026-01-01T{minute // 60:02d}:{minute % 60:02d}:00.000Z"
    made = made.model_copy(update={"host": host, "started": when, "finished": when})
    return invalid(made) if (of.cell, of.block, of.arm) == (*BROKEN, "b") else made


@dataclass
class Farm:
    """A controller with so many hosts: the order in which they bring their blocks back is chance.

    Attributes:
        looks: what the journal would hold, by round.
        late: trials that came back after their cell had stopped.
    """

    plan: Plan
    hosts: int
    random: np.random.Generator
    trials: list[TrialRecord] = field(default_factory=list)
    looks: dict[int, tuple[CellLook, ...]] = field(default_factory=dict)
    late: int = 0
    told: int = 0

    def __post_init__(self) -> None:
        self.followed = Following(self.plan)
        self.schedule = Schedule(plan=self.plan, replacement=partial(replacement, self.plan))

    def run(self) -> Farm:
        under_way: dict[tuple[str, int], list[PlannedTrial]] = {}
        while True:
            for key, block in self._owed():
                if len(under_way) < self.hosts:
                    under_way.setdefault(key, block)
            if not under_way:
                return self
            key = list(under_way)[int(self.random.integers(len(under_way)))]
            self.late += 2 * (key[0] in self.schedule.decided)
            self._commit(under_way.pop(key))
            self._look()

    def _owed(self) -> Iterator[tuple[tuple[str, int], list[PlannedTrial]]]:
        blocks: dict[tuple[str, int], list[PlannedTrial]] = {}
        for each in self.schedule.owed():
            blocks.setdefault((each.cell, each.block), []).append(each)
        yield from blocks.items()

    def _commit(self, block: Iterable[PlannedTrial]) -> None:
        host = f"node-{self.random.integers(self.hosts)}" if self.hosts > 1 else ""
        for each in block:
            made = measured(each, host=host, minute=len(self.trials))
            self.trials.append(made)
            self.schedule.apply(TrialFinished(trial=each.id, valid=made.valid, files={}))
        while owed := self.schedule.repairs():
            for event in owed:
                self.schedule.apply(event)

    def _look(self) -> None:
        for round_ in range(self.schedule.looked_at + 1, self.schedule.complete_rounds() + 1):
            if not self.schedule.stopped:
                run = follow(self.plan, self.trials, through=round_)
                assert run is not None
                self.followed.take(self.plan, self.trials[self.told :])
                self.told = len(self.trials)
                assert self.followed.look(round_) == run.looks[-1], "told once or again"
                assert self.followed.stops == run.stops
                self.looks[round_] = run.looks[-1]
                decided = len(run.stops) == len(self.plan.cells)
                look = LookTaken(round=round_, decision="stop" if decided else "continue", cells=list(run.looks[-1]))
                self.schedule.apply(look)


def compared(plan: Plan, trials: list[TrialRecord], *, contrast: str | None = None) -> Mapping[str, Comparison]:
    return {cell.cell: cell.comparisons["tpm"][0] for cell in analyse(plan, trials, contrast=contrast).cells}


@pytest.mark.parametrize(
    ("design", "seed"), [({}, 0), ({}, 1), ({"stop": "anytime"}, 2), ({"stop": "precision", "precision": 0.012}, 3)]
)
def test_looks_decisions_and_analysis_do_not_depend_on_the_order_of_commits(design: dict[str, Any], seed: int) -> None:
    plan = plan_of(**design)
    one = Farm(plan, hosts=1, random=np.random.default_rng(0)).run()
    farm = Farm(plan, hosts=7, random=np.random.default_rng(seed)).run()
    assert [each.trial.id for each in farm.trials[: len(one.trials)]] != [each.trial.id for each in one.trials]
    assert farm.looks.keys() == one.looks.keys()
    for round_, looks in one.looks.items():
        for mine, other in zip(looks, farm.looks[round_], strict=True):
            assert (mine.cell, mine.blocks, mine.decision, mine.reason) == (
                other.cell, other.blocks, other.decision, other.reason
            )  # fmt: skip
            assert mine.comparisons[0].p_adjusted == pytest.approx(other.comparisons[0].p_adjusted, rel=1e-9)
    whole, again = follow(plan, one.trials), follow(plan, farm.trials)
    assert whole is not None
    assert again is not None
    assert whole.stops == again.stops
    for cell, mine in compared(plan, one.trials).items():
        other = compared(plan, farm.trials)[cell]
        assert (mine.verdict, mine.n) == (other.verdict, other.n)
        assert mine.p == pytest.approx(other.p, rel=1e-9)
        assert mine.ratio.low == pytest.approx(other.ratio.low, rel=1e-12)
        assert other.over_hosts is not None
    theirs = compared(plan, farm.trials, contrast="load")
    for cell, mine in compared(plan, one.trials, contrast="load").items():
        other = theirs[cell]
        assert (mine.verdict, mine.n) == (other.verdict, other.n)
        assert (mine.p, mine.ratio.low) == pytest.approx((other.p, other.ratio.low), rel=1e-9)


def test_blocks_that_came_back_after_their_cell_had_stopped_are_counted_and_change_nothing() -> None:
    plan = plan_of()
    farm = Farm(plan, hosts=7, random=np.random.default_rng(1)).run()
    assert farm.late > 0
    stops = {cell.cell: number for number, looks in farm.looks.items() for cell in looks if cell.decision == "stop"}
    beyond = [each for each in farm.trials if each.trial.round > stops[each.trial.cell]]
    assert len(beyond) >= farm.late
    counts = analyse(plan, farm.trials).counts
    assert counts.late == len(beyond)
    assert counts.finished == len(farm.trials) - len(beyond)
    assert {mine.n for mine in compared(plan, farm.trials).values()} < set(range(13))
    other = analyse(plan, farm.trials, contrast="load").counts
    assert other.late == len(beyond)


def test_a_look_at_a_round_sees_nothing_of_rounds_that_are_not_complete() -> None:
    """One block of round 2 is the last to come back; what lies beyond it is there already."""
    plan = plan_of()
    whole = [measured(each, host="x", minute=each.position) for each in plan.trials]
    missing = [each for each in whole if (each.trial.cell, each.trial.round) != ("low", 2)]
    early, looked = follow(plan, missing, through=1), follow(plan, whole, through=1)
    assert early is not None
    assert looked is not None
    assert early.looks == looked.looks
    assert len(early.looks) == 1
