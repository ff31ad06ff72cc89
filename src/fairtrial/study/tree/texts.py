"""Where a letter of a YAML text stands in its file: what is wrong inside a statement is named by line and column.

Blanks are what YAML changes between a file and a value (indentation, folding, ends of lines); everything else stays in
its order, but for escapes in quotes. So a letter is found by counting those before it that are no blanks.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairtrial.study.tree.nodes import Position, Scalar

_BLOCKS = "|>"
_ESCAPED_BLANKS = "nrt 0abevfN_LP\n"  # what is a blank, or a control character, once it is read
_ESCAPED_CODES = {"x": 2, "u": 4, "U": 8}  # hexadecimal digits that follow


def position_in(scalar: Scalar, offset: int) -> Position:
    """The position of the letter at `offset` of a text; the text's own where its file is not known (`--set`)."""
    if not scalar.written or not isinstance(scalar.value, str):
        return scalar.at
    index = sum(not letter.isspace() for letter in scalar.value[:offset])
    places = list(_letters(scalar.written))
    if not places:
        return scalar.at
    place = places[min(index, len(places) - 1)]
    before = scalar.written[:place]
    line = before.count("\n")
    column = place - before.rfind("\n") if line else scalar.at.column + place
    return Position(scalar.at.file, scalar.at.line + line, column)


def _letters(written: str) -> Iterator[int]:
    """Where each letter of the value that is no blank begins."""
    style = written[0]
    if style in _BLOCKS:
        start = written.find("\n") + 1
        yield from (place for place in range(start, len(written)) if not written[place].isspace())
    elif style == "'":
        yield from _single_quoted(written)
    elif style == '"':
        yield from _double_quoted(written)
    else:
        yield from (place for place, letter in enumerate(written) if not letter.isspace())


def _single_quoted(written: str) -> Iterator[int]:
    place = 1
    while place < len(written) - 1:
        if not written[place].isspace():
            yield place
        place += 2 if written[place : place + 2] == "''" else 1


def _double_quoted(written: str) -> Iterator[int]:
    place = 1
    while place < len(written) - 1:
        if written[place] != "\\":
            if not written[place].isspace():
                yield place
            place += 1
            continue
        following = written[place + 1]
        if following not in _ESCAPED_BLANKS:
            yield place
        place += 2 + _ESCAPED_CODES.get(following, 0)
