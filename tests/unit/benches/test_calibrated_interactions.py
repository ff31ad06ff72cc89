"""A short calibration of interactions with fixed seeds, and that careless tests would be seen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
from calibrated_interactions import BLOCKS, fixed, in_rounds, layouts, ratios, stopped
from calibrated_paths import Rate, Setup
from calibrated_stopping import RUNS_SHARE
from calibration import PATHS
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.designs.contrasts import GroupMeans

RUNS = 1000
# A true 5 % of 1,000 runs stays below this in all but one of 30,000 rates, and 95 % stays above its mirror image.
OFTEN = 0.05 + 4 * math.sqrt(0.05 * 0.95 / RUNS)


def setup(n: int, *, runs: int = RUNS) -> Setup:
    return Setup(noise="normal", n=n, runs=runs, random=np.random.default_rng([1, n]))


@cache
def rates() -> Mapping[tuple[str, str], Rate]:
    found = [*fixed(setup(10)), *in_rounds(setup(10)), *stopped(setup(10, runs=RUNS * RUNS_SHARE))]
    return {(rate.path, rate.figure): rate for rate in found}


def test_no_claim_is_too_frequent_and_no_interval_too_narrow() -> None:
    required = [rate for rate in rates().values() if rate.required]
    assert len(required) > 30
    for rate in required:
        if rate.figure == "false":
            assert rate.estimate < OFTEN, rate
        else:
            assert rate.estimate > 1 - OFTEN, rate


@pytest.mark.parametrize(
    "careless",
    [
        "interaction, 3 levels, few and loud: classical F",
        "interaction, another factor than the arm: as if independent",
        "interaction, Pocock, futility, 2 levels, arm differs by 1.5 %: as if not looked",
    ],
)
def test_careless_tests_would_be_seen(careless: str) -> None:
    careful = rates()[careless.rpartition(":")[0], "false"]
    assert careful.estimate < OFTEN < rates()[careless, "false"].estimate


def test_what_is_calibrated_is_what_is_reported() -> None:
    layout = next(each for each in layouts() if each.name == "2 × 3 cells, half loud")
    values = ratios(setup(6, runs=2), layout)
    case = Case({"kernel": ("a", "b"), "memory": ("0", "1"), "users": ("0", "1", "2")}, blocks=6)
    found = GroupMeans.independent(list(np.moveaxis(values, 1, 0)))
    for run in range(2):

        def value(levels: Mapping[str, str], block: int, own: object = values[run]) -> float:
            at = 3 * int(levels["memory"]) + int(levels["users"])
            return math.exp(own[at][block - 1]) if levels["kernel"] == "b" else 1.0  # type: ignore[index]

        tests = analyse(case.plan(), case.trials(tpm=value)).interactions
        assert [each.p for each in tests] == pytest.approx(
            [float(found.joint(weights).p[run]) for weights in layout.weights], rel=1e-6
        )


def test_only_some_designs_are_simulated() -> None:
    assert 12 not in BLOCKS
    assert [*fixed(setup(12)), *in_rounds(setup(12)), *stopped(setup(12))] == []
    assert {"interactions", "interactions-rounds", "interactions-stopped"} <= set(PATHS)
