"""A short calibration over several hosts with fixed seeds, and that careless intervals would be seen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from calibrated_hosts import BLOCKS, KINDS_OF_HOSTS, Farm, alike, over_hosts, stopped
from calibrated_paths import CONFIDENCE, Rate, Setup
from calibrated_stopping import RUNS_SHARE
from calibration import PATHS
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse

RUNS = 800
SEED = 1
# A true 5 % of 800 runs stays below this in all but one of 30,000 rates, and 95 % stays above its mirror image.
OFTEN = 0.05 + 4 * math.sqrt(0.05 * 0.95 / RUNS)


def setup(noise: str = "normal", n: int = 10, runs: int = RUNS) -> Setup:
    return Setup(noise=noise, n=n, runs=runs, random=np.random.default_rng([SEED, n]))


@cache
def rates(noise: str) -> Mapping[tuple[str, str], Rate]:
    return {
        (rate.path, rate.figure): rate
        for rate in (*over_hosts(setup(noise)), *stopped(setup(noise, runs=RUNS * RUNS_SHARE)))
    }


@pytest.mark.parametrize("noise", ["normal", "bimodal"])
def test_no_claim_is_too_frequent_and_no_interval_too_narrow(noise: str) -> None:
    found = [rate for rate in rates(noise).values() if rate.required]
    assert len(found) > 100
    for rate in found:
        if rate.figure == "false":
            assert rate.estimate < OFTEN, rate
        else:
            assert rate.estimate > 1 - OFTEN, rate


def test_a_prediction_without_the_noise_of_a_measurement_would_be_seen() -> None:
    found = rates("normal")
    path = "5 hosts, tau 2 %: further, true"
    assert found[f"{path}, without noise", "covers"].estimate < 1 - OFTEN < found[path, "covers"].estimate


def test_blocks_counted_as_hosts_would_be_seen() -> None:
    """The interval for these hosts, taken for one of hosts like these: blocks of a host are not independent."""
    farm = Farm.of(setup(n=20), alike(5), 0.02)
    means, ratios = farm.ratios.mean(axis=1), farm.ratios.std(axis=1, ddof=1) / math.sqrt(20)
    assert float((np.abs(means) <= 2.093 * ratios).mean()) < 0.8


@pytest.mark.parametrize("kind", KINDS_OF_HOSTS[1:], ids=lambda kind: kind.name)
def test_what_is_calibrated_is_what_is_reported(kind: object) -> None:
    """The same intervals from the trials of a study."""
    assert kind in KINDS_OF_HOSTS
    case = Case({"kernel": ["a", "b"]}, blocks=20)
    farm = Farm.of(setup(n=20, runs=3), kind, 0.02)  # type: ignore[arg-type]
    means = farm.means(20)
    mean, reached, _ = farm.ahead(20, slice(None), confidence=CONFIDENCE)
    for run in range(3):
        ratios = farm.ratios[run]
        trials = [
            each.model_copy(update={"host": f"node-{farm.at[each.trial.block - 1]}"})
            for each in case.trials(
                tpm=lambda levels, block, ratios=ratios: math.exp(ratios[block - 1] if levels["kernel"] == "b" else 0)
            )
        ]
        over = analyse(case.plan(), trials).cells[0].comparisons["tpm"][0].over_hosts
        assert over is not None
        assert None not in (over.low, over.prediction_high)
        assert math.log(over.low or 0) == pytest.approx(float(means.mean[run] - means.reach(CONFIDENCE)[run]), rel=1e-6)
        assert math.log(over.prediction_high or 0) == pytest.approx(float((mean + reached)[run]), rel=1e-6)


def test_blocks_are_shared_out_by_weight_and_only_some_designs_are_simulated() -> None:
    assert np.bincount(KINDS_OF_HOSTS[3].at(20)).tolist() == [8, 4, 4, 2, 2]
    assert sorted(KINDS_OF_HOSTS[1].at(5).tolist()) == [0, 1, 2, 3, 4]
    assert 12 not in BLOCKS
    assert list(over_hosts(setup(n=12))) == list(stopped(setup(n=12))) == []
    assert {"hosts", "hosts-stopped"} <= set(PATHS)
