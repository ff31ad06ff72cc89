from __future__ import annotations

from fairtrial.report.text import columns


def test_text_to_the_left_numbers_to_the_right() -> None:
    assert columns.table(["cell", "mean", "verdict"], [["low", "5", "faster"], ["higher", "12345", "x"]], left=1) == [
        "cell     mean  verdict",
        "──────  ─────  ───────",
        "low         5  faster",
        "higher  12345  x",
    ]


def test_a_table_too_wide_puts_its_leading_columns_on_lines_of_their_own() -> None:
    wide = "w" * 60
    lines = columns.table(["condition", "arm", "mean", "verdict"], [[wide, wide, "1", "faster"]], left=2)
    assert max(map(len, lines)) <= 2 * len(wide) + 3
    assert lines == ["condition · arm", "  mean  verdict", "  ────  ───────", f"{wide} · {wide}", "     1  faster"]


def test_prose_and_pairs_wrap() -> None:
    assert all(len(line) <= columns.PROSE_WIDTH for line in columns.prose("word " * 100))
    lines = columns.pairs([("a", "word " * 60), ("longer", "x")])
    assert lines[0].startswith("a       word")
    assert lines[1].startswith("        word")
    assert lines[-1] == "longer  x"
    assert columns.pairs([]) == []
