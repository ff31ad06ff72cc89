from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairtrial.study.confounding import check_confounding
from fairtrial.study.resolving import overlaid
from fairtrial.study.tree.nodes import Position, Tree, from_plain, plain
from fairtrial.study.tree.problems import Problems

keys = st.sampled_from(["a", "b"])
values = st.recursive(
    st.one_of(st.integers(0, 1), st.booleans(), st.none(), st.just([1])),
    lambda below: st.dictionaries(keys, below, max_size=2),
    max_leaves=4,
)
settings_section = st.dictionaries(keys, values, max_size=2)
kind_section = st.dictionaries(st.sampled_from(["mariadb", "sqlite"]), settings_section, max_size=1)
trials = st.fixed_dictionaries({}, optional={"settings": settings_section, "system": kind_section})


def tree(value: dict[str, Any]) -> Tree:
    node = from_plain(value, Position("study.yaml", 1, 1))
    assert isinstance(node, Tree)
    return node


def confounded(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    problems = Problems()
    check_confounding({"f": {"x": tree(first)}, "g": {"y": tree(second)}}, problems)
    return [str(problem) for problem in problems]


@given(base=trials, first=trials, second=trials)
def test_where_nothing_is_noted_the_order_of_factors_does_not_matter(
    base: dict[str, Any], first: dict[str, Any], second: dict[str, Any]
) -> None:
    """The check is complete: whatever it lets pass means the same, however factors are ordered in the file."""
    if not confounded(first, second):
        one = overlaid(tree(base), [tree(first), tree(second)])
        other = overlaid(tree(base), [tree(second), tree(first)])
        assert plain(one) == plain(other)


@given(first=trials, second=trials)
def test_it_is_noted_whichever_factor_comes_first(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert bool(confounded(first, second)) == bool(confounded(second, first))


@given(first=trials)
def test_a_factor_agrees_with_itself(first: dict[str, Any]) -> None:
    assert confounded(first, first) == []


def test_one_path_is_noted_once_for_a_pair_of_factors() -> None:
    levels = {str(number): tree({"settings": {"a": number}}) for number in range(3)}
    others = {str(number): tree({"settings": {"a": -number - 1}}) for number in range(3)}
    problems = Problems()
    check_confounding({"f": levels, "g": others}, problems)
    assert len(problems) == 1
