"""How `fairtrial plan` says durations, sizes, differences and stopping rules."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console
from support.inference.analysis_cases import Case
from support.records import tiny_plan

from fairtrial.cli.running.plan import render
from fairtrial.record.models import Difference, Plan, RangeExpectation
from fairtrial.words import duration, size

SECONDS_PER_HOUR = 3600


def printed(plan: Plan, *, width: int = 160, detectable: str = "") -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False).print(render(plan, detectable=detectable))
    return stream.getvalue()


def line(text: str, begins: str) -> str:
    (found,) = [each for each in text.splitlines() if each.startswith(begins)]
    return " ".join(found.removeprefix(begins).split())


def designed(**design: Any) -> Plan:
    plan = Case({"kernel": ["base", "new"], "memory": ["under", "over"]}, blocks=10).plan()
    return plan.model_copy(update={"design": plan.design.model_copy(update=design)})


def sequential(**design: Any) -> Plan:
    given = {"stop": "sequential", "min_blocks": 4, "spending": "pocock", "futility": True, "equivalence": True}
    return designed(**{**given, **design})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (45.2, "45 s"),
        (119, "119 s"),
        (120, "2 min"),
        (90 * 60, "90 min"),
        (2 * SECONDS_PER_HOUR - 1, "120 min"),
        (2 * SECONDS_PER_HOUR, "2 h 00 min"),
        (3 * SECONDS_PER_HOUR + 20 * 60, "3 h 20 min"),
        (3 * SECONDS_PER_HOUR - 1, "3 h 00 min"),
        (100 * SECONDS_PER_HOUR + 59 * 60, "100 h 59 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        ((1 << 20) - 1, "1024.0 KiB"),
        (1 << 20, "1.0 MiB"),
        (3 << 30, "3.0 GiB"),
        (5 << 40, "5120.0 GiB"),
    ],
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text


def test_a_fixed_design_says_its_blocks_and_how_many_may_be_replaced() -> None:
    said = printed(tiny_plan())
    assert line(said, "design ").startswith("randomised_blocks, 2 blocks per cell, seed 1, margin 2%, confidence 95%")
    assert "at most 1 voided block replaced per cell" in said
    assert "stops" not in said


def test_one_block_is_one_block() -> None:
    assert "1 block per cell" in printed(designed(blocks=1))


@pytest.mark.parametrize(
    ("design", "said"),
    [
        ({}, "cell by cell after each round, pocock spending"),
        ({"spending": "obrien_fleming"}, "cell by cell after each round, obrien fleming spending"),
        ({"futility": False}, "cell by cell after each round, pocock spending, never for futility"),
        (
            {"futility": False, "equivalence": False},
            "cell by cell after each round, pocock spending, never for futility or equivalence",
        ),
        ({"time_budget_s": 7200.0}, "cell by cell after each round, pocock spending, within 2 h 00 min"),
        ({"stop": "anytime", "spending": None}, "cell by cell after each round, always-valid intervals"),
        (
            {"stop": "precision", "spending": None, "futility": False, "precision": 0.015},
            "once the interval reaches ± 1.5%",
        ),
    ],
)
def test_a_rule_is_said_in_a_line(design: dict[str, Any], said: str) -> None:
    assert line(printed(sequential(**design)), "stops") == said


def test_a_run_that_may_stop_early_says_its_least_and_its_most() -> None:
    plan = sequential(min_blocks=4)
    said = printed(plan)
    assert "4 to 10 blocks per cell" in said
    assert f"shortest duration {duration(plan.duration_s * 0.4)}, 4 blocks per cell" in said
    assert f"longest {duration(plan.duration_s)}" in said
    assert f"at most {len(plan.trials)} trials (2 cells × 10 blocks × 2 arms)" in said


def test_a_time_budget_bounds_the_longest_duration() -> None:
    plan = sequential()
    half = plan.duration_s / 2
    assert f"longest {duration(half)}" in printed(sequential(time_budget_s=half))
    assert f"longest {duration(plan.duration_s)}" in printed(sequential(time_budget_s=100 * plan.duration_s))


def test_a_time_budget_below_the_first_decision_says_that_nothing_can_be_claimed() -> None:
    plan = sequential(min_blocks=4).model_copy(update={"duration_s": 1000.0})
    for budget_s, ran in ((1.0, "expected duration 100 s, 1 block"), (350.0, "expected duration 5 min, 3 blocks")):
        said = printed(plan.model_copy(update={"design": plan.design.model_copy(update={"time_budget_s": budget_s})}))
        assert f"{ran} per cell: the time budget ends the run before its first decision, which takes 4 blocks" in said
        assert "shortest" not in said
    enough = plan.design.model_copy(update={"time_budget_s": 400.0})
    said = printed(plan.model_copy(update={"design": enough}))
    assert f"shortest duration {duration(400)}, 4 blocks per cell; longest {duration(400)}" in said
    assert f"expected duration {duration(400)}, 4.0 blocks per cell" in said


def test_a_fixed_run_has_one_duration_and_calls_it_an_estimate() -> None:
    plan = tiny_plan()
    assert f"expected duration {duration(plan.duration_s)}, estimated before any measurement" in printed(plan)


def test_what_differs_has_a_column_per_arm_and_says_where_one_sets_nothing() -> None:
    differences = [
        Difference(path="system.mariadb.options.x", values={"a": 1, "b": None}),
        Difference(path="settings.lru_gen", values={"b": [1, 2]}),
    ]
    said = printed(tiny_plan().model_copy(update={"differences": differences}))
    rows = [each.split() for each in said.splitlines()]
    assert ["path", "a", "b"] in rows
    assert ["system.mariadb.options.x", "1", "(none)"] in rows
    assert ["settings.lru_gen", "(not", "set)", "[1,", "2]"] in rows


def test_a_run_against_itself_has_no_differences_to_show() -> None:
    said = printed(tiny_plan().model_copy(update={"against_itself": True}))
    assert "an A/A run, whose differences are the place's noise floor" in said
    assert "what differs" not in said


def test_expectations_warnings_and_what_can_be_detected_are_said() -> None:
    expected = RangeExpectation(factor="memory", level="over", metric="swapped", low=0.1, high=None, text="10 %..")
    plan = tiny_plan().model_copy(update={"expectations": [expected], "warnings": ["this differs in two things"]})
    said = printed(plan, detectable="detectable ± 3 %")
    baseline = plan.factors[plan.arm][0]
    assert line(said, "expected  ") == f"swapped 10 %.. where memory is over, with {plan.arm} {baseline}"
    assert "warning: this differs in two things" in said
    assert said.index("detectable ± 3 %") < said.index("warning: ")


def test_markup_of_a_study_is_text_and_no_colour() -> None:
    plan = tiny_plan().model_copy(update={"question": "Is [bold]b[/bold] faster than [/]?"})
    assert "Is [bold]b[/bold] faster than [/]?" in printed(plan)


def test_every_trial_stands_whole_in_a_narrow_terminal() -> None:
    plan = tiny_plan()
    trials = [trial.model_copy(update={"seed": 2**63 + trial.position}) for trial in plan.trials]
    said = printed(plan.model_copy(update={"trials": trials}), width=80)
    for trial in trials:
        assert str(trial.seed) in said
    assert trials[0].id in said


def test_roles_are_said_with_unit_and_better_direction() -> None:
    assert line(printed(tiny_plan()), "primary") == "elapsed_s [s, lower is better]"
    assert "secondary" not in printed(tiny_plan())


def test_the_first_level_is_called_the_baseline() -> None:
    plan = Case({"kernel": ["base", "new", "newer"]}, blocks=3).plan()
    assert line(printed(plan), "arm  ") == "kernel: base (baseline) against new, newer"


def test_a_design_is_said_with_every_figure_that_judges() -> None:
    said = line(printed(designed(margin=0.035, confidence=0.9, seed=77)), "design ")
    assert said.endswith("seed 77, margin 3.5%, confidence 90%")
