"""A short calibration of adjusted estimates with fixed seeds, and that careless ones would be seen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from calibrated_covariates import adjusted, half
from calibrated_paths import EFFECT, Rate, Setup

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.covariates import regressed

RUNS = 800
OFTEN = 0.05 + 4 * math.sqrt(0.05 * 0.95 / RUNS)  # 5 % of so many runs stay below it in all but one of 30,000 rates


def setup(noise: str, n: int) -> Setup:
    return Setup(noise=noise, n=n, runs=RUNS, random=np.random.default_rng([2, n]))


def rates(noise: str, n: int) -> dict[tuple[str, str], Rate]:
    return {(rate.path, rate.figure): rate for rate in adjusted(setup(noise, n))}


@pytest.mark.parametrize("noise", ["normal", "bimodal"])
@pytest.mark.parametrize("n", [6, 12])
def test_no_claim_is_too_frequent_and_no_interval_too_narrow(noise: str, n: int) -> None:
    found = [rate for rate in rates(noise, n).values() if rate.required]
    assert len(found) > 10
    for rate in found:
        assert rate.estimate < OFTEN if rate.figure == "false" else rate.estimate > 1 - OFTEN, rate


def test_a_covariate_of_half_the_noise_gives_power_and_one_that_the_arm_moves_hides_its_effect() -> None:
    found = rates("normal", 12)
    name = "covariate of half the noise"
    assert found[f"adjusted, {name}", "power"].estimate > found[f"plain, {name}", "power"].estimate + 0.1
    moved = "covariate that the arm moves by 1 %"
    assert found[f"adjusted, {moved}: whole effect", "covers"].estimate < 0.8
    assert found[f"plain, {moved}: whole effect", "covers"].estimate > 1 - OFTEN


def test_a_slope_taken_for_known_would_be_seen() -> None:
    """A t test of what remains has a degree of freedom too many and leaves out the slope's own error."""
    noise, covariates = half(setup("normal", 5))
    fit = regressed(noise[:, 1] - noise[:, 0] + EFFECT, covariates[..., 1, :] - covariates[..., 0, :])
    low, high = t_tests.paired_many(np.zeros_like(fit.remaining), fit.remaining).interval(confidence=0.95)
    assert float(((low <= EFFECT) & (high >= EFFECT)).mean()) < 1 - OFTEN
