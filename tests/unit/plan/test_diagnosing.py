"""Diagnostic trials in a plan: after all others, of every arm and cell, ordered by chance, and moving nothing else."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable

import pytest
from rich.console import Console

from fairtrial import plan as planning
from fairtrial.cli.running import plan as command
from fairtrial.plan import costs, diagnosing
from fairtrial.record.models import Design, Plan

Make = Callable[..., Plan]
PROBES = "telemetry={probes: [perf_stat, {file: /proc/vmstat}], diagnostic_blocks: 3}"
CELLS = ["one", "two", "three", "four"]
ARMS = ["a", "b", "c"]


def design(order: str = "randomised_blocks", *, seed: int = 1, blocks: int = 5) -> Design:
    return Design.model_validate(
        {"blocks": blocks, "order": order, "seed": seed, "stop": "fixed", "margin": 0.02, "voided_limit": 1}
    )


def test_a_plan_without_probes_has_none_and_is_the_same_plan_with_them(make: Make) -> None:
    without, having = make(), make(overrides=[PROBES])
    assert (without.probes, without.diagnostics, without.diagnostic_duration_s) == ([], [], 0.0)
    assert having.trials == without.trials
    assert having.duration_s == without.duration_s
    assert [probe.kind for probe in having.probes] == ["perf_stat", "file"]


def test_every_arm_of_every_cell_gets_as_many_as_asked_and_each_is_marked(make: Make) -> None:
    plan = make(overrides=[PROBES])
    assert len(plan.diagnostics) == 3 * 4 * 2
    counted = Counter((trial.cell, trial.arm, trial.block) for trial in plan.diagnostics)
    assert set(counted.values()) == {1}
    assert {trial.block for trial in plan.diagnostics} == {1, 2, 3}
    assert all(trial.diagnostic for trial in plan.diagnostics)
    assert not any(trial.diagnostic for trial in plan.trials)


def test_names_are_their_own_and_slots_follow_the_last_trial(make: Make) -> None:
    plan = make(overrides=[PROBES])
    assert {trial.id for trial in plan.diagnostics}.isdisjoint(trial.id for trial in plan.trials)
    assert all(trial.id == f"{trial.cell}.d{trial.block:02d}.{trial.arm}" for trial in plan.diagnostics)
    assert [trial.position for trial in plan.diagnostics] == list(range(len(plan.trials), len(plan.trials) + 24))


def test_their_order_is_shuffled_as_rounds_are_and_repeats_with_the_seed() -> None:
    found = diagnosing.diagnostics(design(), blocks=20, cells=CELLS, arms=ARMS, position=0)
    assert found == diagnosing.diagnostics(design(), blocks=20, cells=CELLS, arms=ARMS, position=0)
    assert found != diagnosing.diagnostics(design(seed=2), blocks=20, cells=CELLS, arms=ARMS, position=0)
    first_arms = Counter(found[index].arm for index in range(0, len(found), len(ARMS)))
    assert set(first_arms) == set(ARMS), "no arm always goes first"
    orders = {tuple(trial.cell for trial in found if trial.round == round_) for round_ in range(1, 21)}
    assert len(orders) > 10, "cells are shuffled anew in each round"
    for start in range(0, len(found), len(ARMS)):  # a block is never torn
        assert len({(trial.cell, trial.block) for trial in found[start : start + len(ARMS)]}) == 1


def test_other_orders_of_the_design_are_kept() -> None:
    turned = diagnosing.diagnostics(design("abba"), blocks=2, cells=["all"], arms=["a", "b"], position=0)
    assert [trial.arm for trial in turned] == ["a", "b", "b", "a"]
    one_by_one = diagnosing.diagnostics(design("sequential"), blocks=2, cells=["all"], arms=["a", "b"], position=0)
    assert [trial.arm for trial in one_by_one] == ["a", "a", "b", "b"]


def test_arms_of_a_diagnostic_block_share_a_load_that_no_other_trial_has(make: Make) -> None:
    plan = make(overrides=[PROBES])
    by_block: dict[tuple[str, int], set[int]] = {}
    for trial in plan.diagnostics:
        by_block.setdefault((trial.cell, trial.block), set()).add(trial.seed)
    assert all(len(seeds) == 1 for seeds in by_block.values())
    assert len({seed for seeds in by_block.values() for seed in seeds}) == len(by_block)
    taken = {trial.seed for trial in plan.trials}
    for block in range(11, 21):  # what replacements of voided blocks would get
        again = planning.replacement(plan, cell=plan.cells[0].name, block=block, round_=block, position=0)
        taken |= {trial.seed for trial in again}
    assert taken.isdisjoint(trial.seed for trial in plan.diagnostics)


def test_none_asked_for_is_none() -> None:
    assert diagnosing.diagnostics(design(), blocks=0, cells=CELLS, arms=ARMS, position=7) == []


def test_their_time_and_disk_are_told_apart(make: Make) -> None:
    without, having = make(), make(overrides=[PROBES])
    each_s = without.duration_s / len(without.trials)  # all arms and cells of this study take equally long
    assert having.diagnostic_duration_s == pytest.approx(24 * each_s)
    assert having.disk_bytes - without.disk_bytes == 24 * costs.RECORD_BYTES_PER_DIAGNOSTIC


def test_an_aa_run_has_no_effect_to_explain(make: Make, small: object) -> None:
    found = planning.against_itself(make(overrides=[PROBES]), catalogue=small.SMALL)  # type: ignore[attr-defined]
    assert (found.probes, found.diagnostics, found.diagnostic_duration_s) == ([], [], 0.0)


def printed(plan: Plan) -> str:
    file = io.StringIO()
    Console(file=file, width=200, color_system=None).print(command.render(plan))
    return file.getvalue()


def test_the_printed_plan_names_them_their_probes_and_their_time(make: Make) -> None:
    plan = make(overrides=[PROBES])
    text = printed(plan)
    about = command.duration(plan.diagnostic_duration_s)
    assert (
        f"24 diagnostic trials after them, about {about} more, excluded from estimates, each with perf stat, file"
        in text
    )
    for trial in plan.diagnostics:
        row = [str(trial.position), str(trial.block), re.escape(trial.cell), trial.arm, str(trial.seed)]
        assert re.search(rf"(?m)^ *{' +'.join(row)} *$", text)
    assert f"{len(plan.trials)} trials (" in text, "the count of trials is of those that estimates use"


def test_the_printed_plan_of_a_study_without_probes_says_nothing_of_them(make: Make) -> None:
    assert "diagnostic" not in printed(make())
