"""A YAML document as an immutable tree whose every value knows where it was written.

Owns the three kinds of node and moving about in them. Merging keeps nodes as they are, so whatever wins a merge still
knows its line. It must not know what any key means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ScalarValue = str | int | float | bool | None
Path = tuple[str, ...]
KEY_MARK = "[key]"  # pydantic's own mark in an error's location: the key is wrong, not its value


@dataclass(frozen=True)
class Position:
    """Where a node was written; `line` and `column` count from 1 and are 0 where there are none (`--set`)."""

    file: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True, eq=False)
class Scalar:
    """A single value. `text` is its source, which names need: a level `6.10` is not `6.1`.

    `written` is what stands in the file, with quotes and indentation: what a place in a longer text is found by.
    """

    value: ScalarValue
    text: str
    at: Position
    written: str = field(default="", repr=False)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Scalar) and type(self.value) is type(other.value) and self.value == other.value
        )  # True is not 1

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True)
class Listing:
    """A sequence."""

    items: tuple[Node, ...]
    at: Position = field(compare=False)


@dataclass(frozen=True)
class Tree:
    """A mapping with text keys, in source order. `key_at`: where each key was written, those that `null` removed too.

    `is_whole`: it replaces the mapping it is merged over (a file named in the place of another).
    """

    entries: Mapping[str, Node]
    at: Position = field(compare=False)
    key_at: Mapping[str, Position] = field(compare=False, default_factory=dict)
    is_whole: bool = field(compare=False, default=False)

    def tree(self, key: str) -> Tree:
        """The mapping below `key`, or an empty one: for looking on after a mistake was noted elsewhere."""
        node = self.entries.get(key)
        return node if isinstance(node, Tree) else Tree({}, node.at if node else self.at)

    def where(self, key: str) -> Position:
        """Where `key` was written, or this mapping if nowhere."""
        return self.key_at.get(key, self.at)

    def without(self, *keys: str) -> Tree:
        """The same mapping but for some keys."""
        kept = {key: node for key, node in self.entries.items() if key not in keys}
        return Tree(kept, self.at, self.key_at, self.is_whole)

    def having(self, key: str, node: Node) -> Tree:
        """The same mapping with another value at a key."""
        return Tree({**self.entries, key: node}, self.at, self.key_at, self.is_whole)


Node = Scalar | Listing | Tree


@dataclass(frozen=True)
class Branch:
    """A mapping and its path in the study: where what is wrong in it is to be noted."""

    node: Tree
    path: Path

    def below(self, key: str) -> Branch:
        """The mapping below a key, or an empty one."""
        return Branch(self.node.tree(key), (*self.path, key))

    def field(self, *keys: str | int) -> Path:
        """The path of something in it."""
        return (*self.path, *map(str, keys))


def is_null(node: Node | None) -> bool:
    """Whether the node is there and says `null`."""
    return isinstance(node, Scalar) and node.value is None


def plain(node: Node) -> Any:
    """The node as Python values."""
    if isinstance(node, Tree):
        return {key: plain(value) for key, value in node.entries.items()}
    if isinstance(node, Listing):
        return [plain(item) for item in node.items]
    return node.value


def from_plain(value: Any, at: Position) -> Node:
    """Python values (text keys) as a node, all of it written at one place."""
    if isinstance(value, Mapping):
        entries = {str(key): from_plain(item, at) for key, item in value.items()}
        return Tree(entries, at, dict.fromkeys(entries, at))
    if isinstance(value, list | tuple):
        return Listing(tuple(from_plain(item, at) for item in value), at)
    return Scalar(value, str(value), at)


def locate(node: Node, location: Sequence[str | int]) -> tuple[Path, Position]:
    """Follows a pydantic location, skipping parts that only name a branch of a union.

    Returns:
        The path as far as the tree has it, and where its end was written (the key's place for a wrong key).
    """
    path: list[str] = []
    at = node.at
    owner: Tree | None = None
    for part in location:
        if part == KEY_MARK and owner is not None:
            at = owner.where(path[-1])
        elif isinstance(node, Tree) and str(part) in node.entries:
            owner, node = node, node.entries[str(part)]
            path.append(str(part))
            at = node.at
        elif isinstance(node, Listing) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            path.append(str(part))
            at = node.at
    return tuple(path), at


def leaves(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Every scalar, list and empty mapping with its path."""
    if isinstance(node, Tree) and node.entries:
        for key, value in node.entries.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, node


def dotted(path: Sequence[str]) -> str:
    """A path as messages and `--set` write it; a part with a dot in it is quoted."""
    return ".".join(f'"{part}"' if "." in part else part for part in path)
