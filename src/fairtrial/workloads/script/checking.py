"""What a script's model cannot see: whether its statements are well formed and their parameters fit.

Everything is noted at its line and column in the script, inside a statement's text where it is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fairtrial.study.nodes import Branch, Listing, Node, Position, Scalar, Tree
from fairtrial.study.problems import Problems
from fairtrial.study.texts import position_in
from fairtrial.workloads.script import sql
from fairtrial.workloads.script.file import Script, Setup, Transaction


def check(script: Script, branch: Branch, problems: Problems) -> None:
    """Notes every mistake of a script of the right shape."""
    checker = _Checker(problems)
    if script.setup is not None:
        checker.setup(script.setup, branch.below("setup"))
    used: set[str] = set()
    clear = True
    for name, transaction in script.transactions.items():
        names = _Names(script, transaction, branch.below("transactions").below(name), checker)
        clear = names.check() and clear
        used |= names.used - transaction.parameters.keys()
    if clear:
        checker.unused(script.parameters, used, branch.below("parameters"))


@dataclass
class _Checker:
    """What statements have in common, wherever they stand."""

    problems: Problems

    def setup(self, setup: Setup, branch: Branch) -> None:
        """Statements that make the data: each for itself."""
        for key, texts in (("create", setup.create), ("finish", setup.finish)):
            for number, text in enumerate(texts):
                for name, offset in self.read(text, branch, (key, number)).parameters:
                    self.problems.add(
                        f"`:{name}` stands for nothing: statements of `{key}` have no parameters",
                        position_in(_text_node(branch.node, key, number), offset),
                        field=branch.field(key, number),
                        suggestion="rows with drawn values belong to `fill`",
                    )

    def read(self, text: str, branch: Branch, place: tuple[str, int]) -> sql.Statement:
        """Takes a statement apart and notes its faults."""
        found, written = sql.read(text), _text_node(branch.node, *place)
        for fault in found.faults:
            at = position_in(written, fault.offset)
            self.problems.add(fault.message, at, field=branch.field(*place), suggestion=fault.suggestion)
        return found

    def unused(self, parameters: Iterable[str], used: set[str], branch: Branch) -> None:
        """Parameters that no statement uses."""
        for name in parameters:
            if name not in used:
                self.problems.add(
                    f"parameter `{name}` is declared and never used",
                    branch.node.where(name),
                    field=branch.field(name),
                    suggestion=f"write `:{name}` in a statement, or leave it out",
                )


def _text_node(owner: Tree, key: str, number: int) -> Scalar:
    """The text of a statement, given alone or as `sql`."""
    listing = owner.entries.get(key)
    node: Node | None = listing.items[number] if isinstance(listing, Listing) else listing
    if isinstance(node, Tree):
        node = node.entries.get("sql")
    return node if isinstance(node, Scalar) else Scalar(None, "", owner.at)


@dataclass
class _Names:
    """The parameters of one transaction: where they come from and where they are used."""

    script: Script
    transaction: Transaction
    branch: Branch
    checker: _Checker

    def __post_init__(self) -> None:
        self.problems = self.checker.problems
        self.declared = {**self.script.parameters, **self.transaction.parameters}
        self.taken: dict[str, int] = {}  # by name: the statement's number
        self.used: set[str] = set()
        self.clear = True

    def check(self) -> bool:
        """Notes what does not fit; whether all statements could be read and use what there is."""
        for number, statement in enumerate(self.transaction.statements):
            found = self.checker.read(statement.sql, self.branch, ("statements", number))
            written = _text_node(self.branch.node, "statements", number)
            for name, offset in found.parameters:
                self._use(name, number, at=position_in(written, offset))
            for place, name in enumerate(statement.take):
                self._take(name, number, place)
            self.clear = self.clear and not found.faults
        if self.clear:  # a misspelt name is one mistake, not two
            self.checker.unused(self.transaction.parameters, self.used, self.branch.below("parameters"))
            self._check_taken()
        return self.clear

    def _use(self, name: str, number: int, *, at: Position) -> None:
        self.used.add(name)
        if name in self.declared or name in self.taken:
            return
        self.clear = False
        field = self.branch.field("statements", number)
        later = [
            position + 1
            for position, statement in enumerate(self.transaction.statements)
            if name in statement.take and position >= number
        ]
        if later:
            message = f"`:{name}` has no value yet: statement {later[0]} takes it, and this is statement {number + 1}"
            self.problems.add(message, at, field=field, suggestion="use it after that statement")
        else:
            self.problems.unknown("parameter", name, (*self.declared, *self.taken), at=at, field=field)

    def _take(self, name: str, number: int, place: int) -> None:
        if name in self.declared:
            message = f"`{name}` is a parameter already, drawn before the transaction begins"
        elif name in self.taken:
            message = f"`{name}` is taken already, by statement {self.taken[name] + 1}"
        else:
            self.taken[name] = number
            return
        field = self.branch.field("statements", number, "take", place)
        suggestion = "take the value under another name"
        self.problems.add(message, self._at_take(number, place), field=field, suggestion=suggestion)

    def _check_taken(self) -> None:
        for name, number in self.taken.items():
            if name not in self.used:
                place = self.transaction.statements[number].take.index(name)
                self.problems.add(
                    f"`{name}` is taken from a row and never used",
                    self._at_take(number, place),
                    field=self.branch.field("statements", number, "take", place),
                    suggestion=f"write `:{name}` in a later statement, or leave it out",
                )

    def _at_take(self, number: int, place: int) -> Position:
        listing = self.branch.node.entries.get("statements")
        statement = listing.items[number] if isinstance(listing, Listing) else None
        taken = statement.entries.get("take") if isinstance(statement, Tree) else None
        return taken.items[place].at if isinstance(taken, Listing) else self.branch.node.at
