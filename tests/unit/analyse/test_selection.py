"""Which trials stand in which cell of which contrast."""

import pytest
from support.inference.analysis_cases import Case, invalid

from fairtrial.analyse.expectations import expectations
from fairtrial.analyse.selection import select
from fairtrial.record.models import Extended, RangeExpectation, TrialRecord

FACTORS = {"kernel": ["base", "patched"], "memory": ["under", "over"], "users": ["low", "high"]}
CASE = Case(FACTORS, blocks=2)
TRIALS = CASE.trials(tpm=lambda _levels, block: 1000.0 + block, p99=lambda _levels, block: float(block))


def ids(trials: tuple[TrialRecord, ...]) -> list[str]:
    return [each.trial.id for each in trials]


def test_the_arm_is_the_contrast_unless_another_is_named() -> None:
    selection = select(CASE.plan(), TRIALS, contrast=None)
    assert selection.contrast == "kernel"
    assert [cell.name for cell in selection.cells] == ["under+low", "under+high", "over+low", "over+high"]
    assert ids(selection.cells[0].groups["patched"]) == ["under+low.b01.patched", "under+low.b02.patched"]
    assert selection.cells[0].planned_cells == {"base": "under+low", "patched": "under+low"}


def test_cells_of_another_contrast_hold_the_arm_and_know_where_their_trials_were_planned() -> None:
    selection = select(CASE.plan(), TRIALS, contrast="memory")
    assert [cell.name for cell in selection.cells] == ["base+low", "base+high", "patched+low", "patched+high"]
    cell = selection.cells[3]
    assert cell.levels == {"kernel": "patched", "users": "high"}
    assert cell.planned_cells == {"under": "under+high", "over": "over+high"}
    assert ids(cell.groups["over"]) == ["over+high.b01.patched", "over+high.b02.patched"]


@pytest.mark.parametrize("contrast", [None, "memory", "users"])
def test_every_used_trial_stands_in_exactly_one_place(contrast: str | None) -> None:
    selection = select(CASE.plan(), TRIALS, contrast=contrast)
    standing = [each.trial.id for cell in selection.cells for group in cell.groups.values() for each in group]
    assert sorted(standing) == sorted(ids(selection.used))
    assert len(standing) == len(TRIALS)


def test_another_contrast_uses_the_rounds_that_a_run_was_extended_by_and_no_replacement() -> None:
    case = Case(FACTORS, blocks=4)
    trials = case.trials(tpm=lambda _levels, block: 1000.0 + block)
    more = Extended(round=2, blocks=1, trials=[each.trial for each in trials if each.trial.block == 4])
    plan = case.plan()
    design = plan.design.model_copy(update={"blocks": 3})  # two planned, the third block is a replacement
    plan = plan.model_copy(update={"design": design, "extensions": [more]})
    assert {each.trial.block for each in select(plan, trials, contrast=None).used} == {1, 2, 3, 4}
    assert {each.trial.block for each in select(plan, trials, contrast="memory").used} == {1, 2, 4}


def test_a_study_of_one_factor_has_one_cell() -> None:
    case = Case({"kernel": ["base", "patched"]}, blocks=1)
    (cell,) = select(case.plan(), case.trials(tpm=lambda _levels, _block: 1.0), contrast=None).cells
    assert (cell.name, cell.levels) == ("all", {})


def test_an_arm_contrasted_as_itself_is_the_default() -> None:
    assert select(CASE.plan(), TRIALS, contrast="kernel") == select(CASE.plan(), TRIALS, contrast=None)


@pytest.mark.parametrize("contrast", [None, "users"])
def test_a_voided_block_is_left_out_whole_in_every_contrast(contrast: str | None) -> None:
    broken = [invalid(each) if each.trial.id == "over+low.b02.base" else each for each in TRIALS]
    selection = select(CASE.plan(), broken, contrast=contrast)
    assert selection.voided == (("over+low", 2),)
    left_out = {each.trial.id for each in broken} - set(ids(selection.used))
    assert left_out == {"over+low.b02.base", "over+low.b02.patched"}


def test_used_trials_are_in_time_order() -> None:
    positions = [each.trial.position for each in select(CASE.plan(), TRIALS[::-1], contrast=None).used]
    assert positions == sorted(positions)


@pytest.mark.parametrize(("host", "first"), [("", 1), ("node-1", 2)])
def test_a_clock_that_is_set_back_reorders_no_trials_but_those_of_hosts_at_the_same_time(host: str, first: int) -> None:
    steady = [
        each.model_copy(update={"started": f"2026-01-01T10:{minute:02d}:00.000Z", "host": host})
        for minute, each in enumerate(TRIALS)
    ]
    later = [each.model_copy(update={"started": each.started.replace("T10", "T09")}) for each in steady[8:]]
    used = select(CASE.plan(), [*steady[:8], *later], contrast=None).used
    assert [each.trial.position for each in used] == [*range(16)]
    assert used[0].trial.block == first


def test_a_replacement_stands_at_the_end_of_the_round_it_ran_in() -> None:
    case = Case({"kernel": ["base", "patched"]}, blocks=4)
    trials = case.trials(tpm=lambda _levels, block: float(block))
    moved = [
        each.model_copy(update={"trial": each.trial.model_copy(update={"round": 2})}) if each.trial.block == 4 else each
        for each in trials
    ]
    by_round = select(case.plan(), moved, contrast=None).used
    assert [each.trial.block for each in by_round] == [1, 1, 2, 2, 4, 4, 3, 3]
    assert [each.trial.position for each in by_round] == [*range(8)]
    in_sequence = Case(case.factors, blocks=4, order="sequential").plan()  # one arm after the other, across rounds
    assert [each.trial.block for each in select(in_sequence, moved, contrast=None).used] == [1, 1, 2, 2, 3, 3, 4, 4]


def expecting(low: float | None, high: float | None, metric: str = "p99") -> Case:
    expectation = RangeExpectation(factor="memory", level="over", metric=metric, low=low, high=high, text="as said")
    return Case(FACTORS, blocks=2, expectations=[expectation])


@pytest.mark.parametrize(
    ("low", "high", "met"),
    [(1.5, 1.5, True), (None, 1.5, True), (1.5, None, True), (1.6, None, False), (None, 1.4, False)],
)
def test_an_expectation_is_of_the_mean_over_the_baseline_s_trials(
    low: float | None, high: float | None, *, met: bool
) -> None:
    found = expectations(expecting(low, high).plan(), TRIALS)
    assert {name: len(results) for name, results in found.items()} == {
        "under+low": 0,
        "under+high": 0,
        "over+low": 1,
        "over+high": 1,
    }
    (result,) = found["over+low"]
    assert (result.mean, result.n, result.met) == (1.5, 2, met)


def test_an_expectation_says_every_arm_s_mean_and_whether_it_lies_in_the_range() -> None:
    case = expecting(0, 10)
    trials = case.trials(p99=lambda levels, block: block + (10.0 if levels["kernel"] == "patched" else 0.0))
    (result,) = expectations(case.plan(), trials)["over+low"]
    assert [(each.arm, each.mean, each.n, each.inside) for each in result.by_arm] == [
        ("base", 1.5, 2, True),
        ("patched", 11.5, 2, False),
    ]
    assert (result.mean, result.met) == (1.5, True), "the pooled mean of 6.5 is nobody's"


def test_an_arm_without_a_value_has_no_mean_and_is_not_inside() -> None:
    case = expecting(0, 10)
    trials = case.trials(p99=lambda levels, _block: float("nan") if levels["kernel"] == "patched" else 1.0)
    (result,) = expectations(case.plan(), trials)["over+low"]
    assert [(each.mean, each.n, each.inside) for each in result.by_arm] == [(1.0, 2, True), (None, 0, False)]


def test_an_expectation_leaves_out_invalid_trials_but_not_their_blocks() -> None:
    broken = [invalid(each) if each.trial.id == "over+low.b02.base" else each for each in TRIALS]
    (result,) = expectations(expecting(0, 10).plan(), broken)["over+low"]
    assert [(each.mean, each.n) for each in result.by_arm] == [(1.0, 1), (1.5, 2)]


def test_an_expectation_nobody_measured_is_not_met() -> None:
    (result,) = expectations(expecting(0, 10, metric="swapped").plan(), TRIALS)["over+low"]
    assert (result.mean, result.n, result.met) == (None, 0, False)
