"""Why: counters ranked by their change, against SciPy one by one, and what a cell without an effect gets."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import optimize, stats
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.why import counter_notes, counter_tests
from fairtrial.analyse.why import ranking as why
from fairtrial.analyse.why.models import CellWhy
from fairtrial.metrics.telemetry.counters import Counters
from fairtrial.record.models import TrialRecord

CASE = Case({"kernel": ["base", "new"], "memory": ["under", "over"]}, blocks=8)
GAIN = {"under": 1.0, "over": 1.1}


def trials() -> list[TrialRecord]:
    random = np.random.default_rng(4)
    return CASE.trials(
        tpm=lambda levels, _block: (
            100 * (GAIN[levels["memory"]] if levels["kernel"] == "new" else 1.0) * math.exp(random.normal(0, 0.005))
        )
    )


def read(trial: TrialRecord) -> Counters:
    """Refaults per transaction fall to a half, iowait by 12 points, direct reclaim begins; 40 counters only wander."""
    random = np.random.default_rng(trial.trial.position)
    new = trial.trial.arm == "new"
    work = trial.scalars["tpm"]
    grown = {f"vmstat:idle_{index}": work * math.exp(random.normal(0, 0.05)) for index in range(40)}
    grown |= {
        "vmstat:workingset_refault_file": work * (0.5 if new else 1.0) * math.exp(random.normal(0, 0.02)),
        "vmstat:pgscan_direct": random.uniform(50, 60) if new else 0.0,
        "vmstat:workingset_activate_file": work * (3.0 if new else 1.0) * math.exp(random.normal(0, 0.02)),
    }
    iowait = (0.10 if new else 0.22) + random.normal(0, 0.005)
    return Counters(
        grown=grown,
        levels={"cpu:iowait share": iowait, "memory:MemTotal": 8e9},
        length_s=2.0,
        work=work,
        unit="transaction",
    )


def explained(paths: tuple[str, ...] = ()) -> tuple[CellWhy, ...]:
    return why.explain(analyse(CASE.plan(), trials()), CASE.plan(), trials(), read=read, paths=paths)


def test_only_a_cell_with_an_effect_is_explained_and_only_its_trials_are_read() -> None:
    asked: list[str] = []

    def noting(trial: TrialRecord) -> Counters:
        asked.append(trial.trial.id)
        return read(trial)

    (found,) = why.explain(analyse(CASE.plan(), trials()), CASE.plan(), trials(), read=noting, paths=())
    assert found.cell == "over"
    assert len(asked) == len(set(asked)) == 16
    assert all(name.startswith("over") for name in asked)


def booted() -> list[TrialRecord]:
    """Three trials of each boot; the metric is of all of them."""
    again = [
        each.trial.model_copy(update={"id": f"{each.trial.id}+{repeat}", "repeat": repeat})
        for each in trials()
        for repeat in (1, 2, 3)
    ]
    values = {each.trial.id: each for each in trials()}
    return [values[each.id.split("+")[0]].model_copy(update={"trial": each}) for each in again]


def test_counters_of_a_boot_are_those_of_all_its_trials() -> None:
    """A trial does ten times as much after the first one of its boot, in half the time; only there an arm matters."""

    def of_boot(trial: TrialRecord) -> Counters:
        random = np.random.default_rng(trial.trial.position)
        later = trial.trial.repeat > 1
        reads = (30.0 if trial.trial.arm == "new" and later else 10.0) * math.exp(random.normal(0, 0.01))
        return Counters(
            grown={"vmstat:pgpgin": reads * (10 if later else 1)} | ({"vmstat:late": 1.0} if later else {}),
            levels={"memory:Dirty": reads},
            length_s=1.0 if later else 2.0,
            work=10.0 if later else 1.0,
            unit="run",
            errors={"vmstat:pgpgin": 0.01 * reads},
        )

    asked: list[str] = []

    def noting(trial: TrialRecord) -> Counters:
        asked.append(trial.trial.id)
        return of_boot(trial)

    (found,) = why.explain(analyse(CASE.plan(), booted()), CASE.plan(), booted(), read=noting, paths=())
    assert (found.n, len(asked), len(set(asked))) == (8, 48, 48)
    by_name = {change.counter: change for change in found.changes}
    assert set(by_name) == {"vmstat:pgpgin", "memory:Dirty"}
    reads, dirty = by_name["vmstat:pgpgin"], by_name["memory:Dirty"]
    assert reads.per_work is not None
    assert reads.per_second is not None
    assert dirty.level is not None
    assert reads.per_work.ratio == pytest.approx(610 / 210, rel=0.02)
    assert reads.per_second.ratio == pytest.approx(610 / 210, rel=0.02)
    assert reads.baseline == pytest.approx(210 / 4, rel=0.02)
    assert dirty.level.ratio == pytest.approx((2 * 10 + 2 * 30) / 40, rel=0.02)


def test_a_boot_with_a_trial_without_counters_has_none() -> None:
    plan = CASE.plan()
    lost = next(each.trial.id for each in booted() if each.trial.cell == "over" and each.trial.repeat == 2)

    def but_one(trial: TrialRecord) -> Counters | None:
        return None if trial.trial.id == lost else read(trial)

    assert why.explain(analyse(plan, booted()), plan, booted(), read=read, paths=())
    assert not why.explain(analyse(plan, booted()), plan, booted(), read=but_one, paths=())


def test_what_differs_by_the_same_in_every_trial_is_told_apart() -> None:
    def fixed(trial: TrialRecord, *, apart: bool = True) -> Counters:
        found, new = read(trial), apart and trial.trial.arm == "new"
        block = trial.trial.block
        return replace(
            found,
            grown=found.grown
            | {"vmstat:pswpin": 500.0 * new, "vmstat:allocstall": 0.0, "server:queries": 40.0 if new else 20.0},
            levels=found.levels
            | {"process-server:threads": 8.0 if new else 4.0, "memory:Hugepagesize": block * (1.5 if new else 1.0)}
            | {"memory:HugePages_Total": 0.3 if new else 0.1 + 0.2},
            length_s=found.length_s + block % 3 + 3 * new,
            work=1.0,
        )

    (found,) = why.explain(
        analyse(CASE.plan(), trials()), CASE.plan(), trials(), read=fixed, paths=("place.vm.kernel",)
    )
    assert [(each.counter, each.baseline, each.arm, each.p) for each in found.certain] == [
        ("vmstat:pswpin", 0.0, 500.0, 2 / 2**8),  # per unit of work: per second they vary
        ("server:queries", 20.0, 40.0, 2 / 2**8),
        ("process-server:threads", 4.0, 8.0, 2 / 2**8),
        ("memory:Hugepagesize", pytest.approx(4.5), pytest.approx(6.75), 2 / 2**8),
    ]
    assert found.certain[0].note  # as the kernels differ
    assert (found.tested, found.constant) == (44, 3)
    assert [why.speaks_certainly(each, margin=0.02) for each in found.certain] == [False, True, True, True]
    assert not why.speaks_certainly(found.certain[2], margin=1.01)
    again = why.explain(
        analyse(CASE.plan(), trials()), CASE.plan(), trials(), read=partial(fixed, apart=False), paths=()
    )
    assert (again[0].certain, again[0].constant) == ((), 7)
    assert "certain" not in again[0].model_dump()


def test_arms_without_blocks_that_never_vary_are_exchanged_among_all_trials() -> None:
    found = counter_tests.compare(np.full((3, 1), 4.0), np.full((5, 1), 8.0), work=None, paired=False)
    assert (found.varies.tolist(), found.certain.tolist(), found.certain_p) == ([False], [True], 2 / math.comb(8, 3))


def test_what_changed_comes_first_and_what_only_wandered_is_not_said() -> None:
    (found,) = explained()
    said = [change for change in found.changes if why.speaks(change, margin=0.02)]
    assert {change.counter for change in said} == {
        "vmstat:workingset_refault_file",
        "vmstat:workingset_activate_file",
        "vmstat:pgscan_direct",
        "cpu:iowait share",
    }
    assert [change.counter for change in found.changes[:4]] == [change.counter for change in said]
    assert (found.tested, found.constant, found.unit) == (44, 1, "transaction")
    by_name = {change.counter: change for change in found.changes}
    refaults = by_name["vmstat:workingset_refault_file"]
    assert refaults.per_work is not None
    assert refaults.per_second is not None
    assert refaults.per_work.low < 0.5 < refaults.per_work.high
    assert refaults.per_second.ratio == pytest.approx(refaults.per_work.ratio * 1.1, rel=0.01)  # more work was done
    assert by_name["vmstat:pgscan_direct"].per_work is None  # a baseline of 0 has no ratio
    assert by_name["vmstat:pgscan_direct"].arm == pytest.approx(27.5, abs=2)
    assert by_name["cpu:iowait share"].difference == pytest.approx(-0.12, abs=0.01)


def test_a_counter_whose_readings_took_long_carries_a_note_and_is_not_said() -> None:
    def slowly(trial: TrialRecord, *, share: float) -> Counters:
        found = read(trial)
        name = "vmstat:workingset_refault_file"
        late = trial.trial.block == 1 and trial.trial.arm == "new"
        return replace(found, errors={name: share * found.grown[name]} if late else {})

    def noted(share: float) -> set[str]:
        plan = CASE.plan()
        slow = partial(slowly, share=share)
        (found,) = why.explain(analyse(plan, trials()), plan, trials(), read=slow, paths=())
        assert {each.note for each in found.changes} <= {"", counter_notes.SLOW}
        return {each.counter for each in found.changes if not why.speaks(each, margin=0.0) and each.note}

    assert noted(0.021) == {"vmstat:workingset_refault_file"}
    assert noted(0.019) == set()


def test_a_counter_that_means_something_else_in_one_arm_carries_a_note_and_is_not_said() -> None:
    (found,) = explained(paths=("settings.sysfs.kernel.mm.lru_gen.enabled",))
    noted = {change.counter for change in found.changes if change.note}
    assert noted == {
        "vmstat:workingset_activate_file",
        "vmstat:workingset_refault_file",
        "vmstat:pgscan_direct",
    }
    assert not any(why.speaks(change, margin=0.02) for change in found.changes if change.note)


def test_an_unfinished_run_explains_nothing() -> None:
    unfinished = analyse(CASE.plan(), trials(), finished=False)
    assert why.explain(unfinished, CASE.plan(), trials(), read=read, paths=()) == ()


@pytest.mark.parametrize("paired", [True, False])
def test_every_column_is_tested_as_scipy_tests_it_alone(*, paired: bool) -> None:
    random = np.random.default_rng(8)
    baseline, arm = np.exp(random.normal(0, 0.1, (6, 5))), np.exp(random.normal(0.05, 0.2, (6, 5)))
    baseline[0, 4] = 0.0  # no logarithm: tested in units
    found = counter_tests.compare(baseline, arm, work=None, paired=paired)
    for column in range(5):
        one, other = baseline[:, column], arm[:, column]
        if column < 4:
            one, other = np.log(one), np.log(other)
        test = stats.ttest_rel(other, one) if paired else stats.ttest_ind(other, one, equal_var=False)
        low, high = test.confidence_interval(0.95)
        assert found.p[column] == pytest.approx(test.pvalue)
        if column < 4:
            assert found.plain["low"][column] == pytest.approx(math.exp(low))
            assert found.plain["high"][column] == pytest.approx(math.exp(high))
        else:
            assert math.isnan(found.plain["ratio"][column])
            assert (found.difference_low[column], found.difference_high[column]) == pytest.approx((low, high))


def test_the_standardised_effects_interval_inverts_the_noncentral_t() -> None:
    t, n = 4.2, 8
    low, high = counter_tests.standardised(np.array([t]), np.array([n - 1.0]), trials=n)
    for bound, probability in ((low, 0.975), (high, 0.025)):
        exact = optimize.brentq(lambda nc, p=probability: stats.nct.cdf(t, n - 1, nc) - p, -5, 20)
        assert bound[0] == pytest.approx(exact / math.sqrt(n), rel=1e-6)


@pytest.mark.parametrize(
    ("counter", "expected"),
    [
        ("server:row_lock_waits", "server"),
        ('prometheus-2:http_requests_total{code="200"}', "server"),
        ("command-1:queue", "server"),
        ("cpu:context_switches", "scheduler"),
        ("cpu:iowait share", "io"),
        ("cpu:user share", "cpu"),
        ("pressure:memory.some.total_us", "memory"),
        ("disks:vda.sectors_read", "io"),
        ("process-server:read_bytes", "io"),
        ("vmstat:pgscan_direct", "memory"),
        ("other:thing", "other"),
    ],
)
def test_counters_are_grouped_by_what_they_tell_of(counter: str, expected: str) -> None:
    assert counter_notes.subsystem(counter) == expected


@pytest.mark.parametrize("paired", [True, False])
def test_what_does_not_vary_has_an_interval_of_itself_alone(*, paired: bool) -> None:
    rate = np.full((6, 1), 100.0)
    work = [np.linspace(1.0, 2.0, 6)[:, None], np.linspace(1.1, 1.9, 6)[:, None]]
    tested = counter_tests.compare(rate, 2 * rate, work=work, paired=paired)
    assert tested.varies.all()
    assert [float(tested.plain[name][0]) for name in ("ratio", "low", "high")] == pytest.approx([2.0, 2.0, 2.0])
    bounds = (tested.difference[0], tested.difference_low[0], tested.difference_high[0])
    assert bounds == pytest.approx((100.0, 100.0, 100.0))
