"""Where a workload runs and how it reaches its system: written inside `workload`, beside its kind, and kept beside it.

Owns the way in and the way back. Merging, levels and sizes then see sections that each hold exactly one kind, so that
another kind of workload takes neither the place nor the network away.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from fairtrial.study.tree.nodes import Node, Path, Tree
from fairtrial.study.tree.overlays import everywhere
from fairtrial.study.tree.problems import Problems

WORKLOAD: Final = "workload"
PLACE: Final = "place"
SECTION: Final = "workload.place"  # how a person would call it; as a key of a file it is refused
NETWORK: Final = "workload.network"  # the keys that say how clients reach the system; no file has it either
NETWORK_KEYS: Final = ("address", "tls")


def aside(tree: Tree, problems: Problems) -> Tree:
    """A document with what workloads say beside their kind (in base trial, levels, sizes) as sections of their own."""
    return everywhere(tree, partial(_taken, problems=problems))


def kept(path: Path) -> Path:
    """The path in such a document of what a person writes at another."""
    if path[:2] == (WORKLOAD, PLACE):
        return (SECTION, *path[2:])
    if path[:1] == (WORKLOAD,) and {*path[1:2]} & {*NETWORK_KEYS}:
        return (NETWORK, *path[1:])
    return path


def back(values: dict[str, Any]) -> dict[str, Any]:
    """Sections of a trial, as Python values, as a person writes them."""
    result = dict(values)
    beside = {PLACE: result.pop(SECTION)} if SECTION in result else {}
    network = result.pop(NETWORK, {})
    if beside or network:
        workload = result.get(WORKLOAD)
        result[WORKLOAD] = {**(workload if isinstance(workload, dict) else {}), **beside, **network}
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
    for section in (SECTION, NETWORK):
        if section in tree.entries:
            problems.unknown("key", section, [WORKLOAD], at=tree.where(section), field=(section,))
            tree = tree.without(section)
    workload = tree.entries.get(WORKLOAD)
    if not isinstance(workload, Tree) or not {PLACE, *NETWORK_KEYS} & workload.entries.keys():
        return tree
    entries: dict[str, Node] = dict(tree.entries)
    at = dict(tree.key_at)
    if PLACE in workload.entries:
        entries[SECTION], at[SECTION] = workload.entries[PLACE], workload.where(PLACE)
    network = {key: workload.entries[key] for key in NETWORK_KEYS if key in workload.entries}
    if network:
        entries[NETWORK] = Tree(network, workload.at, {key: workload.where(key) for key in network})
    entries[WORKLOAD] = workload.without(PLACE, *NETWORK_KEYS)
    if not workload.without(PLACE, *NETWORK_KEYS).entries:
        del entries[WORKLOAD]  # it said where, not what
    return Tree(entries, tree.at, at, tree.is_whole)
