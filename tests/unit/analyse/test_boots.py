"""Where arms boot once in a round, the boot is the unit: what it does to n, to a claim, and to what is said."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from support.inference.analysis_cases import Case, invalid

from fairtrial.analyse import analyse
from fairtrial.analyse.boots import UNIT, averaged
from fairtrial.analyse.models import Comparison
from fairtrial.record.models import Plan, TrialRecord

PER_BOOT = 5
BOOTS = 6
CASE = Case({"kernel": ["old", "new"]}, blocks=BOOTS)


def booted(values: dict[tuple[str, int], Sequence[float]]) -> tuple[Plan, list[TrialRecord]]:
    """A run whose boots gave these values, by arm and block."""
    plan, trials = CASE.plan(), []
    for each in CASE.trials(tpm=lambda _levels, _block: 1.0):
        planned = each.trial
        for repeat, value in enumerate(values[planned.arm, planned.block], start=1):
            again = planned.model_copy(
                update={"id": f"{planned.id}.{repeat}", "repeat": repeat, "boot": f"b{planned.block}.{planned.arm}"}
            )
            trials.append(each.model_copy(update={"trial": again, "scalars": {"tpm": value}}))
    design = plan.design.model_copy(update={"reboot": "between_blocks", "per_boot": PER_BOOT})
    return plan.model_copy(update={"design": design, "trials": [trial.trial for trial in trials]}), trials


def noise(random: np.random.Generator, *, between: float, within: float) -> dict[tuple[str, int], list[float]]:
    """Boots of arms that do not differ, whose logarithms scatter so much between and within."""
    return {
        (arm, block): np.exp(
            7 + between * random.standard_normal() + within * random.standard_normal(PER_BOOT)
        ).tolist()
        for arm in ("old", "new")
        for block in range(1, BOOTS + 1)
    }


def compared(plan: Plan, trials: Sequence[TrialRecord]) -> Comparison:
    ((comparison,),) = analyse(plan, trials).cells[0].comparisons.values()
    return comparison


def test_each_boot_is_one_value_its_mean() -> None:
    values = noise(np.random.default_rng(1), between=0.02, within=0.01)
    plan, trials = booted(values)
    found = analyse(plan, trials)
    comparison = compared(plan, trials)
    assert comparison.n == BOOTS
    logs = [math.log(np.mean(values["new", block]) / np.mean(values["old", block])) for block in range(1, BOOTS + 1)]
    assert comparison.ratio.estimate == pytest.approx(math.exp(np.mean(logs)))
    assert comparison.assumptions[-1] == UNIT
    assert found.counts.used == 2 * BOOTS * PER_BOOT, "every trial is counted"


def test_cells_of_one_boot_are_no_samples_of_their_own() -> None:
    """Boots scatter by 5 % and loads by nothing: the effect at both together is as uncertain as at one."""
    random, case = np.random.default_rng(3), Case({"kernel": ["old", "new"], "load": ["few", "many"]}, blocks=BOOTS)
    boots = {(arm, block): random.normal(7, 0.05) for arm in ("old", "new") for block in range(1, BOOTS + 1)}
    tiny = iter(random.normal(0, 1e-4, 4 * BOOTS))
    trials = case.trials(tpm=lambda levels, block: math.exp(boots[levels["kernel"], block] + next(tiny)))
    design = case.plan().design.model_copy(update={"reboot": "between_blocks"})
    found = analyse(case.plan().model_copy(update={"design": design}), trials)
    (test,) = found.interactions
    assert test.in_step
    logs = [boots["new", block] - boots["old", block] for block in range(1, BOOTS + 1)]
    assert abs(test.pairs[0].ratio or 0) == pytest.approx(1, abs=1e-3)
    assert np.ptp(np.log([test.pairs[0].low or 0, test.pairs[0].high or 0])) < np.std(logs) / 10


def test_a_boot_that_lost_a_trial_is_void_whole() -> None:
    plan, trials = booted(noise(np.random.default_rng(2), between=0.02, within=0.01))
    trials[7] = invalid(trials[7])
    assert compared(plan, trials).n == BOOTS - 1


def test_a_scalar_that_a_trial_lacks_is_the_mean_of_the_others() -> None:
    _plan, trials = booted({(arm, block): [1.0, 3.0] for arm in ("old", "new") for block in range(1, BOOTS + 1)})
    trials[0] = trials[0].model_copy(update={"scalars": {"tpm": math.nan}})
    assert [trial.scalars["tpm"] for trial in averaged(trials)][:2] == [3.0, 2.0]


CALM = {
    "throughput_drift": 0.01,
    "throughput_drift_p": 0.4,
    "throughput_levels": 1.0,
    "settled_from_s": 0.0,
    "throughput_effective_n": 40.0,
    "drifting": 0.0,
    "unsteady": 0.0,
}


@pytest.mark.parametrize(("drifting", "said"), [(1, []), (2, []), (3, ["not_steady", "steadiness_differs"])])
def test_steadiness_is_of_trials_and_arms_differ_in_it_by_boots(*, drifting: int, said: list[str]) -> None:
    """So many trials of each boot of one arm drift; with three of five most do."""
    plan, trials = booted(noise(np.random.default_rng(6), between=0.02, within=0.01))
    judged = [
        each.model_copy(
            update={
                "scalars": each.scalars
                | CALM
                | {"drifting": float(each.trial.arm == "new" and each.trial.repeat > PER_BOOT - drifting)}
            }
        )
        for each in trials
    ]
    found = analyse(plan, judged)
    assert [each.trial for each in found.steadiness if each.verdict == "drifting"] == [
        each.trial.id for each in judged if each.scalars["drifting"]
    ]
    assert len(found.steadiness) == 2 * BOOTS * PER_BOOT
    doubts = {doubt.code: doubt.message for doubt in found.doubts if "stead" in doubt.code}
    assert [*doubts] == said
    if said:
        assert doubts["not_steady"].startswith("18 of 30 trials")
        assert doubts["steadiness_differs"].startswith("6 of 6 boots of new are mostly not steady, 0 of 6 of old")


def test_boots_keep_the_level_where_trials_counted_one_by_one_do_not() -> None:
    random = np.random.default_rng(5)
    runs, claims, naive = 60, 0, 0
    for _ in range(runs):
        plan, trials = booted(noise(random, between=0.03, within=0.01))
        claims += compared(plan, trials).p < 0.05
        each = [
            trial.model_copy(
                update={
                    "trial": trial.trial.model_copy(
                        update={"block": trial.trial.block * PER_BOOT + trial.trial.repeat, "repeat": 1}
                    )
                }
            )
            for trial in trials
        ]
        naive += compared(plan, each).p < 0.05
    assert claims <= 8, "of 60, 3 expected; 9 and more in 1 of 300"
    assert naive >= 15
