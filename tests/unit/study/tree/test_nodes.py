from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.study.tree.nodes import KEY_MARK, Position, Tree, dotted, from_plain, leaves, locate, plain
from fairtrial.study.tree.problems import Problems
from fairtrial.study.tree.reading import parse

TEXT = """\
a:
  b: [x, {c: 1}]
  d: 2
e: {}
"""

values = st.recursive(
    st.one_of(st.integers(), st.text(max_size=3), st.booleans(), st.none()),
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(st.text(max_size=3), below, max_size=3)),
    max_leaves=10,
)


@pytest.fixture
def tree() -> Tree:
    node = parse(TEXT, file="study.yaml", problems=Problems())
    assert isinstance(node, Tree)
    return node


@given(values)
def test_a_node_is_its_value(value: Any) -> None:
    assert plain(from_plain(value, Position("x"))) == value


@pytest.mark.parametrize(
    ("location", "path", "line_and_column"),
    [
        (("a", "b", 1, "c"), ("a", "b", "1", "c"), (2, 14)),
        (("a", "b", "list[str]", 1, "Model", "c"), ("a", "b", "1", "c"), (2, 14)),
        (("a", "missing"), ("a",), (2, 3)),
        (("a", "d", KEY_MARK), ("a", "d"), (3, 3)),
        (("a", "b", 7), ("a", "b"), (2, 6)),
        ((), (), (1, 1)),
    ],
)
def test_a_pydantic_location_leads_to_the_line_even_through_branches_of_unions(
    tree: Tree, *, location: tuple[str | int, ...], path: tuple[str, ...], line_and_column: tuple[int, int]
) -> None:
    found, at = locate(tree, location)
    assert (found, (at.line, at.column)) == (path, line_and_column)


def test_leaves_are_scalars_lists_and_empty_mappings(tree: Tree) -> None:
    assert [path for path, _ in leaves(tree)] == [("a", "b"), ("a", "d"), ("e",)]


def test_what_is_no_mapping_looks_like_an_empty_one_at_its_place(tree: Tree) -> None:
    empty = tree.tree("a").tree("d")
    assert (empty.entries, empty.at.line) == ({}, 3)
    assert tree.tree("nothing").at == tree.at


def test_without_leaves_the_rest_and_the_original_alone(tree: Tree) -> None:
    assert list(tree.without("a").entries) == ["e"]
    assert list(tree.entries) == ["a", "e"]


def test_paths_quote_parts_with_dots() -> None:
    assert dotted(("settings", "sysctl", "vm.swappiness")) == 'settings.sysctl."vm.swappiness"'
