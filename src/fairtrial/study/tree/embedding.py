"""Files that a kind's parameters name, in the place of their names: a study is whole once it is read.

Owns the rule that a file named over another replaces it
whole. It must not know what is in the files: they are YAML, and the kind's own model checks them at their own lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from fairtrial.errors import InputError
from fairtrial.study.catalogue import Catalogue, Kind
from fairtrial.study.resolving import kinds
from fairtrial.study.tree.merging import SECTIONS
from fairtrial.study.tree.nodes import Path as Keys
from fairtrial.study.tree.nodes import Scalar, Tree, dotted
from fairtrial.study.tree.overlays import below, everywhere
from fairtrial.study.tree.problems import Problems
from fairtrial.study.tree.reading import read_tree


def embed(tree: Tree, *, catalogue: Catalogue, problems: Problems) -> Tree:
    """A document with the content of every file its kinds name; a file is looked for beside the file that names it.

    What cannot be read is noted, and its name stays.
    """
    return everywhere(tree, partial(_overlay, known=kinds(catalogue), problems=problems))


def _overlay(tree: Tree, *, known: Mapping[str, Mapping[str, Kind]], problems: Problems) -> Tree:
    for section in SECTIONS:
        named = {name: kind for name, kind in known.get(section, {}).items() if kind.files}
        tree = below(tree, section, partial(_kinds, known=named, section=section, problems=problems))
    return tree


def _kinds(tree: Tree, *, known: Mapping[str, Kind], section: str, problems: Problems) -> Tree:
    for name, kind in known.items():
        path = (*section.split("."), name)
        tree = below(tree, name, partial(_parameters, kind=kind, path=path, problems=problems))
    return tree


def _parameters(tree: Tree, *, kind: Kind, path: Keys, problems: Problems) -> Tree:
    for key, content in kind.files.items():
        node = tree.entries.get(key)
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            continue
        if content in tree.entries:
            problems.add(
                f"`{key}` and `{content}` are both present",
                tree.where(content),
                field=(*path, content),
                suggestion=f"`{content}` holds the text of the file: keep one of them",
            )
            continue
        try:
            file = read_tree(Path(node.at.file).parent / node.text, problems, at=node.at)
        except InputError as error:
            for problem in error.problems:
                named = problem.file == node.at.file
                problems.note(replace(problem, field=dotted((*path, key))) if named else problem)
            continue
        tree = _replaced(tree, key, content=content, file=file)
    return tree


def _replaced(tree: Tree, key: str, *, content: str, file: Tree) -> Tree:
    """The same mapping with a file's content, under its own key, in the place of the file's name."""
    whole = Tree(file.entries, file.at, file.key_at, is_whole=True)
    entries = {content if name == key else name: whole if name == key else node for name, node in tree.entries.items()}
    return Tree(entries, tree.at, {**tree.key_at, content: tree.where(key)}, tree.is_whole)
