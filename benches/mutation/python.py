"""Mutation operators for Python, by its syntax tree.

Strings are never mutated, nor is what a `raise` says; annotations only where they call something, as `Field(ge=1)`;
decorators not at all. Parts of f-strings are left alone because Python 3.11 does not know where they are.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from mutation.sites import Edit

if TYPE_CHECKING:
    from collections.abc import Iterator

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
}
JOINS: dict[type[ast.boolop], tuple[str, str]] = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
DECLARED = {"frozen"}  # arguments that promise the type checker something


def edits(source: str) -> list[Edit]:
    """Every edit of a line of code."""
    visitor = _Sites(source)
    visitor.visit(ast.parse(source))
    return visitor.found


class _Sites(ast.NodeVisitor):
    def __init__(self, source: str) -> None:
        self.lines = source.splitlines()
        self.found: list[Edit] = []

    def column(self, line: int, offset: int) -> int:
        """In characters; the syntax tree counts bytes."""
        return len(self.lines[line - 1].encode()[:offset].decode())

    def replace(self, node: ast.expr | ast.stmt, replacement: str, operator: str) -> None:
        if node.lineno == node.end_lineno and node.end_col_offset is not None:
            start, end = self.column(node.lineno, node.col_offset), self.column(node.lineno, node.end_col_offset)
            self.found.append(Edit(node.lineno, start, end, replacement, operator))

    def between(self, left: ast.expr, right: ast.expr, change: tuple[str, str]) -> None:
        """The operator sign that stands between two operands."""
        if left.end_lineno == right.lineno and left.end_col_offset is not None:
            start, end = self.column(right.lineno, left.end_col_offset), self.column(right.lineno, right.col_offset)
            at = self.lines[right.lineno - 1].index(change[0], start, end)
            self.found.append(Edit(right.lineno, at, at + len(change[0]), change[1], " to ".join(change)))

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, sign, right in zip(operands, node.ops, operands[1:], strict=False):
            self.between(left, right, COMPARISONS[type(sign)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        text = any(isinstance(each, ast.JoinedStr) or _is(each, str) for each in (node.left, node.right))
        if type(node.op) in ARITHMETIC and not text:
            self.between(node.left, node.right, ARITHMETIC[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between(left, right, JOINS[type(node.op)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start = self.column(node.lineno, node.col_offset)
            self.found.append(Edit(node.lineno, start, start + len("not "), "", "not removed"))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.replace(node, str(not node.value), f"{node.value} to {not node.value}")
        elif isinstance(node.value, int) and self.decimal(node):
            self.replace(node, str(node.value + 1), "constant + 1")
            if node.value:
                self.replace(node, str(node.value - 1), "constant - 1")

    def decimal(self, node: ast.Constant) -> bool:
        line = self.lines[node.lineno - 1]
        digits = line[self.column(node.lineno, node.col_offset) : self.column(node.lineno, node.end_col_offset or 0)]
        return re.fullmatch(r"\d+", digits) is not None

    def visit_Return(self, node: ast.Return) -> None:
        if node.value and not (isinstance(node.value, ast.Constant) and not node.value.value):
            self.replace(node, "return None", "return None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.replace(node, "pass", "call deleted")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Only of attributes and items: without the first assignment a name is not defined, which any test notices."""
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self.replace(node, "pass", "assignment deleted")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.replace(node, "pass", "assignment deleted")
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.annotation(node.annotation)
        if node.value:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            self.annotation(argument.annotation)
        for statement in node.body:
            self.visit(statement)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - ast.NodeVisitor's name

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in DECLARED:
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Not looked into."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """Not looked into."""

    def annotation(self, node: ast.expr | None) -> None:
        for call in _calls(node) if node else ():
            self.visit(call)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """The outermost calls."""
    if isinstance(node, ast.Call):
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from _calls(child)


def _is(node: ast.expr, kind: type) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, kind)
