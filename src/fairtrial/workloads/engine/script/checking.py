"""What a script's model cannot see: whether its statements are well formed and their parameters fit.

Everything is noted at its line and column in the script, inside a statement's text where it is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fairtrial.study.tree.nodes import Branch, Listing, Node, Path, Position, Scalar, Tree
from fairtrial.study.tree.problems import Problems
from fairtrial.study.tree.texts import position_in
from fairtrial.workloads.engine.script import sql
from fairtrial.workloads.engine.script.file import ScriptFile, Setup, Transaction


def check(script: ScriptFile, branch: Branch, problems: Problems) -> None:
    """Notes every mistake of a script of the right shape."""
    checker = _Checker(problems)
    if script.setup is not None:
        checker.setup(script.setup, branch.below("setup"))
    checker.checks(script.checks, branch.below("checks"))
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
                written = _text_node(branch.node, key, number)
                field = branch.field(key, number)
                self._alone(text, written, field=field, suggestion="rows with drawn values belong to `fill`")

    def checks(self, checks: Mapping[str, str], branch: Branch) -> None:
        """Queries after a trial: each for itself."""
        for name, text in checks.items():
            node = branch.node.entries[name]
            if isinstance(node, Scalar):
                self._alone(text, node, field=branch.field(name), suggestion="write the value itself")

    def _alone(self, text: str, written: Scalar, *, field: Path, suggestion: str) -> None:
        for name, offset in self.read(text, written, field).parameters:
            message = f"`:{name}` is not a parameter here: only transactions have parameters"
            self.problems.add(message, position_in(written, offset), field=field, suggestion=suggestion)

    def read(self, text: str, written: Scalar, field: Path) -> sql.ParsedStatement:
        """Takes a statement apart and notes its faults."""
        parsed = sql.read(text)
        for fault in parsed.faults:
            at = position_in(written, fault.offset)
            self.problems.add(fault.message, at, field=field, suggestion=fault.suggestion)
        return parsed

    def unused(self, parameters: Iterable[str], used: set[str], branch: Branch) -> None:
        """Parameters that no statement uses."""
        for name in parameters:
            if name not in used:
                self.problems.add(
                    f"parameter `{name}` is declared but never used",
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

    script: ScriptFile
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
            written = _text_node(self.branch.node, "statements", number)
            parsed = self.checker.read(statement.sql, written, self.branch.field("statements", number))
            for name, offset in parsed.parameters:
                self._use(name, number, at=position_in(written, offset))
            for place, name in enumerate(statement.take):
                self._take(name, number, place)
            self.clear = self.clear and not parsed.faults
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
            message = f"`:{name}` has no value yet in statement {number + 1}: statement {later[0]} takes it"
            self.problems.add(message, at, field=field, suggestion="use it after that statement")
        else:
            self.problems.unknown("parameter", name, (*self.declared, *self.taken), at=at, field=field)

    def _take(self, name: str, number: int, place: int) -> None:
        if name in self.declared:
            message = f"`{name}` is already a parameter, drawn before the transaction begins"
        elif name in self.taken:
            message = f"`{name}` is already taken by statement {self.taken[name] + 1}"
        else:
            self.taken[name] = number
            return
        field = self.branch.field("statements", number, "take", place)
        suggestion = "take the value under a different name"
        self.problems.add(message, self._at_take(number, place), field=field, suggestion=suggestion)

    def _check_taken(self) -> None:
        for name, number in self.taken.items():
            if name not in self.used:
                place = self.transaction.statements[number].take.index(name)
                self.problems.add(
                    f"`{name}` is taken from a row but never used",
                    self._at_take(number, place),
                    field=self.branch.field("statements", number, "take", place),
                    suggestion=f"write `:{name}` in a later statement, or leave it out",
                )

    def _at_take(self, number: int, place: int) -> Position:
        listing = self.branch.node.entries.get("statements")
        statement = listing.items[number] if isinstance(listing, Listing) else None
        taken = statement.entries.get("take") if isinstance(statement, Tree) else None
        return taken.items[place].at if isinstance(taken, Listing) else self.branch.node.at
