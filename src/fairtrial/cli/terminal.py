"""Printing that never breaks what a reader copies: tables keep their lines, paths theirs."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table

UNLIMITED = 10_000  # columns; no table of ours comes near


def print_whole(console: Console, content: RenderableType) -> None:
    """Prints with every table as wide as it needs to be; prose wraps at the console's width where tables fit in it.

    A pipe is 80 columns wide to rich, which would cut a verdict table that a mail or a log is to show whole.
    """
    unlimited = console.options.update(max_width=UNLIMITED)
    widest = max((Measurement.get(console, unlimited, table).maximum for table in _tables(content)), default=0)
    width = console.width
    console.width = max(width, widest)
    console.print(content)
    console.width = width


def _tables(content: RenderableType) -> list[Table]:
    if isinstance(content, Table):
        return [content]
    return [table for part in content.renderables for table in _tables(part)] if isinstance(content, Group) else []
