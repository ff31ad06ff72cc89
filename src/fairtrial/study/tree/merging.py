"""Overlays: mappings merge key by key, scalars and lists replace, `null` removes.

Owns the order-free rules of merging two trees; the order (include, study, size, `--set`, levels) is the caller's.
`place`, `system`, `workload` and its `place` hold exactly one kind, and so do a workload's `arrivals`: naming another
kind replaces the whole mapping.
"""

from __future__ import annotations

from collections.abc import Callable

from fairtrial.study.tree.nodes import Node, Path, Position, Tree, is_null
from fairtrial.study.workload_place import NETWORK
from fairtrial.study.workload_place import SECTION as WORKLOAD_PLACE

KIND_SECTIONS = ("place", "system", "workload", WORKLOAD_PLACE)
SECTIONS = (*KIND_SECTIONS, "settings", NETWORK)
_LEVEL_DEPTH = 3  # factors.<factor>.<level>
_SIZE_DEPTH = 2  # sizes.<size>
_ARRIVALS_DEPTH = 3  # workload.<kind>.arrivals

Missed = Callable[[Path, Position, Tree | None], None]  # a null's path and place, and the mapping that it is over


def merge(below: Tree | None, over: Tree, *, missed: Missed | None = None) -> Tree:
    """Merges a mapping over another. Inside levels and sizes a `null` stays: it removes when they are applied.

    `missed`: told of every other `null` that removes nothing.
    """
    return _merge(below, over, path=(), missed=missed)


def _merge(below: Node | None, over: Tree, *, path: Path, missed: Missed | None) -> Tree:
    kept = below if isinstance(below, Tree) and not over.is_whole else None
    if kept is not None and holds_one_kind(path) and _names_another(kept, over):
        kept = None
    entries = dict(kept.entries) if kept else {}
    key_at = dict(kept.key_at) if kept else {}
    for key, node in over.entries.items():
        child = (*path, key)
        previous = entries.get(key)
        if is_null(node) and not _keeps_null(child):
            entries.pop(key, None)
            key_at[key] = over.where(key)  # for who misses it
            if previous is None and (_is_size(child) or (_is_level(child) and kept is None)):
                entries[key] = Tree({}, node.at)  # `baseline:` with nothing after it, where it is first written
            elif previous is None and missed is not None:
                missed(child, over.where(key), kept)
            continue
        entries[key] = _merge(previous, node, path=child, missed=missed) if isinstance(node, Tree) else node
        if not (isinstance(previous, Tree) and isinstance(node, Tree)):
            key_at[key] = over.where(key)
    return Tree(entries, kept.at if kept else over.at, key_at, over.is_whole or (kept is not None and kept.is_whole))


def holds_one_kind(path: Path) -> bool:
    """Whether the mapping at this path of a study, a level or a size holds exactly one kind."""
    if path[:1] == ("sizes",):
        return holds_one_kind(path[_SIZE_DEPTH:])
    if path[:1] == ("factors",):
        return holds_one_kind(path[_LEVEL_DEPTH:])
    return (len(path) == 1 and path[0] in KIND_SECTIONS) or _is_arrivals(path)


def _is_arrivals(path: Path) -> bool:
    return len(path) == _ARRIVALS_DEPTH and path[0] == "workload" and path[-1] == "arrivals"


def _names_another(below: Tree, over: Tree) -> bool:
    return any(key not in below.entries for key, node in over.entries.items() if not is_null(node))


def _is_level(path: Path) -> bool:
    return path[0] == "factors" and len(path) == _LEVEL_DEPTH


def _is_size(path: Path) -> bool:
    return path[0] == "sizes" and len(path) == _SIZE_DEPTH


def _keeps_null(path: Path) -> bool:
    return (path[0] == "sizes" and len(path) > _SIZE_DEPTH) or (path[0] == "factors" and len(path) > _LEVEL_DEPTH)
