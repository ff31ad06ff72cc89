"""A letter of a text is found in its file, however YAML wrote the text."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import (
    DoubleQuotedScalarString,
    FoldedScalarString,
    LiteralScalarString,
    SingleQuotedScalarString,
)

from fairtrial.study.tree.nodes import Position, Scalar, Tree
from fairtrial.study.tree.problems import Problems
from fairtrial.study.tree.reading import parse
from fairtrial.study.tree.texts import position_in

WORD = st.text(alphabet="abc:=('),.?*<é", min_size=1, max_size=9)
TEXT = st.lists(WORD, min_size=1, max_size=12).map(" ".join)
STYLES: list[Callable[[str], str]] = [
    str,
    LiteralScalarString,
    FoldedScalarString,
    SingleQuotedScalarString,
    DoubleQuotedScalarString,
]


def written(text: str, *, width: int = 40) -> str:
    yaml = YAML()
    yaml.width = width
    stream = io.StringIO()
    yaml.dump({"before": 1, "outer": {"text": text}}, stream)
    return stream.getvalue()


def read(document: str) -> Scalar:
    root = parse(document, file="f.yaml", problems=Problems())
    assert isinstance(root, Tree)
    node = root.tree("outer").entries["text"]
    assert isinstance(node, Scalar)
    return node


@pytest.mark.parametrize("style", STYLES)
@given(text=TEXT, data=st.data())
def test_the_letter_at_the_position_found_is_the_letter_of_the_text(
    style: Callable[[str], str], text: str, data: st.DataObject
) -> None:
    document = written(style(text))
    node = read(document)
    value = str(node.value)
    offset = data.draw(st.sampled_from([place for place, letter in enumerate(value) if not letter.isspace()]))
    at = position_in(node, offset)
    line = document.splitlines()[at.line - 1]
    found = line[at.column - 1]
    assert found == value[offset] or line[at.column - 1 :].startswith("\\"), (document, offset, at)


@pytest.mark.parametrize(
    ("document", "letter", "line", "column"),
    [
        ("outer: {text: one two}\n", "t", 1, 19),
        ("outer: {text: 'it''s two'}\n", "t", 1, 22),
        ('outer: {text: "a\\tb \\u00e9 c"}\n', "c", 1, 28),
        ('outer: {text: "a \\"b\\" c"}\n', "c", 1, 24),
        ("outer:\n  text: |  # why\n\n    one\n      two\n", "w", 5, 8),
        ("outer:\n  text: >-\n    one\n    two\n\n    six\n", "x", 6, 7),
        ("outer:\n  text: one\n    two\n", "w", 3, 6),
    ],
)
def test_each_way_to_write_a_text(document: str, letter: str, line: int, column: int) -> None:  # noqa: PLR0917
    node = read(document)
    offset = str(node.value).rindex(letter)
    assert position_in(node, offset) == Position("f.yaml", line, column)


def test_the_end_of_a_text_is_its_last_letter_and_a_text_of_no_file_is_itself() -> None:
    node = read("outer: {text: one}\n")
    assert position_in(node, 99) == Position("f.yaml", 1, 17)
    assert position_in(read("outer: {text: 'one'}\n"), 99) == Position("f.yaml", 1, 18), "not the quote behind it"
    assert position_in(read('outer: {text: "one"}\n'), 99) == Position("f.yaml", 1, 18)
    assert position_in(read("outer: {text: ''}\n"), 0) == Position("f.yaml", 1, 15)
    nowhere = Scalar("one two", "one two", Position("--set"))
    assert position_in(nowhere, 4) == Position("--set")
