"""Two factors that set one path to different values: the arm would be confounded with a condition.

Owns the comparison of levels before any merging; the order of merging must never decide what a trial is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from fairtrial.study.tree.merging import KIND_SECTIONS
from fairtrial.study.tree.nodes import Node, Path, Position, Tree, is_null, leaves, plain
from fairtrial.study.tree.problems import Problems, brief

Factors = Mapping[str, Mapping[str, Tree]]
_Set = dict[Path, tuple[object, Position]]
_KIND = "(kind)"  # stands for naming a kind, which sets the section's one key


def check_confounding(factors: Factors, problems: Problems) -> None:
    """Notes every path that two factors set to different values in some combination of levels, once per pair."""
    settings = {
        factor: {level: dict(_values(overlay)) for level, overlay in levels.items()}
        for factor, levels in factors.items()
    }
    for first, second in combinations(settings, 2):
        checked: set[Path] = set()
        for first_level, first_set in settings[first].items():
            for second_level, second_set in settings[second].items():
                for one, other in _conflicts(first_set, second_set):
                    if other in checked:
                        continue
                    checked.add(other)
                    (first_value, first_at), (second_value, at) = first_set[one], second_set[other]
                    problems.add(
                        f"factors `{first}` and `{second}` both set it: {brief(first_value)} in {first}.{first_level} "
                        f"(line {first_at.line}), {brief(second_value)} in {second}.{second_level}; "
                        "their effects could not be separated",
                        at,
                        field=[part for part in other if part != _KIND],
                        suggestion="set this path in one factor only",
                    )


def _values(overlay: Tree) -> Iterator[tuple[Path, tuple[object, Position]]]:
    for path, node in leaves(overlay):
        if path:
            yield path, (plain(node), node.at)
    for section in KIND_SECTIONS:
        tree = overlay.tree(section)
        named: list[tuple[str, Node]] = [(kind, node) for kind, node in tree.entries.items() if not is_null(node)]
        for kind, _node in named[:1]:
            yield (section, _KIND), (kind, tree.where(kind))
    workloads = overlay.tree("workload")
    for workload in workloads.entries:
        arrivals = workloads.tree(workload).tree("arrivals")
        named = [(kind, node) for kind, node in arrivals.entries.items() if not is_null(node)]
        for kind, _node in named[:1]:
            yield ("workload", workload, "arrivals", _KIND), (kind, arrivals.where(kind))


def _conflicts(first: _Set, second: _Set) -> Iterator[tuple[Path, Path]]:
    for one, (value, _) in first.items():
        if one in second:
            other_value = second[one][0]
            if type(value) is not type(other_value) or value != other_value:
                yield one, one
    yield from _nested(first, second)
    yield from ((one, other) for other, one in _nested(second, first))


def _nested(outer: _Set, inner: _Set) -> Iterator[tuple[Path, Path]]:
    """Paths of `inner` strictly below a value of `outer`; below an empty mapping there is room."""
    for path in inner:
        for length in range(1, len(path)):
            if path[:length] in outer and outer[path[:length]][0] != {}:
                yield path[:length], path
