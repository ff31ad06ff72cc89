"""Aligned tables of plain text, at most 100 columns wide."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

WIDTH: Final = 96  # fits a mailing list's archive and half a wide screen
PROSE_WIDTH: Final = 80
GAP: Final = "  "


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    """Lines of an aligned table: the first `left` columns to the left, the others to the right, the last to the left.

    A table too wide for `WIDTH` prints each row's leading columns on a line of their own.
    """
    widths = [max(len(row[index]) for row in [header, *rows]) for index in range(len(header))]
    if sum(widths) + len(GAP) * (len(widths) - 1) > WIDTH and left:
        return _stacked(header, rows, left=left)
    rule = GAP.join("─" * width for width in widths)
    return [_line(header, widths, left), rule, *(_line(row, widths, left) for row in rows)]


def _line(row: Sequence[str], widths: Sequence[int], left: int) -> str:
    cells = [
        text.ljust(width) if index < left or index == len(row) - 1 else text.rjust(width)
        for index, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return GAP.join(cells).rstrip()


def _stacked(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    body = table(header[left:], [row[left:] for row in rows], left=0)
    lines = [" · ".join(header[:left]), *(GAP + line for line in body[:2])]
    for row, line in zip(rows, body[2:], strict=True):
        lines += [" · ".join(row[:left]), GAP + line]
    return lines


def prose(text: str, *, indent: str = "") -> list[str]:
    """Wrapped text; continuation lines are indented by `indent`."""
    return textwrap.wrap(text, PROSE_WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def pairs(facts: Sequence[tuple[str, str]]) -> list[str]:
    """`label  value` lines, labels aligned, values wrapped."""
    if not facts:
        return []
    width = max(len(label) for label, _ in facts)
    lines: list[str] = []
    for label, value in facts:
        wrapped = textwrap.wrap(value, max(WIDTH - width - len(GAP), 40)) or [""]
        lines.append((label.ljust(width) + GAP + wrapped[0]).rstrip())
        lines += [" " * width + GAP + line for line in wrapped[1:]]
    return lines


def heading(text: str) -> list[str]:
    """A heading, underlined, with a blank line before it."""
    return ["", text, "=" * len(text)]
