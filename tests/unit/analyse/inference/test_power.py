"""Planning: against R's power.t.test, against simulation, and its own inverse."""

from __future__ import annotations

import math
import subprocess
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestIndPower
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.inference import power
from fairtrial.analyse.noise.models import MetricNoise, NoiseProfile
from fairtrial.analyse.sequential import last_look

CASES = [(0.02, 0.03, 0.05), (0.02, 0.01, 0.01), (0.1, 0.05, 0.05 / 6), (0.3, 0.5, 0.05), (0.01, 0.03, 0.05)]


@pytest.mark.servers
def test_r_asks_for_the_same_number_of_blocks_and_finds_the_same_effect() -> None:
    lines = []
    for sd, effect, alpha in CASES:
        given_n = f"delta={math.log1p(effect)!r}, sd={sd!r}, sig.level={alpha!r}, type='one.sample', strict=TRUE"
        lines.append(f"cat(power.t.test(n=10, {given_n})$power, '\\n')")
        lines.append(
            f"cat(power.t.test(n=10, power=0.8, sd={sd!r}, sig.level={alpha!r}, type='one.sample', strict=TRUE, "
            "tol=1e-10)$delta, '\\n')"
        )
        lines.append(f"cat(power.t.test(power=0.8, {given_n}, tol=1e-10)$n, '\\n')")
    lines = ["options(digits=12)", *(line.replace("power.t.test", "try.it") for line in lines)]
    lines[0] += "; try.it <- function(...) tryCatch(power.t.test(...), error=function(e) list(n=NA))"
    ran = subprocess.run(["Rscript", "-"], input="\n".join(lines), capture_output=True, text=True, check=True)
    found = iter(ran.stdout.split())
    for sd, effect, alpha in CASES:
        assert power.power(sd, effect=effect, blocks=10, alpha=alpha) == pytest.approx(float(next(found)), abs=1e-6)
        assert power.detectable(sd, blocks=10, alpha=alpha) == pytest.approx(math.expm1(float(next(found))), rel=1e-5)
        blocks, n = power.blocks_needed(sd, effect=effect, alpha=alpha), next(found)
        assert blocks is not None
        if n == "NA":  # R searches from 2 blocks on, where so large an effect is found at once
            assert blocks == power.FEWEST_BLOCKS
        else:
            assert blocks == max(power.FEWEST_BLOCKS, math.ceil(float(n)))


def test_simulated_studies_find_the_planned_effect_as_often_as_planned() -> None:
    random = np.random.default_rng(3)
    blocks = power.blocks_needed(0.02, effect=0.03, alpha=0.05 / 4)
    assert blocks is not None
    ratios = random.normal(math.log1p(0.03), 0.02, size=(20_000, blocks))
    found = float(np.mean(stats.ttest_1samp(ratios, 0, axis=1).pvalue < 0.05 / 4))
    expected = power.power(0.02, effect=0.03, blocks=blocks, alpha=0.05 / 4)
    assert found == pytest.approx(expected, abs=0.012)  # four Monte-Carlo standard errors
    assert expected >= 0.8 > power.power(0.02, effect=0.03, blocks=blocks - 1, alpha=0.05 / 4)


@given(st.floats(0.002, 0.2), st.integers(3, 60), st.sampled_from([0.05, 0.01, 0.05 / 24]))
def test_the_effect_that_blocks_detect_needs_those_blocks(sd: float, blocks: int, alpha: float) -> None:
    effect = power.detectable(sd, blocks=blocks, alpha=alpha)
    assert effect is not None
    if effect < 100:
        needed = power.blocks_needed(sd, effect=effect * (1 + 1e-6), alpha=alpha)
        assert needed is not None
        assert needed <= blocks


def test_an_effect_out_of_reach_has_no_number_of_blocks() -> None:
    assert power.blocks_needed(0.5, effect=0.001, alpha=0.05) is None


def test_a_run_is_a_pilot_of_its_noisiest_arm_and_the_family_sets_the_level() -> None:
    case = Case({"kernel": ["base", "calm", "wild"], "memory": ["under", "over"]}, blocks=6)
    random = np.random.default_rng(2)
    spread = {"base": 0.001, "calm": 0.002, "wild": 0.05}
    trials = case.trials(tpm=lambda levels, _block: 100 * math.exp(random.normal(0, spread[levels["kernel"]])))
    pilots = power.of_run(case.plan(), trials)
    assert [(pilot.cell, pilot.df) for pilot in pilots] == [("under", 5), ("over", 5)]
    for pilot in pilots:
        values = {
            arm: [t.scalars["tpm"] for t in trials if (t.trial.cell, t.trial.arm) == (pilot.cell, arm)]
            for arm in ("base", "wild")
        }
        assert pilot.sd == pytest.approx(np.std(np.log(values["wild"]) - np.log(values["base"]), ddof=1))
        assert pilot.upper > pilot.sd
    assert power.family(case.plan()) == 4
    assert power.level(case.plan()) == pytest.approx(0.0125)
    assert power.hardest(pilots) == max(pilots, key=lambda pilot: pilot.sd)
    whole = power.of_run(case.plan(), trials, voided=[("under", 2), ("over", 9)])
    assert [pilot.df for pilot in whole] == [4, 5], "a host lost a block of one cell"


@pytest.mark.parametrize(("sd", "effect", "alpha", "blocks"), [(0.02, 0.03, 0.05, 6), (0.1, 0.05, 0.05 / 6, 20)])
def test_arms_that_are_not_paired_have_statsmodels_power_of_two_samples(
    *, sd: float, effect: float, alpha: float, blocks: int
) -> None:
    sizes = math.log1p(effect) / (sd / math.sqrt(2))  # `sd` is of the difference of two trials
    theirs = TTestIndPower().power(sizes, blocks, alpha, ratio=1)
    assert power.power(sd, effect=effect, blocks=blocks, alpha=alpha, paired=False) == pytest.approx(theirs, abs=1e-7)
    shown = power.detectable(sd, blocks=blocks, alpha=alpha, paired=False)
    size = TTestIndPower().solve_power(nobs1=blocks, alpha=alpha, power=0.8, ratio=1)
    assert shown == pytest.approx(math.expm1(size * sd / math.sqrt(2)), rel=1e-4)
    needed = power.blocks_needed(sd, effect=effect, alpha=alpha, paired=False)
    n = TTestIndPower().solve_power(effect_size=sizes, alpha=alpha, power=0.8, ratio=1)
    assert needed == max(power.FEWEST_BLOCKS, math.ceil(n))


def test_a_pilot_in_blocks_plans_a_study_in_sequence_by_what_its_blocks_vary_by() -> None:
    """Blocks vary five times as much as trials: paired, that is gone; in a study in sequence it is in each arm."""
    random = np.random.default_rng(4)
    by_block = random.normal(0, 0.05, 41)
    pilot, study = (Case({"kernel": ["old", "new"]}, blocks=10, order=order) for order in ("abba", "sequential"))
    trials = pilot.trials(tpm=lambda _levels, block: 1000 * math.exp(by_block[block] + random.normal(0, 0.01)))
    (paired,) = power.of_run(pilot.plan(), trials)
    (alone,) = power.of_run(pilot.plan(), trials, paired=False)
    own = [
        np.log([each.scalars["tpm"] for each in trials if each.trial.arm == arm]).std(ddof=1) for arm in ("old", "new")
    ]
    assert alone.sd == pytest.approx(math.sqrt(own[0] ** 2 + own[1] ** 2), rel=1e-9)
    assert alone.df == paired.df == 9
    assert alone.sd > 3 * paired.sd
    plan = study.plan()
    shown = last_look.detectable(plan, alone.sd, blocks=10)
    assert shown == power.detectable(alone.sd, blocks=10, alpha=0.05, paired=False)
    # The same trials as that study would have had them: its report's smallest effect.
    found = analyse(plan, trials)
    (comparison,) = found.cells[0].comparisons["tpm"]
    assert comparison.method.startswith("Welch")
    assert comparison.smallest_effect == pytest.approx(shown, rel=0.01)


def test_a_place_that_kept_its_noise_knows_both_parts_of_it() -> None:
    parts: dict[str, Any] = {"blocks": 10, "trial_sd": 0.03, "block_sd": 0.04, "pair_sd": 0.03 * math.sqrt(2)}
    of: dict[str, Any] = {"cell": "all", "metric": "tpm", **parts}
    whole: dict[str, Any] = {"metrics": (MetricNoise.model_construct(**of),)}
    kept = NoiseProfile.model_construct(**whole)
    found = [
        power.of_profile(kept, Case({"kernel": ["old", "new"]}, blocks=10, order=order).plan())[0].sd
        for order in ("abba", "sequential")
    ]
    assert found == pytest.approx([0.03 * math.sqrt(2), 0.05 * math.sqrt(2)])
