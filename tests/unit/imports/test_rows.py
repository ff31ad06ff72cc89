"""A cell's place: the line and column that an editor shows, whatever stands before it."""

from __future__ import annotations

import csv
import io

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.imports import ImportSource
from fairtrial.imports.rows import FileTable, Rows, position, trials
from fairtrial.imports.tables import csv_table


def part(text: str, name: str = "t.csv") -> FileTable:
    return csv_table(ImportSource(name=name, content=text.encode(), label="", number=1))


def at(text: str, line: int, column: int) -> str:
    """What stands there."""
    return text.splitlines()[line - 1][column - 1 :]


PLAIN = "name,block,value\nold,1,10\nnew,1,11\nold,2,12\n"


@pytest.mark.parametrize(("row", "column", "cell"), [(0, "name", "old"), (1, "value", "11"), (2, "block", "2")])
def test_a_cell_of_a_plain_table(row: int, column: str, cell: str) -> None:
    assert at(PLAIN, *position(part(PLAIN), row, column)).startswith(cell)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_columns_are_counted_in_characters_of_the_line_with_any_separator(separator: str) -> None:
    text = PLAIN.replace(",", separator)
    assert position(part(text), 1, "value") == (3, 7)


def test_comments_and_empty_lines_are_lines_too() -> None:
    text = "# first\n\n" + PLAIN.replace("new", "# between\nnew")
    assert at(text, *position(part(text), 1, "name")).startswith("new")
    assert at(text, *position(part(text), 2, "value")).startswith("12")


def test_a_cell_of_several_lines_moves_what_follows() -> None:
    text = PLAIN.replace("old,1", '"old\nand so on",1')
    assert at(text, *position(part(text), 1, "value")).startswith("11")


def test_quotes_before_a_cell_count_as_characters() -> None:
    text = 'name,note,value\nold,"a, b",10\nnew,"c ""d""",77\n'
    assert at(text, *position(part(text), 0, "value")).startswith("10")
    assert at(text, *position(part(text), 1, "value")).startswith("77")


def test_the_second_file_counts_from_its_own_first_line() -> None:
    parts = [part(PLAIN, "one.csv"), part(PLAIN, "two.csv")]
    rows = Rows(frame=pl.concat([each.frame for each in parts]), parts=parts)
    assert str(rows.problem(0, "value", "wrong")) == "one.csv:2:7: value: wrong"
    assert str(rows.problem(2, "value", "wrong")) == "one.csv:4:7: value: wrong"
    assert str(rows.problem(3, "value", "wrong")) == "two.csv:2:7: value: wrong"
    assert str(rows.problem(5, "name", "wrong")) == "two.csv:4:1: name: wrong"


def test_what_has_no_lines_is_named_by_file_alone() -> None:
    rows = Rows(frame=pl.DataFrame({"value": [1.0]}), parts=[FileTable("t.parquet", pl.DataFrame({"value": [1.0]}))])
    assert str(rows.problem(0, "value", "wrong")) == "t.parquet: value: wrong"


def test_several_files_are_named_by_the_first_and_how_many_more() -> None:
    parts = [part(PLAIN, name) for name in ("one.csv", "two.csv", "three.csv")]
    assert Rows(frame=parts[0].frame, parts=parts[:1]).name == "one.csv"
    assert Rows(frame=parts[0].frame, parts=parts).name == "one.csv and 2 more"


@pytest.mark.parametrize(
    ("line", "count"), [("", 0), ("# x,y", 0), ("#12,1", 0), ('"#12",1', 1), ('"1\n#2",1', 1), ('""', 1), ("a", 1)]
)
def test_comments_and_empty_lines_are_no_trials_and_quoted_names_are(line: str, count: int) -> None:
    lines = io.StringIO(f"a,b\n{line}\nc,d\n").readlines()
    found = list(trials(csv.reader(lines), lines))
    assert [found[0], found[-1], len(found)] == [["a", "b"], ["c", "d"], 2 + count]


WORDS = st.text("abcXYZ0189 .-", min_size=1, max_size=8).filter(lambda word: word.strip() and word[0] != "#")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(WORDS, min_size=3, max_size=3), min_size=1, max_size=8), st.data())
def test_the_place_of_every_cell_holds_that_cell(table: list[list[str]], data: st.DataObject) -> None:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows([["a", "b", "c"], *table])
    row = data.draw(st.integers(0, len(table) - 1))
    index = data.draw(st.integers(0, 2))
    found = position(part(stream.getvalue()), row, "abc"[index])
    assert at(stream.getvalue(), *found).startswith(table[row][index])
