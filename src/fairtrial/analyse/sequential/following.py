"""A run followed round by round: what a rule saw of its trials, what it decided, and what that leaves valid.

The same function decides while a run goes on and recomputes its decisions from the record: it reads trials and the
plan, and in which round each block ran. The journal repeats what it said.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property

import numpy as np

from fairtrial.analyse.inference import shares, t_tests
from fairtrial.analyse.inference.comparing import ArmPair, ComparisonOptions, Subject, arm_pair
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.measured import measured
from fairtrial.analyse.models import CellStop
from fairtrial.analyse.selection import ContrastCell, Selection, select
from fairtrial.analyse.sequential import agreeing
from fairtrial.analyse.sequential.rule import Estimates, Rule, estimates, reach
from fairtrial.analyse.sequential.standing import Standing
from fairtrial.record.models import CellLook, ComparisonLook, Design, Plan, StopReason, TrialRecord
from fairtrial.study.catalogue import MetricDefinition

Key = tuple[str, str, str]  # cell, metric, arm


@dataclass(frozen=True)
class Pairs:
    """One comparison's blocks, in the order of their rounds: arrays of shape (blocks,).

    Attributes:
        primary: whether it is of the family.
        rounds: the round in which each block was complete.
        baseline, arm: values, in the metric's unit.
        no_logs_from: the round of the first value that has no logarithm; infinite if there is none.
        resolution, total: of the metric's definition.
    """

    key: Key
    primary: bool
    rounds: Values
    baseline: Values
    arm: Values
    no_logs_from: float
    resolution: float
    total: float

    def until(self, round_: float) -> InterimData:
        """What a look after a round compares. What a later value is must not change it: decisions were made by it."""
        so_far = self.rounds <= round_
        logs = round_ < self.no_logs_from
        used = ArmPair(baseline=self.baseline[so_far], arm=self.arm[so_far])
        return InterimData(logs=logs, used=used.logarithms if logs else used)

    def joined(self, later: Pairs) -> Pairs:
        """With those of a later round."""
        if not len(later.rounds) and later.no_logs_from == math.inf:
            return self
        return replace(
            self,
            rounds=np.concatenate([self.rounds, later.rounds]),
            baseline=np.concatenate([self.baseline, later.baseline]),
            arm=np.concatenate([self.arm, later.arm]),
            no_logs_from=min(self.no_logs_from, later.no_logs_from),
        )

    def bound(self, blocks: int, *, margin: float) -> float:
        """Of equivalence on the log scale, as the first blocks give it."""
        return shares.bound(self.baseline[:blocks], self.arm[:blocks], margin=margin, total=self.total)

    def ended(self, round_: float) -> Pairs:
        """Without what came in later rounds."""
        kept = self.rounds <= round_
        return replace(
            self,
            rounds=self.rounds[kept],
            baseline=self.baseline[kept],
            arm=self.arm[kept],
            no_logs_from=self.no_logs_from if self.no_logs_from <= round_ else math.inf,
        )

    @cached_property
    def whole(self) -> InterimData:
        """With every round."""
        return self.until(sys.float_info.max)

    @cached_property
    def in_units(self) -> InterimData:
        """With every round, in the metric's unit."""
        return InterimData(logs=False, used=ArmPair(baseline=self.baseline, arm=self.arm))


@dataclass(frozen=True)
class InterimData:
    """What is compared, up to some round.

    Attributes:
        logs: whether `used` are logarithms: then no value so far was without one.
    """

    logs: bool
    used: ArmPair

    @cached_property
    def values(self) -> Values:
        """Log ratios of blocks, or differences, shape (blocks,)."""
        return self.used.differences

    def mean(self) -> tuple[float, float]:
        """And its standard error: infinite for one block, and for what is constant up to rounding."""
        values = self.values
        if len(values) < t_tests.SMALLEST_N:
            return float(values.sum()), math.inf
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
        return float(values.mean()), error if error > self.used.rounding else math.inf


@dataclass(frozen=True)
class SequentialRun:
    """A run up to its last round. `stops` has a cell's name only once it is decided."""

    rule: Rule
    pairs: tuple[Pairs, ...]
    standing: Standing
    looks: tuple[tuple[CellLook, ...], ...]
    stops: dict[str, CellStop]


def _last_known(plan: Plan, round_: int) -> int:
    """The largest number of blocks, as a look after a round knew it."""
    return plan.design.blocks - sum(extension.blocks for extension in plan.extensions if extension.round >= round_)


def rule_of(design: Design) -> Rule | None:
    """The rule that a design asks for; None if all blocks are run."""
    if design.stop == "fixed":
        return None
    return Rule(
        kind=design.stop,
        first=design.min_blocks or design.blocks,
        last=design.blocks,
        alpha=1 - design.confidence,
        bound=math.log1p(design.margin),
        spending=design.spending or "pocock",
        futility=bool(design.futility),
        equivalence=bool(design.equivalence),
        half_width=math.log1p(design.precision or math.inf),
    )


def in_time(
    plan: Plan, trials: Sequence[TrialRecord], *, voided: Collection[tuple[str, int]] = ()
) -> list[TrialRecord]:
    """Without blocks of rounds after the one that stopped their cell, which a farm had begun by then.

    Which of those came back, and when, is a matter of their speed: with them, a result would depend on it.
    """
    run = follow(plan, trials, voided=voided) if is_farm(trials) else None
    if run is None:
        return list(trials)
    ends = {cell: stop.round for cell, stop in run.stops.items()}
    return [trial for trial in trials if trial.trial.round <= ends.get(trial.trial.cell, math.inf)]


def is_farm(trials: Sequence[TrialRecord]) -> bool:
    """Whether several blocks may have been under way at a time."""
    return any(trial.host for trial in trials)


def follow(
    plan: Plan,
    trials: Sequence[TrialRecord],
    *,
    contrast: str | None = None,
    through: int | None = None,
    voided: Collection[tuple[str, int]] = (),
) -> SequentialRun | None:
    """Follows a run through its rounds; None for a design that runs all blocks.

    Args:
        plan: as recorded.
        trials: in any order; of a farm, blocks of rounds after the one that stopped their cell are left out.
        contrast: the factor to compare; the plan's arm if None.
        through: the last round to look at; every round that has trials if None. A run that has blocks under way on
            several hosts has some of rounds that are not complete.
        voided: as of `select`.
    """
    if plan.design.stop == "fixed":
        return None
    return _followed(plan, trials, select(plan, trials, contrast=contrast, voided=voided), through=through)


class Following:
    """A run followed while it goes on: what `follow` computes again, with each trial taken in once.

    It keeps some numbers of each block, and whole trials of those rounds alone that were not looked at yet.

    Attributes:
        rule: as the design asks for.
        stops: as of `SequentialRun`.
    """

    def __init__(self, plan: Plan) -> None:
        self._course = _course(select(plan, (), contrast=None))
        self._waiting: dict[int, list[TrialRecord]] = {}
        self._voided: set[tuple[str, int]] = set()
        self._round = 0

    @property
    def rule(self) -> Rule:
        """See above."""
        return self._course.standing.rule

    @property
    def stops(self) -> Mapping[str, CellStop]:
        """See above."""
        return self._course.stops

    def take(self, plan: Plan, trials: Iterable[TrialRecord], *, voided: Iterable[tuple[str, int]] = ()) -> None:
        """Takes in what is new; `plan` with all that the run was extended by."""
        self._course.plan = plan
        self._voided.update(voided)
        for trial in trials:
            self._waiting.setdefault(trial.trial.round, []).append(trial)

    def look(self, round_: int) -> tuple[CellLook, ...]:
        """The look after a round that is complete, and not looked at yet."""
        looks: tuple[CellLook, ...] = ()
        while self._round < round_:
            self._round += 1
            self._course.add(self._waiting.pop(self._round, ()), voided=self._voided)
            looks = self._course.look(self._round)
        return looks


def _followed(plan: Plan, trials: Sequence[TrialRecord], selection: Selection, *, through: int | None) -> SequentialRun:
    # Of another contrast, `in_time` has left what the run's own rule counted; it was not stopped by this one.
    cut = is_farm(trials) and selection.contrast == plan.arm
    course = _course(selection, _pairs(plan, trials, selection), is_farm=cut)
    rounds: dict[int, list[TrialRecord]] = {}
    for trial in trials:
        rounds.setdefault(trial.trial.round, []).append(trial)
    looks = []
    for round_ in range(1, 1 + (max(rounds, default=0) if through is None else through)):
        course.spend(rounds.get(round_, ()))
        looks.append(course.look(round_))
    kept = tuple(pair.ended(course.end(pair.key[0])) for pair in course.pairs)
    rule = _rule(plan)
    return SequentialRun(rule=rule, pairs=kept, standing=course.standing, looks=tuple(looks), stops=course.stops)


def _metrics(plan: Plan) -> dict[str, bool]:
    """Whether each metric is primary."""
    others = [*plan.metrics.secondary, *plan.metrics.guardrails]
    return dict.fromkeys(plan.metrics.primary, True) | {
        name: False for name in others if name not in plan.metrics.primary
    }


def _pairs(plan: Plan, trials: Iterable[TrialRecord], selection: Selection) -> tuple[Pairs, ...]:
    """Of every cell, metric and arm."""
    rounds = {(trial.trial.cell, trial.trial.block): trial.trial.round for trial in trials}
    return tuple(
        _pair(cell, (plan.metrics.definitions[metric], primary), level=level, first=selection.levels[0], rounds=rounds)
        for cell in selection.cells
        for metric, primary in _metrics(plan).items()
        for level in selection.levels[1:]
    )


def _pair(
    cell: ContrastCell,
    of: tuple[MetricDefinition, bool],
    *,
    level: str,
    first: str,
    rounds: Mapping[tuple[str, int], int],
) -> Pairs:
    definition, primary = of
    metric = definition.name
    base, arm = (measured(cell.groups[each], metric=metric, arm=each) for each in (first, level))
    used = arm_pair(base, arm, paired=True)
    when = np.array([_round(cell, block, levels=(first, level), rounds=rounds) for block in base.common(arm)])
    order = np.argsort(when, kind="stable")
    no_logs = [
        rounds[cell.planned_cells[each.arm], block]
        for each in (base, arm)
        for block, value in zip(each.blocks, each.values, strict=True)
        if value <= 0
    ]
    return Pairs(
        key=(cell.name, metric, level),
        primary=primary,
        rounds=when[order],
        baseline=used.baseline[order],
        arm=used.arm[order],
        no_logs_from=min(no_logs, default=math.inf),
        resolution=definition.resolution,
        total=definition.total,
    )


def _round(cell: ContrastCell, block: int, *, levels: tuple[str, str], rounds: Mapping[tuple[str, int], int]) -> int:
    return max(rounds[cell.planned_cells[level], block] for level in levels)


def _rule(plan: Plan) -> Rule:
    rule = rule_of(plan.design)
    assert rule is not None  # noqa: S101 - the design says so
    return rule


def _course(selection: Selection, pairs: tuple[Pairs, ...] = (), *, is_farm: bool = False) -> _Course:
    """The rounds of a run before the first; without pairs, those of a run without trials."""
    plan, pairs = selection.plan, pairs or _pairs(selection.plan, (), selection)
    names = list(dict.fromkeys(pair.key[0] for pair in pairs))
    metrics = list(dict.fromkeys(pair.key[1] for pair in pairs))
    standing = Standing(
        rule=_rule(plan),
        shape=(len(pairs),),
        cells=np.array([names.index(pair.key[0]) for pair in pairs]),
        pools=np.array([metrics.index(pair.key[1]) for pair in pairs]),
        family=np.array([pair.primary for pair in pairs], dtype=bool),
        # As the plan says: its decisions stand, and one without the word was made while each cell counted.
        in_step=selection.contrast != plan.arm or plan.design.neighbours == "boots",
    )
    return _Course(plan=plan, pairs=pairs, standing=standing, names=names, is_farm=is_farm)


@dataclass
class _Course:
    """The rounds of a run, one after the other. `spent`: seconds of trials so far, and how many, by cell and arm."""

    plan: Plan
    pairs: tuple[Pairs, ...]
    standing: Standing
    names: list[str]
    is_farm: bool
    stops: dict[str, CellStop] = field(default_factory=dict)
    spent: dict[tuple[str, str], tuple[Fraction, int]] = field(default_factory=dict)

    def add(self, trials: Sequence[TrialRecord], *, voided: Collection[tuple[str, int]]) -> None:
        """Takes in the trials of the next round."""
        self.is_farm = self.is_farm or is_farm(trials)
        new = _pairs(self.plan, trials, select(self.plan, trials, contrast=None, voided=voided))
        self.pairs = tuple(pair.joined(later) for pair, later in zip(self.pairs, new, strict=True))
        self.spend(trials)

    def spend(self, trials: Iterable[TrialRecord]) -> None:
        """Counts the time of the next round's trials; of a cell that had stopped, nothing."""
        if self.plan.design.time_budget_s is None:
            return
        for trial in trials:
            if trial.trial.round <= self.end(trial.trial.cell):
                seconds, n = self.spent.get((trial.trial.cell, trial.trial.arm), (Fraction(), 0))
                self.spent[trial.trial.cell, trial.trial.arm] = seconds + _duration_s(trial), n + 1

    def look(self, round_: int) -> tuple[CellLook, ...]:
        """What the rule sees and decides after a round, of cells that were open before it."""
        open_ = [name for name in self.names if name not in self.stops]
        self.standing.rule = replace(self.standing.rule, last=_last_known(self.plan, round_))
        self.standing.look(self._estimates(round_))
        late = self._out_of_time()
        looks = tuple(self._cell(name, late=late) for name in open_)
        for look in looks:
            if look.decision == "stop":
                self.stops[look.cell] = CellStop(
                    cell=look.cell, blocks=look.blocks, round=round_, reason=look.reason or "decided"
                )
        return looks

    def end(self, cell: str) -> float:
        """The last round of a cell that counts: of a farm, which has begun others, the one that stopped it."""
        return self.stops[cell].round if self.is_farm and cell in self.stops else math.inf

    def _estimates(self, round_: int) -> Estimates:
        so_far = [pair.until(min(round_, self.end(pair.key[0]))) for pair in self.pairs]
        margin = self.plan.design.margin
        each = []
        for pair, data, before in zip(self.pairs, so_far, self.standing.latest.n.tolist(), strict=True):
            n = len(data.values)  # without a new block, what it had shown counts
            own = self._own_test(pair, n, logs=data.logs) if n > before else agreeing.AGREES
            found = estimates(
                data.values,
                n=np.array(n),
                error=np.array(data.mean()[1]),
                bound=np.array(pair.bound(n, margin=margin) if data.logs else 0.0),
            )
            p, inside, reached = map(np.array, own)
            each.append(replace(found, logs=np.array(data.logs), own=p, own_inside=inside, own_reach=reached))
        return Estimates(*(np.array([getattr(of, field.name) for of in each]) for field in fields(Estimates)))

    def _own_test(self, pair: Pairs, n: int, *, logs: bool) -> tuple[float, float, float]:
        """Of what the run stops for; plans of before this was asked stand by Student's alone."""
        design = self.plan.design
        if not pair.primary or design.stops_by == "student":
            return agreeing.AGREES
        cell, metric, _arm = pair.key
        subject = Subject(metric=metric, role="primary", cell=cell, resolution=pair.resolution, total=pair.total)
        used = ArmPair(baseline=pair.baseline[:n], arm=pair.arm[:n])
        setting = ComparisonOptions(
            paired=True,
            confidence=design.confidence,
            margin=design.margin,
            family_size=1,
            once=False,
            seed=design.seed,
        )
        return agreeing.own_test(used, subject, logs=logs, setting=setting)

    def _cell(self, name: str, *, late: bool) -> CellLook:
        standing, rule = self.standing, self.standing.rule
        members = [index for index, pair in enumerate(self.pairs) if pair.key[0] == name and pair.primary]
        blocks = min(int(standing.latest.n[index]) for index in members)
        stops = not standing.live[members].any()
        return CellLook(
            cell=name,
            blocks=blocks,
            information=blocks / rule.last,
            decision="stop" if stops or late else "continue",
            reason=_reason(standing, members) if stops else "time_budget" if late else "",
            comparisons=[self._comparison(index) for index in members],
        )

    def _comparison(self, index: int) -> ComparisonLook:
        standing, pair, latest = self.standing, self.pairs[index], self.standing.latest
        n, mean, error = (float(each[index]) for each in (latest.n, latest.mean, latest.error))
        boundary = reach(int(n), level=standing.level, rule=standing.rule)
        return ComparisonLook(
            metric=pair.key[1],
            arm=pair.key[2],
            n=int(n),
            estimate=mean,
            t=mean / error if math.isfinite(error) and error > 0 else None,
            boundary=boundary if math.isfinite(boundary) else None,
            p_adjusted=float(standing.differs_adjusted[index]),
            p_equivalence_adjusted=float(standing.same_adjusted[index]),
            chance=float(standing.chance[index]),
        )

    def _out_of_time(self) -> bool:
        """Whether the next round, as long as its cells' trials have been so far, would end beyond the time budget."""
        budget = self.plan.design.time_budget_s
        if budget is None:
            return False
        live = {self.names[cell] for cell in self.standing.cells[self.standing.live].tolist()}
        next_s = sum(seconds / n for (cell, _arm), (seconds, n) in self.spent.items() if cell in live)
        done_s = sum(seconds for seconds, _n in self.spent.values())
        together = 2 if self.plan.design.order == "duet" else 1  # trials at a time
        return (done_s + next_s * self.plan.design.per_boot) / together > budget


def _duration_s(trial: TrialRecord) -> Fraction:
    """Wall time of a trial, with everything around its window; exact, so that sums depend on no order."""
    took = datetime.fromisoformat(trial.finished) - datetime.fromisoformat(trial.started)
    return Fraction(took // timedelta(microseconds=1), 1_000_000)


def _reason(standing: Standing, members: list[int]) -> StopReason:
    settled, futile = standing.settled[members], standing.futile[members]
    if not (settled | futile).all():
        return "blocks"
    if not settled.all():
        return "futility"
    if standing.rule.kind == "precision":
        return "precision"
    if standing.different[members].all():
        return "difference"
    return "equivalence" if standing.equivalent[members].all() else "decided"
