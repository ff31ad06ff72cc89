"""A change made wherever a study says something of a trial: in its base trial, in every level, and so in every size.

Owns where such pieces stand in a document. It must not know what is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fairtrial.study.tree.nodes import Tree

Change = Callable[[Tree], Tree]


def everywhere(tree: Tree, change: Change) -> Tree:
    """The same document with every piece of trial changed."""
    document = partial(_document, change=change)
    return below(document(tree), "sizes", partial(_each, change=document))


def below(tree: Tree, key: str, change: Change) -> Tree:
    """The same mapping with another mapping at a key, if there is one."""
    node = tree.entries.get(key)
    return tree.having(key, change(node)) if isinstance(node, Tree) else tree


def _document(tree: Tree, *, change: Change) -> Tree:
    """A study or a size: its base trial and the levels of its factors."""
    return below(change(tree), "factors", partial(_each, change=partial(_each, change=change)))


def _each(tree: Tree, *, change: Change) -> Tree:
    for key in tree.entries:
        tree = below(tree, key, change)
    return tree
