"""`--set path=value`: one more overlay, from the command line.

Owns the path syntax: parts joined by dots, a part that has a dot itself in double quotes
(`settings.sysctl."vm.swappiness"=10`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from fairtrial.errors import InputError
from fairtrial.study.tree.nodes import Listing, Node, Path, Position, Scalar, Tree, dotted
from fairtrial.study.tree.problems import Problems
from fairtrial.study.tree.reading import parse

AT = Position("--set")
_PART = re.compile(r'"([^"]+)"|([^."=\s]+)')


def overlays(assignments: Iterable[str], problems: Problems) -> list[Tree]:
    """One overlay per assignment; malformed ones are noted and left out."""
    trees = []
    for assignment in assignments:
        split = _split(assignment)
        if split is None:
            problems.add(f"expected path=value, found `{assignment}`", AT, suggestion="for example trials.blocks=5")
            continue
        path, text = split
        unread, node = Problems(), None
        try:
            node = parse(text, file=AT.file, problems=unread) if text.strip() else None
        except InputError as error:
            suggestion = f"quote what YAML would misread, inside the shell's quotes: '{dotted(path)}=\">= 3\"'"
            for problem in error.problems:
                unread.note(replace(problem, suggestion=suggestion))
        for each in unread:
            field = ".".join(filter(None, (dotted(path), each.field)))
            problems.note(replace(each, line=0, column=0, field=field))
        if len(unread):
            continue
        trees.append(_nested(path, _at_command_line(node or Scalar(None, "", AT))))
    return trees


def path_of(text: str) -> Path | None:
    """A path as it stands in a file; None if it is none."""
    split = _split(f"{text}=")
    return split[0] if split is not None and not split[1] else None


def _split(assignment: str) -> tuple[Path, str] | None:
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(assignment, position)
        if match is None:
            return None
        parts.append(match[1] or match[2])
        position = match.end()
        following = assignment[position : position + 1]
        if following == "=":
            return tuple(parts), assignment[position + 1 :]
        if following != ".":
            return None
        position += 1


def _nested(path: Path, value: Node) -> Tree:
    first, *rest = path
    below = _nested(tuple(rest), value) if rest else value
    return Tree({first: below}, AT, {first: AT})


def _at_command_line(node: Node) -> Node:
    """Lines and columns inside a value mean nothing on a command line."""
    if isinstance(node, Tree):
        entries = {key: _at_command_line(value) for key, value in node.entries.items()}
        return Tree(entries, AT, dict.fromkeys(entries, AT))
    if isinstance(node, Listing):
        return Listing(tuple(_at_command_line(item) for item in node.items), AT)
    return Scalar(node.value, node.text, AT)
