"""Matrices against published ones, what they cannot tell apart, and their trials."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from support.inference.schedules import finished, replacement

from fairtrial import plan as planning
from fairtrial.errors import InputError
from fairtrial.plan import screening
from fairtrial.record.models import BlockAdded, Plan
from fairtrial.run.schedule import Schedule

PUBLISHED_12 = "++-+++---+-"  # Plackett and Burman (1946), design for N = 12: its cyclic shifts, and a row of all -


def test_twelve_rows_are_the_published_ones() -> None:
    published = {PUBLISHED_12[at:] + PUBLISHED_12[:at] for at in range(11)} | {"-" * 11}
    codes = screening.matrix("plackett_burman", 11)
    assert {"".join("-+"[code > 0] for code in row[::-1]) for row in codes.tolist()} == published
    assert not (codes.T @ codes - 12 * np.eye(11)).any()


def test_twelve_rows_hold_a_third_of_every_other_interaction() -> None:
    names = [f"o{n}" for n in range(11)]
    for each in screening.aliasing(screening.matrix("plackett_burman", 11), names).values():
        assert (each.whole, each.partial, each.share) == ([], 45, pytest.approx(1 / 3))


@pytest.mark.parametrize("options", [*range(24, 28), *range(32, 36), *range(40, 44), *range(48, 60), 63])
def test_a_size_that_has_no_matrix_takes_the_next_one(options: int) -> None:
    codes = screening.matrix("plackett_burman", options)
    assert codes.shape[1] == options
    assert not (codes.T @ codes - len(codes) * np.eye(options)).any()
    assert not codes.sum(axis=0).any()
    assert (codes == -1).all(axis=1).sum() == 1  # the baseline is one of its rows


def test_fifteen_options_in_sixteen_rows_cannot_be_told_from_seven_interactions_each() -> None:
    names = [f"o{n}" for n in range(15)]
    aliases = screening.aliasing(screening.matrix("plackett_burman", 15), names)
    assert {len(each.whole) for each in aliases.values()} == {7}
    assert aliases["o0"].whole[0] == "-o1 × o2"


@pytest.mark.parametrize(("design", "options", "rows"), [("fractional", 15, 32), ("plackett_burman", 11, 24)])
def test_resolution_four_keeps_interactions_out_of_main_effects(design: str, options: int, rows: int) -> None:
    codes = screening.matrix(design, options, fold=design == "plackett_burman")
    assert codes.shape == (rows, options)
    for first, second in combinations(range(options), 2):
        assert not (codes.T @ (codes[:, first] * codes[:, second])).any()


def test_a_fraction_names_its_generators() -> None:
    """2^(7-3) of resolution IV (Box, Hunter and Hunter 2005, table 6.22): every generator has three letters."""
    codes = screening.matrix("fractional", 7)
    assert codes.shape == (16, 7)
    assert screening.generators(codes, "abcdefg") == ["e = a × b × c", "f = a × b × d", "g = a × c × d"]


def test_a_definitive_design_has_neither_interactions_nor_curvature_in_its_effects() -> None:
    """Jones and Nachtsheim (2011): six options of three levels in thirteen rows, mirror images and one centre."""
    codes = screening.matrix("definitive", 6)
    assert codes.shape == (13, 6)
    assert {tuple(row) for row in codes.tolist()} == {tuple(row) for row in (-codes).tolist()}
    assert ((codes == 0).sum(axis=0) == 3).all()
    for first in range(6):
        for second in range(first, 6):
            assert not (codes.T @ (codes[:, first] * codes[:, second])).any()


@pytest.fixture
def plan(make: Callable[..., Plan]) -> Plan:
    return make(SCREENING)


SCREENING = """
study: screened
system: {mariadb: {}}
workload: {tpcc: {duration: 60s}}
factors:
  users: {few: {}, many: {workload: {tpcc: {virtual_users: 8}}}}
  scale: {small: {}, large: {workload: {tpcc: {warehouses: 2}}}}
  flush: {safe: {}, fast: {system: {mariadb: {options: {innodb_flush_log_at_trx_commit: 2}}}}}
trials: {design: plackett_burman, blocks: 2}
metrics: {primary: throughput_tpm}
"""


def test_rows_are_arms_of_merged_overlays(plan: Plan) -> None:
    assert plan.screening is not None
    assert (plan.arm, plan.factors) == ("row", {"row": ["r1", "r2", "r3", "r4"]})
    assert plan.screening.rows["r4"] == [-1, -1, -1]
    assert plan.screening.levels("r1") == {"users": "many", "scale": "large", "flush": "safe"}
    tpcc = plan.resolved["all"]["r1"].workload.parameters
    assert isinstance(tpcc, dict)
    assert (tpcc["virtual_users"], tpcc["warehouses"]) == (8, 2)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_a_plan_without_a_screening_says_nothing_of_one(make: Callable[..., Plan]) -> None:
    assert "screening" not in make().model_dump()


def test_every_trial_is_a_block_and_rows_of_a_replicate_share_the_loads_seed(plan: Plan) -> None:
    assert [trial.block for trial in plan.trials] == list(range(1, 9))
    for replicate in (1, 2):
        own = [trial for trial in plan.trials if trial.round == replicate]
        assert sorted(trial.arm for trial in own) == ["r1", "r2", "r3", "r4"]
        assert len({trial.seed for trial in own}) == 1
    assert plan.trials[0].seed != plan.trials[-1].seed


def test_a_lost_row_is_run_again_alone_at_the_end_of_its_replicate(plan: Plan) -> None:
    schedule = Schedule(plan=plan, replacement=replacement)
    order: list[str] = []
    added: list[BlockAdded] = []
    lost = plan.trials[3]  # the last of the first replicate
    while (trial := schedule.next_trial()) is not None:
        order.append(trial.id)
        schedule.apply(finished(trial.id, valid=trial.id != lost.id))
        while owed := schedule.repairs():
            for event in owed:
                schedule.apply(event)
                added += [event] if isinstance(event, BlockAdded) else []
    assert order == [
        *(trial.id for trial in plan.trials[:4]),
        f"all.b09.{lost.arm}",
        *(trial.id for trial in plan.trials[4:]),
    ]
    (again,) = added[0].trials
    assert (again.arm, again.round, again.seed, again.block) == (lost.arm, 1, lost.seed, 9)


def test_a_screening_cannot_run_against_itself(plan: Plan) -> None:
    with pytest.raises(InputError, match="no baseline arm"):
        planning.against_itself(plan, catalogue=None)  # type: ignore[arg-type]


def test_aliasing_in_words(plan: Plan) -> None:
    assert plan.screening is not None
    said = list(screening.sentences(plan.screening))
    assert said[0] == ("3 options in 4 rows, resolution III: main effects are mixed with interactions of two options.")
    assert "The effect of users cannot be told from -scale × flush." in said
