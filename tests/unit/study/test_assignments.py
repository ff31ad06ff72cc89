from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.study.assignments import AT, overlays
from fairtrial.study.tree.nodes import dotted, leaves, plain
from fairtrial.study.tree.problems import Problems

parts = st.from_regex(r"[a-z][a-z0-9_.-]{0,6}[a-z0-9]", fullmatch=True)


def overlaid(assignment: str) -> Any:
    problems = Problems()
    found = overlays([assignment], problems)
    problems.raise_if_any()
    return plain(found[0])


@pytest.mark.parametrize(
    ("assignment", "overlay"),
    [
        ("trials.blocks=2", {"trials": {"blocks": 2}}),
        ("trials.margin=2 %", {"trials": {"margin": "2 %"}}),
        ("settings.lru_gen=on", {"settings": {"lru_gen": "on"}}),
        ('settings.sysctl."vm.swappiness"=10', {"settings": {"sysctl": {"vm.swappiness": 10}}}),
        ("question=is a = b?", {"question": "is a = b?"}),
        ("expect=", {"expect": None}),
        ("expect=null", {"expect": None}),
        ("place={vm: {memory: 1GiB}}", {"place": {"vm": {"memory": "1GiB"}}}),
        ("also_compare=[a, b]", {"also_compare": ["a", "b"]}),
    ],
)
def test_an_assignment_is_an_overlay(assignment: str, overlay: dict[str, Any]) -> None:
    assert overlaid(assignment) == overlay


@given(path=st.lists(parts, min_size=1, max_size=5), value=st.integers())
def test_any_path_that_messages_print_can_be_set(path: list[str], value: int) -> None:
    result = overlaid(f"{dotted(path)}={value}")
    for part in path:
        result = result[part]
    assert result == value


@pytest.mark.parametrize("assignment", ["", "=", "trials", "trials.=2", ".trials=2", "a b=2", 'a."b=2', "a..b=2"])
def test_what_is_no_assignment_is_noted_and_left_out(assignment: str) -> None:
    problems = Problems()
    assert overlays([assignment, "a=1"], problems) == overlays(["a=1"], Problems())
    assert [problem.file for problem in problems] == ["--set"]
    assert f"found `{assignment}`" in str(next(iter(problems)))


def test_values_stand_on_the_command_line_and_nowhere_else() -> None:
    found = overlays(["a={b: [1, {c: 2}]}"], Problems())[0]
    assert {node.at for _, node in leaves(found)} == {AT}
    assert found.where("a") == AT
    assert found.tree("a").where("b") == AT


@pytest.mark.parametrize(
    ("assignment", "field"), [("trials.margin=.nan", "trials.margin"), ('a."b.c"={d: [.nan]}', 'a."b.c".d.0')]
)
def test_a_value_that_cannot_be_read_is_noted_with_its_path_and_left_out(assignment: str, field: str) -> None:
    problems = Problems()
    assert overlays([assignment], problems) == []
    assert [str(problem) for problem in problems] == [f"--set: {field}: expected a finite number, found .nan"]


def test_a_value_that_is_no_yaml_is_noted_with_its_path_and_how_to_write_it() -> None:
    problems = Problems()
    assert overlays(["expect.contended.latency_ns_p95=>= 3"], problems) == []
    (problem,) = problems
    assert str(problem).startswith("--set: expect.contended.latency_ns_p95: not YAML: ")
    assert problem.suggestion.endswith("""'expect.contended.latency_ns_p95=">= 3"'""")
    assert overlaid('expect.contended.latency_ns_p95=">= 3"') == {"expect": {"contended": {"latency_ns_p95": ">= 3"}}}
