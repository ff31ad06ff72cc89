"""A script's commands are numbered as pgbench does, and its mistakes have a line."""

from __future__ import annotations

import pytest

from fairtrial.workloads.pgbench.scripts import SqlFile, commands, faults, line_of

MIXED = """\
-- pays; an invoice
\\set amount random(1, \\
  100)
BEGIN; /* one
line; more */
SELECT 'a;b''c', $f$ \\not; meta $f$, "odd;name"
  FROM t WHERE i = :amount \\gset
UPDATE t SET s = E'it\\'s;' \\; SELECT 2;
\\if :amount > 5
  \\sleep 1 ms
\\elif true
\\else
\\endif
END
"""


def test_commands_have_the_lines_on_which_they_begin() -> None:
    found = [(command.line, command.meta) for command in commands(MIXED)]
    assert found == [
        (2, "set"),
        (4, ""),
        (6, ""),
        (8, ""),
        (9, "if"),
        (10, "sleep"),
        (11, "elif"),
        (12, "else"),
        (13, "endif"),
        (14, ""),
    ]
    assert list(faults(MIXED)) == []


def test_a_number_of_pgbenchs_becomes_a_line() -> None:
    assert [line_of(MIXED, number) for number in (0, 1, 2, 3, 10)] == [2, 4, 6, 8, None]


@pytest.mark.parametrize(
    ("text", "line", "message", "suggestion"),
    [
        ("", 1, "the script has no commands", "write an SQL statement"),
        ("-- nothing\n/* here */\n", 1, "the script has no commands", "write an SQL statement"),
        ("SELECT 1;\n\\sett a 1\n", 2, "pgbench does not have the command `\\sett`", "did you mean `\\set`?"),
        ("\\i other.sql\n", 1, "pgbench does not have the command `\\i`", "did you mean `\\if`?"),
        ("SELECT 1;\n\\copy t from stdin", 2, "pgbench does not have the command `\\copy`", ""),
        ("\\if true\nSELECT 1;\n", 1, "`\\if` without an `\\endif`", ""),
        ("SELECT 1;\n\\else\n", 2, "`\\else` without an `\\if` before it", ""),
        ("\\endif\n", 1, "`\\endif` without an `\\if` before it", ""),
    ],
)
def test_mistakes_are_named_with_their_line(text: str, *, line: int, message: str, suggestion: str) -> None:
    (found,) = faults(text)
    assert (found.line, found.message) == (line, message)
    assert suggestion in found.suggestion


def test_a_files_hash_is_of_its_text() -> None:
    assert SqlFile(name="a.sql", text="x").sha256.startswith("2d711642b726b044")
