from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairtrial.study.tree.merging import merge
from fairtrial.study.tree.nodes import Position, Tree, from_plain, leaves, plain

scalars = st.one_of(st.integers(0, 3), st.sampled_from(["on", "off"]), st.booleans())
keys = st.sampled_from(["a", "b", "c", "d"])
values = st.recursive(
    st.one_of(scalars, st.lists(scalars, max_size=2)),
    lambda below: st.dictionaries(keys, below, max_size=3),
    max_leaves=8,
)
# below `settings` no mapping holds exactly one kind, so the general laws hold there
trees = st.dictionaries(keys, values, max_size=3).map(lambda value: {"settings": value})
with_nulls = st.dictionaries(keys, st.one_of(values, st.none()), max_size=3).map(lambda value: {"settings": value})


def tree(value: dict[str, Any], file: str = "a.yaml") -> Tree:
    node = from_plain(value, Position(file, 1, 1))
    assert isinstance(node, Tree)
    return node


def merged(*layers: dict[str, Any]) -> Any:
    result = None
    for layer in layers:
        result = merge(result, tree(layer))
    assert result is not None
    return plain(result)


@given(trees)
def test_nothing_over_a_tree_is_the_tree_and_so_is_the_tree_itself(value: dict[str, Any]) -> None:
    assert merged(value, {}) == value
    assert merged(value, value) == value


@given(trees, with_nulls)
def test_after_a_merge_no_null_is_left_and_what_it_named_is_gone(below: dict[str, Any], over: dict[str, Any]) -> None:
    result = merged(below, over)
    assert all(value is not None for value in result["settings"].values())
    for key, value in over["settings"].items():
        assert (key in result["settings"]) == (value is not None)


@given(trees, trees)
def test_every_value_set_above_wins(below: dict[str, Any], over: dict[str, Any]) -> None:
    result = dict(leaves(merge(tree(below), tree(over))))
    for path, node in leaves(tree(over)):
        if not isinstance(node, Tree):
            assert result[path] == node


def shapes_agree(*layers: dict[str, Any]) -> bool:
    """Whether no path is a mapping in one layer and a value in another."""
    outer = {path for layer in layers for path, node in leaves(tree(layer)) if not isinstance(node, Tree)}
    inner = {path[:n] for layer in layers for path, _ in leaves(tree(layer)) for n in range(1, len(path) + 1)}
    mappings = {path for path in inner if any(len(other) > len(path) and other[: len(path)] == path for other in inner)}
    empty = {path for layer in layers for path, node in leaves(tree(layer)) if isinstance(node, Tree)}
    return not outer & (mappings | empty)


@given(trees, trees, trees)
def test_merging_is_associative_where_mappings_meet_mappings(
    one: dict[str, Any], two: dict[str, Any], three: dict[str, Any]
) -> None:
    if shapes_agree(one, two, three):
        assert merged(merged(one, two), three) == merged(one, merged(two, three))


def test_a_mapping_over_a_value_is_not_associative_because_the_value_forgets() -> None:
    one, two, three = ({"settings": {"a": value}} for value in ({"x": 1}, 5, {"y": 2}))
    assert merged(merged(one, two), three) == {"settings": {"a": {"y": 2}}}
    assert merged(one, merged(two, three)) == {"settings": {"a": {"x": 1, "y": 2}}}


def test_lists_replace() -> None:
    assert merged({"settings": {"a": [1, 2]}}, {"settings": {"a": [3]}}) == {"settings": {"a": [3]}}


def test_another_kind_replaces_the_whole_mapping_and_the_same_kind_merges() -> None:
    base = {"system": {"mariadb": {"options": {"a": 1}}}, "settings": {"x": 1}}
    assert merged(base, {"system": {"sqlite": {}}}) == {"system": {"sqlite": {}}, "settings": {"x": 1}}
    assert merged(base, {"system": {"mariadb": {"options": {"b": 2}}}})["system"] == {
        "mariadb": {"options": {"a": 1, "b": 2}}
    }
    assert merged(base, {"settings": {"y": 2}})["settings"] == {"x": 1, "y": 2}


def test_kinds_replace_inside_levels_and_sizes_too() -> None:
    level = {"factors": {"f": {"l": {"system": {"mariadb": {"a": 1}}}}}}
    assert merged(level, {"factors": {"f": {"l": {"system": {"sqlite": {}}}}}}) == {
        "factors": {"f": {"l": {"system": {"sqlite": {}}}}}
    }
    size = {"sizes": {"s": {"place": {"vm": {"a": 1}}}}}
    assert merged(size, {"sizes": {"s": {"place": {"local": {}}}}}) == {"sizes": {"s": {"place": {"local": {}}}}}


def test_a_null_inside_a_level_waits_until_the_level_is_applied() -> None:
    level = {"factors": {"f": {"l": {"settings": {"a": None}}}}}
    assert merged(level) == level
    assert merged({"settings": {"a": 1, "b": 2}}, level["factors"]["f"]["l"]) == {"settings": {"b": 2}}


def test_a_null_removes_a_factor_or_level_that_is_there_and_is_an_empty_level_where_none_is() -> None:
    factors = {"factors": {"f": {"l": {"settings": {}}, "m": {}}, "g": {}}}
    assert merged(factors, {"factors": {"f": {"l": None}, "g": None}}) == {"factors": {"f": {"m": {}}}}
    assert merged({"factors": {"f": {"baseline": None}}}) == {"factors": {"f": {"baseline": {}}}}


def test_what_wins_keeps_its_own_line() -> None:
    below, over = tree({"settings": {"a": 1, "b": 1}}, "below.yaml"), tree({"settings": {"b": 2}}, "over.yaml")
    settings = merge(below, over).tree("settings")
    assert settings.entries["a"].at.file == "below.yaml"
    assert settings.entries["b"].at.file == "over.yaml"
    assert (settings.where("a").file, settings.where("b").file) == ("below.yaml", "over.yaml")
