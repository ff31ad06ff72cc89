"""One SQL statement as text: its parameters, written `:name`, and what is wrong before any system sees it.

Owns what the systems' ways of quoting have in common: single and double quotes, backquotes, PostgreSQL's `$tag$`, and
comments. It must not know what parameters there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MARK = "?"  # what stands for a parameter once the statement is translated; PostgreSQL's driver numbers them

_TOKEN = re.compile(
    r"""
    (?P<line>--[^\n]*)
    | (?P<comment>/\*.*?(?:\*/|(?P<comment_open>\Z)))
    | (?P<single>'(?:[^']|'')*(?:'|(?P<single_open>\Z)))
    | (?P<double>"(?:[^"]|"")*(?:"|(?P<double_open>\Z)))
    | (?P<back>`[^`]*(?:`|(?P<back_open>\Z)))
    | (?P<dollar>(?<![\w$])\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?(?:\$(?P=tag)\$|(?P<dollar_open>\Z)))
    | (?P<cast>::|:=)
    | (?P<parameter>(?<![\w:]):(?P<name>[A-Za-z_]\w*))
    | (?P<mark>\?)
    | (?P<end>;)
    """,
    re.VERBOSE | re.DOTALL,
)
_UNCLOSED = {
    "comment_open": "the comment `/*` is never closed",
    "single_open": "the quote `'` is never closed",
    "double_open": 'the quote `"` is never closed',
    "back_open": "the backquote is never closed",
    "dollar_open": "the dollar quote is never closed",
}

_ESCAPED = re.compile(r"\\'")


@dataclass(frozen=True)
class StatementFault:
    """Something wrong at a place of a statement's text."""

    message: str
    offset: int
    suggestion: str = ""


@dataclass(frozen=True)
class ParsedStatement:
    """A statement taken apart.

    Attributes:
        sql: with a question mark for each parameter, without the semicolon at its end.
        parameters: their names, in the order of the question marks, each with its place in the text as written.
        faults: what is wrong with the text.
    """

    sql: str
    parameters: tuple[tuple[str, int], ...]
    faults: tuple[StatementFault, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names, in the order of the question marks."""
        return tuple(name for name, _ in self.parameters)


def read(text: str) -> ParsedStatement:
    """Takes a statement apart."""
    parameters = tuple(
        (token["name"], token.start()) for token in _TOKEN.finditer(text) if token["parameter"] is not None
    )
    faults = tuple(_faults(text))
    sql = _TOKEN.sub(_translated, text).strip()
    return ParsedStatement(sql, parameters, faults)


def _translated(token: re.Match[str]) -> str:
    if token["end"] is not None:
        return ""
    return MARK if token["parameter"] is not None else token[0]


def _faults(text: str) -> Iterator[StatementFault]:
    has_words = False
    ended: int | None = None
    position = 0
    for token in (*_TOKEN.finditer(text), None):
        between = text[position : token.start() if token else len(text)]
        is_comment = token is not None and (token["line"] is not None or token["comment"] is not None)
        if ended is not None and (between.strip() or (token and not is_comment)):
            yield StatementFault(
                "expected one statement, found a second one after `;`", ended, "give each statement an entry of its own"
            )
            return
        has_words = has_words or bool(between.strip())
        if token is None:
            break
        yield from _faults_of(token)
        if token["single"] is not None and _ESCAPED.search(token[0]):
            return  # what is quoted after it and what is not, nobody can say
        if token["end"] is not None:
            ended = token.start()
        has_words = has_words or not (is_comment or token["end"] is not None)
        position = token.end()
    if not has_words:
        yield StatementFault("expected an SQL statement, found nothing", 0)


def _faults_of(token: re.Match[str]) -> Iterator[StatementFault]:
    for group, message in _UNCLOSED.items():
        if token[group] is not None:
            yield StatementFault(message, token.start())
    if token["mark"] is not None:
        yield StatementFault("a question mark is not a parameter here", token.start(), "write a parameter as `:name`")
    if token["single"] is not None and (escaped := _ESCAPED.search(token[0])):
        place = token.start() + escaped.start()
        yield StatementFault(
            "a backslash before a quote does not have the same meaning in MariaDB as in other systems",
            place,
            "write `''`",
        )
