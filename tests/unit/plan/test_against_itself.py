"""An A/A plan: two labels of one resolved trial, in as many blocks, in an order as random as any plan's."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from fairtrial import plan as planning
from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.cli.running import plan as plan_command
from fairtrial.record.models import Plan

STUDY = Path(__file__).parents[3] / "studies" / "sqlite-wal.yaml"


def plans(*overrides: str) -> tuple[Plan, Plan]:
    known = catalogue()
    plan = planning.make(study.load(STUDY, catalogue=known, overrides=overrides), catalogue=known)
    return plan, planning.against_itself(plan, catalogue=known)


def test_both_arms_are_the_baseline_in_every_cell() -> None:
    plan, aa = plans()
    assert aa.against_itself
    assert not plan.against_itself
    assert aa.factors["journal"] == ["delete", "delete-again"]
    for cell, arms in aa.resolved.items():
        assert arms["delete"] == arms["delete-again"] == plan.resolved[cell]["delete"]
    assert aa.differences == []


def test_every_block_holds_both_labels_once_and_which_is_first_varies() -> None:
    _, aa = plans()
    by_block: dict[tuple[str, int], list[str]] = {}
    for trial in aa.trials:
        by_block.setdefault((trial.cell, trial.block), []).append(trial.arm)
    assert len(by_block) == 2 * 7
    assert all(sorted(arms) == ["delete", "delete-again"] for arms in by_block.values())
    assert {arms[0] for arms in by_block.values()} == {"delete", "delete-again"}
    assert [trial.position for trial in aa.trials] == list(range(28))
    assert len({trial.id for trial in aa.trials}) == 28


def test_the_labels_of_a_block_share_a_seed_and_a_replacement_has_both() -> None:
    _, aa = plans()
    seeds = {(trial.cell, trial.block): trial.seed for trial in aa.trials}
    assert all(trial.seed == seeds[trial.cell, trial.block] for trial in aa.trials)
    added = planning.replacement(aa, cell="alone", block=8, round_=8, position=28)
    assert sorted(trial.arm for trial in added) == ["delete", "delete-again"]


def test_the_plan_says_that_it_is_one_and_keeps_its_own_file_form() -> None:
    _, aa = plans()
    assert any(re.match("A/A", warning) for warning in aa.warnings)
    assert Plan.model_validate_json(aa.model_dump_json()) == aa


EARLY_STOPS = (
    ("trials.stop=sequential", "trials.spending=obrien_fleming", "trials.time_budget=10min"),
    ("trials.stop=anytime", "trials.equivalence=false", "trials.futility=true"),
    ("trials.stop=precision", "trials.precision=1%", "trials.min_blocks=5"),
)


@pytest.mark.parametrize("overrides", EARLY_STOPS, ids=lambda each: each[0])
def test_a_study_that_may_stop_early_runs_every_block_against_itself_and_is_shown_so(overrides: Sequence[str]) -> None:
    _, fixed = plans()
    plan, aa = plans(*overrides)
    assert plan.design.min_blocks is not None
    assert aa.design == fixed.design
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(plan_command.render(aa))
    text = console.export_text()
    assert "7 blocks per cell" in text
    assert "stops  " not in text
    assert "at most 28" not in text
