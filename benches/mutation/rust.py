"""Mutation operators for Rust, by regular expressions on lines that are code.

Comments, strings, attributes, `use` and everything below `#[cfg(test)]` are blanked first. An operator may make code
that does not compile; whoever draws draws another then.
"""

from __future__ import annotations

import re

from mutation.sites import Edit

TEXT = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    | b?r(?P<hashes>\#*)".*?"(?P=hashes)
    | b?"(?:\\.|[^"\\])*"
    | b?'(?:\\(?:x..|u\{[^}]*\}|.)|[^\\'\n])'""",
    re.DOTALL | re.VERBOSE,
)
TEST = re.compile(r"#\[cfg\(test\)\]")
ATTRIBUTE = re.compile(r"#!?\[")
USE = re.compile(r"^[ ]*(?:pub(?:\([^)]*\))? )?use [^;]*;", re.MULTILINE)
PAIRS = {"(": ")", "[": "]", "{": "}"}

SIGNS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "-": "+", "*": "/", "/": "*", "+=": "-=", "-=": "+=", "&&": "||",
}  # fmt: skip
SIGN = re.compile(r"(?<= )(?:<=?|>=?|==|!=|[-*/]|\+=|-=|&&)(?= )")
PLUS = re.compile(r"(?<= )\+(?= (?!'|\?|[A-Z][a-z]\w*\b(?!::)))")  # not that of a bound: `Read + Send`
OR = re.compile(r"(?<=[\w)\]?}>\"] )\|\|(?= )")  # not a closure's
NOT = re.compile(r"(?<![\w!#])!(?=[\w(])")
BOOLEAN = re.compile(r"\b(?:true|false)\b")
INTEGER = re.compile(r"(?:(?<![\w.])|(?<=\.\.))(?P<digits>\d(?:_?\d)*)(?:_?[iu](?:8|16|32|64|128|size))?(?!\w|\.\d)")
RETURN = re.compile(r"^ *return (?P<value>.+);$")
OK = re.compile(r"^ *Ok\((?P<value>.+)\)$")
SOME = re.compile(r"^ *(?P<value>Some\(.+\))$")
CALL = re.compile(r"^ *[a-z_*&][\w.:&*\[\]]*(?:::<[^>]*>)?\(.*\)\??;$")
ASSIGNMENT = re.compile(r"^ *[*a-z_][\w.\[\]*]* (?:[-+*/|&^]|<<|>>)?= .*;$")
KEYWORD = re.compile(r"^ *(?:let|use|return|break|continue|const|static|type|fn|pub|if|else|match|unsafe)\b")
BEFORE_A_STATEMENT = (";", "{", "}")


def edits(source: str) -> list[Edit]:
    """Every edit of a line of code."""
    found: list[Edit] = []
    before = ";"
    for number, line in enumerate(code(source).splitlines(), 1):
        found += _signs(number, line) + _values(number, line)
        if before.endswith(BEFORE_A_STATEMENT):
            found += _deletions(number, line)
        before = line.rstrip() or before
    return found


def code(source: str) -> str:
    """The source with all else blanked: each character stays where it was."""
    text = TEXT.sub(lambda match: _blank(match[0], " " if match["comment"] else '"'), source)
    for test in reversed(list(TEST.finditer(text))):
        end = _end_of_item(text, _closing(text, test.start() + 1))
        text = text[: test.start()] + _blank(text[test.start() : end]) + text[end:]
    for attribute in reversed(list(ATTRIBUTE.finditer(text))):
        end = _closing(text, attribute.end() - 1)
        text = text[: attribute.start()] + _blank(text[attribute.start() : end]) + text[end:]
    return USE.sub(lambda match: _blank(match[0]), text)


def _blank(text: str, by: str = " ") -> str:
    return re.sub(r"[^\n]", by, text)


def _closing(text: str, at: int) -> int:
    """Just behind the bracket that closes the one at `at`."""
    opening, closing, depth = text[at], PAIRS[text[at]], 0
    for index in range(at, len(text)):
        depth += (text[index] == opening) - (text[index] == closing)
        if not depth:
            return index + 1
    return len(text)


def _end_of_item(text: str, start: int) -> int:
    """Just behind the item that begins at `start`, with its own attributes."""
    for index in range(start, len(text)):
        if text[index] == ";":
            return index + 1
        if text[index] == "{":
            return _closing(text, index)
    return len(text)


def _signs(number: int, line: str) -> list[Edit]:
    changes = [(match, SIGNS[match[0]]) for match in SIGN.finditer(line)]
    changes += [(match, "-") for match in PLUS.finditer(line)]
    changes += [(match, "&&") for match in OR.finditer(line)]
    return [Edit(number, match.start(), match.end(), new, f"{match[0]} to {new}") for match, new in changes]


def _values(number: int, line: str) -> list[Edit]:
    found = [Edit(number, match.start(), match.end(), "", "not removed") for match in NOT.finditer(line)]
    for match in BOOLEAN.finditer(line):
        other = "false" if match[0] == "true" else "true"
        found.append(Edit(number, match.start(), match.end(), other, f"{match[0]} to {other}"))
    for match in INTEGER.finditer(line):
        value = int(match["digits"])
        found.append(Edit(number, match.start(), match.end("digits"), str(value + 1), "constant + 1"))
        if value:
            found.append(Edit(number, match.start(), match.end("digits"), str(value - 1), "constant - 1"))
    for pattern, new in ((RETURN, "Default::default()"), (OK, "Default::default()"), (SOME, "None")):
        found += [
            Edit(number, match.start("value"), match.end("value"), new, f"return {new}")
            for match in pattern.finditer(line)
            if match["value"] not in {"()", "None"} and _balanced(match["value"])
        ]
    return found


def _deletions(number: int, line: str) -> list[Edit]:
    if KEYWORD.search(line) or not _balanced(line):
        return []
    start, end = len(line) - len(line.lstrip()), len(line.rstrip())
    kinds = ((CALL, "call deleted"), (ASSIGNMENT, "assignment deleted"))
    return [Edit(number, start, end, "{}", kind) for pattern, kind in kinds if pattern.search(line.rstrip())]


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character in PAIRS) - (character in PAIRS.values())
        if depth < 0:
            return False
    return depth == 0
