"""Cells that share boots: what a boot changes is in the trials of all of them, and is counted once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.doubts import order as order_doubts
from fairtrial.analyse.doubts import runs as run_doubts
from fairtrial.analyse.measured import ArmValues


def groups(boots: np.ndarray, *, cells: Sequence[int], noise: np.ndarray) -> list[tuple[str, ArmValues]]:
    """Of two arms that boot in turns: `boots` has shape (2, blocks), `cells` how many blocks each has."""
    found = []
    for cell, n in enumerate(cells):
        for arm, own in enumerate(boots):
            values = np.exp(7 + own[:n] + noise[cell, arm, :n])
            positions = tuple((2 * block + arm) * len(cells) + cell for block in range(n))
            found.append((f"c{cell}", ArmValues("ab"[arm], values, tuple(range(n)), positions, absent=0)))
    return found


def together(of: Sequence[tuple[str, ArmValues]]) -> run_doubts.Groups:
    return run_doubts.of_boots(of, [each.arm for _, each in of])


def test_boots_at_random_are_seldom_called_drifting_or_sorted_whatever_cells_share_them() -> None:
    random, drifts, sorts, apart = np.random.default_rng(3), 0, 0, 0
    for _ in range(300):
        drawn = groups(random.normal(0, 0.03, (2, 4)), cells=[4] * 6, noise=random.normal(0, 0.003, (6, 2, 4)))
        drifts += any(run_doubts.drift("tpm", together(drawn), unit="", advice=""))
        sorts += any(run_doubts.sorted_values("tpm", together(drawn)))
        apart += any(run_doubts.drift("tpm", drawn, unit="", advice=""))
    assert (drifts <= 9, sorts) == (True, 0), "of 300, 3 and 0.3 expected"
    assert apart > 60, "as trials of their own"


def test_the_value_of_a_boot_is_the_mean_of_its_trials_at_their_time() -> None:
    boots = np.log([[100.0, 110, 120, 130], [100.0, 100, 100, 100]])
    noise = np.stack([np.full((2, 4), 0.1), np.full((2, 4), -0.3), np.full((2, 4), 0.2)])
    (label, first), (_, second) = together(groups(boots, cells=[4, 4, 4], noise=noise))
    assert (label, first.arm, first.blocks, first.positions) == ("boots of", "a", (0, 1, 2, 3), (1, 7, 13, 19))
    assert first.values == pytest.approx(np.exp(7) * np.exp(boots[0]), rel=1e-12)
    assert np.ptp(second.values) == 0, "rounding makes no order of equal values"


def test_a_cell_that_stopped_early_is_left_out_and_one_cell_is_as_it_was() -> None:
    random = np.random.default_rng(1)
    boots, noise = random.normal(0, 0.03, (2, 10)), random.normal(0, 0.01, (3, 2, 10))
    drawn = groups(boots, cells=[10, 3, 10], noise=noise)
    longest = [group for group in drawn if group[0] != "c1"]
    assert [each.values.tolist() for _, each in together(drawn)] == [
        each.values.tolist() for _, each in together(longest)
    ]
    assert list(together(drawn[:2])) == drawn[:2]
    assert not together(groups(boots, cells=[2, 2], noise=noise)), "two boots show no order"


def test_values_without_logarithm_are_averaged_as_they_are() -> None:
    huge = ArmValues("a", np.array([-1.7e308, 0, 1.7e308]), (1, 2, 3), (1, 2, 3), absent=0)
    ((_, found),) = together([("x", huge), ("y", huge)])
    assert found.values.tolist() == huge.values.tolist()


@pytest.mark.parametrize("contrast", ["kernel", "load"])
def test_a_run_whose_arms_boot_once_in_a_round_counts_boots(contrast: str) -> None:
    case = Case({"kernel": ["base", "patched"], "load": ["few", "some", "many"]}, blocks=8)
    random = np.random.default_rng(2)
    drift = {(kernel, block): 10 * block + random.normal() for kernel in ("base", "patched") for block in range(1, 9)}
    trials = case.trials(tpm=lambda levels, block: 1000 + drift[levels["kernel"], block])
    design = case.plan().design.model_copy(update={"reboot": "between_blocks"})
    found = analyse(case.plan().model_copy(update={"design": design}), trials, contrast=contrast)
    said = {doubt.code: doubt.message for doubt in found.doubts}
    assert "16 boots around their groups' means" in said["drift"]
    assert "in 2 of 2 groups (boots of base, boots of patched)" in said["sorted"]
    apart = {doubt.code: doubt.message for doubt in analyse(case.plan(), trials, contrast=contrast).doubts}
    assert "48 trials around their groups' means" in apart["drift"]


def test_an_order_that_all_cells_share_is_counted_once() -> None:
    def cells(n: int) -> list[list[ArmValues]]:
        of = groups(np.zeros((2, n)), cells=[n] * 6, noise=np.zeros((6, 2, n)))
        return [[each for cell, each in of if cell == f"c{number}"] for number in range(6)]

    assert [*order_doubts.fixed_slots("tpm", cells(4))]
    assert not [*order_doubts.fixed_slots("tpm", cells(4), in_step=True)], "one run in eight has such an order"
    (doubt,) = order_doubts.fixed_slots("tpm", cells(12), in_step=True)
    assert "b runs after a" in doubt.message
