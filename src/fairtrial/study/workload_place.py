"""A workload's own place: written inside `workload`, beside its kind, and kept beside it.

Owns the way in and the way back. Merging, levels and sizes then see two sections that each hold exactly one kind, so
that another kind of workload does not take the place away.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from fairtrial.study.tree.nodes import Node, Tree
from fairtrial.study.tree.overlays import everywhere
from fairtrial.study.tree.problems import Problems

WORKLOAD: Final = "workload"
PLACE: Final = "place"
SECTION: Final = "workload.place"  # how a person would call it; as a key of a file it is refused


def aside(tree: Tree, problems: Problems) -> Tree:
    """A document with every `place` of a workload (in the base trial, in levels, in sizes) as a section of its own."""
    return everywhere(tree, partial(_taken, problems=problems))


def back(values: dict[str, Any]) -> dict[str, Any]:
    """Sections of a trial, as Python values, as a person writes them."""
    result = dict(values)
    if SECTION in result:
        place = result.pop(SECTION)
        workload = result.get(WORKLOAD)
        result[WORKLOAD] = {**(workload if isinstance(workload, dict) else {}), PLACE: place}
    return result


def back_everywhere(values: dict[str, Any]) -> dict[str, Any]:
    """A whole study, as Python values, as a person writes it."""
    result = back(values)
    factors = result.get("factors")
    if isinstance(factors, dict):
        result["factors"] = {
            factor: {name: back(level) if isinstance(level, dict) else level for name, level in levels.items()}
            if isinstance(levels, dict)
            else levels
            for factor, levels in factors.items()
        }
    return result


def _taken(tree: Tree, *, problems: Problems) -> Tree:
    if SECTION in tree.entries:
        problems.unknown("key", SECTION, [WORKLOAD], at=tree.where(SECTION), field=(SECTION,))
        tree = tree.without(SECTION)
    workload = tree.entries.get(WORKLOAD)
    if not isinstance(workload, Tree) or PLACE not in workload.entries:
        return tree
    entries: dict[str, Node] = dict(tree.entries)
    entries[SECTION] = workload.entries[PLACE]
    entries[WORKLOAD] = workload.without(PLACE)
    if not workload.without(PLACE).entries:
        del entries[WORKLOAD]  # it said where, not what
    return Tree(entries, tree.at, {**tree.key_at, SECTION: workload.where(PLACE)}, tree.is_whole)
