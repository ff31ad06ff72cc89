"""Tables are whole wherever they are printed; prose keeps to the width there is."""

import io

import pytest
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from fairtrial.cli import terminal
from fairtrial.cli.terminal import print_whole


def printed(*parts: Table | Text | Group, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    print_whole(console, Group(*parts))
    assert console.width == width
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def wide(columns: int) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in range(columns):
        table.add_column(f"condition-{column}", no_wrap=True)
    table.add_row(*[f"level-number-{column}" for column in range(columns)])
    return table


def test_a_table_wider_than_a_pipe_keeps_its_rows_and_its_words() -> None:
    header, row = printed(Group(Text("title"), wide(12)))[1:]
    assert header.split() == [f"condition-{column}" for column in range(12)]
    assert row.split() == [f"level-number-{column}" for column in range(12)]


def test_prose_wraps_where_the_tables_fit() -> None:
    assert max(len(line) for line in printed(Text("word " * 60), wide(2))) <= 80


def test_a_path_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.Console(width=80).print("record: runs/:rocket:/one", markup=False)
    assert capsys.readouterr().out == "record: runs/:rocket:/one\n"
