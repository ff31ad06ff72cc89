"""A script of pgbench's taken apart: its commands, their lines, and mistakes that can be named before a server sees it.

Commands are counted from 0: statements, and what begins with a backslash. Source: pgbench's manual page, "Custom
Scripts" and "Meta Commands", and exprscan.l of 15.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from pydantic import Field

from fairtrial.study.tree.problems import did_you_mean
from fairtrial.workloads.text_files import TextFile

ENDING: Final = ("gset", "aset")  # they end the statement before them instead of being commands of their own
CONDITIONAL: Final = ("if", "elif", "else", "endif")
META: Final = (
    *CONDITIONAL,
    *ENDING,
    "endpipeline",
    "set",
    "setshell",
    "shell",
    "sleep",
    "startpipeline",
    "syncpipeline",
)
_TOKEN: Final = re.compile(
    r"""
      (?P<skipped>--[^\n]*|/\*.*?\*/|\s+)
    | (?P<quoted>[eE]'(?:[^'\\]|''|\\.)*' | '(?:[^']|'')*' | "[^"]*" | (?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?P=tag))
    | (?P<joined>\\;)
    | \\(?P<meta>[A-Za-z]\w*)(?:\\\n|[^\n])*
    | (?P<end>;)
    | (?P<word>\w+|.)
    """,
    re.VERBOSE | re.DOTALL,
)


class SqlFile(TextFile):
    """A file of SQL."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]+\.sql$")


class ScriptCommand(NamedTuple):
    """One command of a script: the line on which it begins, from 1, and its name if it is one of pgbench's own."""

    line: int
    meta: str = ""


class ScriptFault(NamedTuple):
    """What is wrong with a script, and on which line."""

    line: int
    message: str
    suggestion: str = ""


def commands(text: str) -> list[ScriptCommand]:
    """What pgbench numbers, in its order."""
    return [command for command in _all(text) if command.meta not in ENDING]


def _all(text: str) -> Iterator[ScriptCommand]:
    begun = 0  # the line of a statement that has not ended
    for token in _TOKEN.finditer(text):
        if token["skipped"] is not None:
            continue
        line = text.count("\n", 0, token.start()) + 1
        if token["meta"] is None and token["end"] is None:
            begun = begun or line
            continue
        if begun:
            yield ScriptCommand(begun)
        begun = 0
        if token["meta"] is not None:
            yield ScriptCommand(line, token["meta"])
    if begun:
        yield ScriptCommand(begun)


def faults(text: str) -> Iterator[ScriptFault]:
    """Commands that pgbench does not know, conditions that do not close, and a script without anything."""
    entries = list(_all(text))
    if not commands(text):
        yield ScriptFault(1, "the script has no commands", "write an SQL statement")
    is_open: list[ScriptCommand] = []
    for command in entries:
        if command.meta and command.meta not in META:
            nearest = did_you_mean(command.meta, META).replace("`", "`\\", 1)
            yield ScriptFault(command.line, f"pgbench does not have the command `\\{command.meta}`", nearest)
        if command.meta == "if":
            is_open.append(command)
        elif command.meta in CONDITIONAL and not is_open:
            yield ScriptFault(command.line, f"`\\{command.meta}` without an `\\if` before it")
        elif command.meta == "endif":
            is_open.pop()
    for command in is_open:
        yield ScriptFault(command.line, "`\\if` without an `\\endif`")


def line_of(text: str, number: int) -> int | None:
    """The line of the command to which pgbench gives this number; None if it is not found."""
    entries = commands(text)
    return entries[number].line if number < len(entries) else None
