"""What a script's model cannot see: whether its statements are well formed and their parameters fit.

Everything is noted at its line and column in the script, inside a statement's text where it is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.study.nodes import Listing, Node, Path, Position, Scalar, Tree
from fairtrial.study.problems import Problems
from fairtrial.study.texts import position_in
from fairtrial.workloads.script import sql
from fairtrial.workloads.script.file import Script, Setup, Transaction


def check(script: Script, node: Tree, path: Path, problems: Problems) -> None:
    """Notes every mistake of a script of the right shape."""
    if script.setup is not None:
        _check_setup(script.setup, node.tree("setup"), (*path, "setup"), problems)
    used: set[str] = set()
    clear = True
    for name, transaction in script.transactions.items():
        here = node.tree("transactions").tree(name)
        names = _Names(script, transaction, here, (*path, "transactions", name), problems)
        clear = names.check() and clear
        used |= names.used - transaction.parameters.keys()
    if clear:
        _check_unused(script.parameters, used, (node.tree("parameters"), (*path, "parameters")), problems)


def _check_setup(setup: Setup, node: Tree, path: Path, problems: Problems) -> None:
    for key, texts in (("create", setup.create), ("finish", setup.finish)):
        for number, text in enumerate(texts):
            written, field = _text_node(node, key, number), (*path, key, str(number))
            found = _read(text, written, field, problems)
            for name, offset in found.parameters:
                problems.add(
                    f"`:{name}` stands for nothing: statements of `{key}` have no parameters",
                    position_in(written, offset),
                    field=field,
                    suggestion="rows with drawn values belong to `fill`",
                )


def _read(text: str, written: Scalar, field: Path, problems: Problems) -> sql.Statement:
    """Takes a statement apart and notes its faults."""
    found = sql.read(text)
    for fault in found.faults:
        problems.add(fault.message, position_in(written, fault.offset), field=field, suggestion=fault.suggestion)
    return found


def _text_node(owner: Tree, key: str, number: int) -> Scalar:
    """The text of a statement, given alone or as `sql`."""
    listing = owner.entries.get(key)
    node: Node | None = listing.items[number] if isinstance(listing, Listing) else listing
    if isinstance(node, Tree):
        node = node.entries.get("sql")
    return node if isinstance(node, Scalar) else Scalar(None, "", owner.at)


def _check_unused(parameters: Mapping[str, Any], used: set[str], where: tuple[Tree, Path], problems: Problems) -> None:
    node, path = where
    for name in parameters:
        if name not in used:
            problems.add(
                f"parameter `{name}` is declared and never used",
                node.where(name),
                field=(*path, name),
                suggestion=f"write `:{name}` in a statement, or leave it out",
            )


@dataclass
class _Names:
    """The parameters of one transaction: where they come from and where they are used."""

    script: Script
    transaction: Transaction
    node: Tree
    path: Path
    problems: Problems

    def __post_init__(self) -> None:
        self.declared = {**self.script.parameters, **self.transaction.parameters}
        self.taken: dict[str, int] = {}  # by name: the statement's number
        self.used: set[str] = set()

    def check(self) -> bool:
        """Notes what does not fit; whether the text of all statements could be read."""
        read = []
        for number, statement in enumerate(self.transaction.statements):
            written, field = _text_node(self.node, "statements", number), (*self.path, "statements", str(number))
            found = _read(statement.sql, written, field, self.problems)
            for name, offset in found.parameters:
                self._use(name, number, at=position_in(written, offset))
            for place, name in enumerate(statement.take):
                self._take(name, number, place)
            read.append(found)
        if any(found.faults for found in read):
            return False
        own = (self.node.tree("parameters"), (*self.path, "parameters"))
        _check_unused(self.transaction.parameters, self.used, own, self.problems)
        for name, number in self.taken.items():
            if name not in self.used:
                message = f"`{name}` is taken from a row and never used"
                at, field = self._at_take(number, self.transaction.statements[number].take.index(name))
                self.problems.add(message, at, field=field, suggestion=f"write `:{name}` in a later statement")
        return True

    def _use(self, name: str, number: int, *, at: Position) -> None:
        self.used.add(name)
        if name in self.declared or name in self.taken:
            return
        field = (*self.path, "statements", str(number))
        later = [
            position
            for position, statement in enumerate(self.transaction.statements)
            if name in statement.take and position >= number
        ]
        if later:
            message = (
                f"`:{name}` has no value yet: statement {later[0] + 1} takes it, and this is statement {number + 1}"
            )
            self.problems.add(message, at, field=field, suggestion="use it after that statement")
        else:
            self.problems.unknown("parameter", name, (*self.declared, *self.taken), at=at, field=field)

    def _take(self, name: str, number: int, place: int) -> None:
        at, field = self._at_take(number, place)
        if name in self.declared:
            message = f"`{name}` is a parameter already, drawn before the transaction begins"
            self.problems.add(message, at, field=field, suggestion="take the value under another name")
        elif name in self.taken:
            self.problems.add(
                f"`{name}` is taken already, by statement {self.taken[name] + 1}",
                at,
                field=field,
                suggestion="take the value under another name",
            )
        else:
            self.taken[name] = number

    def _at_take(self, number: int, place: int) -> tuple[Position, Path]:
        listing = self.node.entries.get("statements")
        statement = listing.items[number] if isinstance(listing, Listing) else None
        taken = statement.entries.get("take") if isinstance(statement, Tree) else None
        at = taken.items[place].at if isinstance(taken, Listing) else self.node.at
        return at, (*self.path, "statements", str(number), "take", str(place))
