"""Studies with covariates: estimates beside the plain ones, or in their place, and what is left out and doubted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import get_args

import numpy as np
import pytest
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.doubts import covariates as covariate_doubts
from fairtrial.analyse.models import Analysis, Comparison
from fairtrial.metrics.covariates import LABELS
from fairtrial.protocol.generated import Covariates
from fairtrial.record.models import Plan, TrialRecord
from fairtrial.study.file_model import Covariate

LOOP, BOOT, CLOCK = "calibration_loop_ns", "time_since_boot_s", "processor_frequency_hz"
BLOCKS = 12
GAIN = 1.02
RANDOM = np.random.default_rng(22)
# By arm and block: how slow the place is, which the loop sees, and what nothing sees.
SLOW, REST = RANDOM.normal(0, 0.03, (2, BLOCKS + 1)), RANDOM.normal(0, 0.005, (2, BLOCKS + 1))


def of(levels: Mapping[str, str], block: int) -> tuple[int, int]:
    return ("a", "b").index(levels["kernel"]), block


def tpm(levels: Mapping[str, str], block: int) -> float:
    at = of(levels, block)
    return float(1000 * np.exp(REST[at] - SLOW[at]) * (GAIN if at[0] else 1.0))


def loop(levels: Mapping[str, str], block: int) -> float:
    return float(3e7 * np.exp(SLOW[of(levels, block)]))


def boot(levels: Mapping[str, str], block: int) -> float:
    return 100.0 + 10 * block + 5 * (of(levels, block)[0] ^ block % 2)


def case(blocks: int = BLOCKS) -> Case:
    roles = {"primary": ["tpm"], "secondary": ["p99"]}
    return Case({"kernel": ("a", "b"), "load": ("low", "high")}, blocks=blocks, roles=roles)


def plan(*covariates: str, adjust: bool = False, blocks: int = BLOCKS) -> Plan:
    bare = case(blocks).plan()
    update = {"covariates": list(covariates), "adjust": adjust}
    return bare.model_copy(update={"metrics": bare.metrics.model_copy(update=update)})


def trials(blocks: int = BLOCKS) -> list[TrialRecord]:
    return case(blocks).trials(tpm=tpm, p99=tpm, **{LOOP: loop, BOOT: boot, CLOCK: lambda _levels, _block: 2.4e9})


def compared(analysis: Analysis, metric: str = "tpm") -> Comparison:
    (comparison,) = analysis.cells[0].comparisons[metric]
    return comparison


def test_a_covariate_that_sees_the_noise_narrows_the_interval_beside_the_plain_one() -> None:
    plain, found = compared(analyse(plan(), trials())), compared(analyse(plan(LOOP), trials()))
    assert found.model_copy(update={"covariates": None}) == plain
    adjusted = found.covariates
    assert adjusted is not None
    assert (adjusted.plain_ratio, adjusted.plain_low) == pytest.approx((plain.ratio.estimate, plain.ratio.low))
    assert adjusted.ratio == pytest.approx(GAIN, rel=0.01)
    assert (adjusted.width or 1) < 0.4
    assert adjusted.df == BLOCKS - 2
    assert (adjusted.explained or 0) > 0.9
    assert adjusted.covariates[0].slope == pytest.approx(-1, abs=0.2)
    assert not adjusted.decides


def test_only_primary_metrics_are_adjusted() -> None:
    assert compared(analyse(plan(LOOP), trials()), "p99").covariates is None


def test_chosen_before_the_run_the_adjusted_estimate_decides() -> None:
    beside, deciding = (compared(analyse(plan(LOOP, adjust=each), trials())) for each in (False, True))
    adjusted = deciding.covariates
    assert adjusted is not None
    assert beside.covariates == adjusted.model_copy(update={"decides": False})
    assert (beside.verdict, deciding.verdict) == ("undecided", "faster")
    ratio = deciding.ratio
    assert (ratio.estimate, ratio.low, ratio.high) == pytest.approx((adjusted.ratio, adjusted.low, adjusted.high))
    assert deciding.p >= (adjusted.p or 0)  # held against exact tests
    assert deciding.method.endswith("adjusted for covariates")
    assert (deciding.difference, deciding.welch) == (beside.difference, beside.welch)


def test_what_does_not_vary_of_its_own_is_left_out() -> None:
    adjusted = compared(analyse(plan(CLOCK, LOOP), trials())).covariates
    alone = compared(analyse(plan(LOOP), trials())).covariates
    assert adjusted is not None
    assert alone is not None
    assert [each.left_out for each in adjusted.covariates] == ["does_not_vary", ""]
    assert (adjusted.ratio, adjusted.df) == (alone.ratio, alone.df)


def test_a_covariate_that_one_trial_lacks_is_left_out() -> None:
    first, *others = trials()
    lacking = first.model_copy(update={"scalars": {**first.scalars, LOOP: float("nan")}})
    adjusted = compared(analyse(plan(LOOP, adjust=True), [lacking, *others])).covariates
    assert adjusted is not None
    assert [each.left_out for each in adjusted.covariates] == ["missing"]
    assert (adjusted.reason, adjusted.ratio) == ("no_covariate", None)


@pytest.mark.parametrize(("blocks", "reason"), [(5, ""), (4, "few_blocks")])
def test_few_blocks_stay_plain(blocks: int, reason: str) -> None:
    found = compared(analyse(plan(LOOP, adjust=True, blocks=blocks), trials(blocks)))
    assert found.covariates is not None
    assert found.covariates.reason == reason
    assert found.method.endswith("adjusted for covariates") is not bool(reason)


@pytest.mark.parametrize("adjust", [False, True])
def test_values_known_by_class_stay_plain(adjust: bool) -> None:  # noqa: FBT001
    """Least squares knows no classes: an adjusted interval would be too narrow, as a plain one without them is."""
    own = Case({"kernel": ("a", "b")}, blocks=BLOCKS, roles={"primary": ["latency_ns_p95"]})
    update = {"covariates": [LOOP], "adjust": adjust}
    planned = own.plan()
    planned = planned.model_copy(update={"metrics": planned.metrics.model_copy(update=update)})

    def p95(levels: Mapping[str, str], block: int) -> float:
        return 100_000.0 + 100 * (block % 3 == 0) + (200 if levels["kernel"] == "b" else 0)

    (found,) = analyse(planned, own.trials(latency_ns_p95=p95, **{LOOP: loop})).cells[0].comparisons["latency_ns_p95"]
    assert found.method.endswith("known by class")
    assert found.covariates is not None
    assert (found.covariates.reason, found.covariates.width, found.covariates.p) == ("by_class", None, None)
    assert (found.covariates.plain_low, found.covariates.plain_high) == (found.ratio.low, found.ratio.high)
    assert [each.slope for each in found.covariates.covariates] == [None]


def test_an_arm_that_moves_a_covariate_is_doubted() -> None:
    def slower(levels: Mapping[str, str], block: int) -> float:
        return loop(levels, block) * (1.1 if levels["kernel"] == "b" else 1.0)

    moved, still = (
        compared(analyse(plan(LOOP), case().trials(tpm=tpm, p99=tpm, **{LOOP: by}))) for by in (slower, loop)
    )
    assert [doubt.code for doubt in moved.doubts].count("covariate_moved") == 1
    assert "covariate_moved" not in [doubt.code for doubt in still.doubts]


def test_a_study_without_covariates_has_no_trace_of_them() -> None:
    said = analyse(plan(), trials()).model_dump_json() + plan().model_dump_json()
    assert "covariates" not in said
    assert '"adjust"' not in said
    assert json.loads(plan(LOOP).model_dump_json())["metrics"]["covariates"] == [LOOP]


def test_every_covariate_has_a_label() -> None:
    assert set(LABELS) == set(Covariates.model_fields) == set(get_args(Covariate))


@pytest.mark.parametrize(("p", "said"), [(0.0, True), (0.0099, True), (0.01, False), (None, False)])
def test_a_covariate_is_doubted_below_one_percent_and_down_to_a_p_of_nothing(*, p: float | None, said: bool) -> None:
    found = compared(analyse(plan(LOOP), trials()))
    assert found.covariates is not None
    effects = tuple(each.model_copy(update={"p_shift": p}) for each in found.covariates.covariates)
    moved = found.model_copy(update={"covariates": found.covariates.model_copy(update={"covariates": effects})})
    assert [doubt.code for doubt in covariate_doubts.about(moved)] == ["covariate_moved"] * said
