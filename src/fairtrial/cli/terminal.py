"""Printing that never breaks what a reader copies: tables keep their lines, paths theirs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich import console as rich
from rich.console import ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table

from fairtrial.words import printable

UNLIMITED = 10_000  # columns; no table of ours comes near


class Console(rich.Console):
    """Prints what others may have written: a terminal obeys nothing in it, and `:name:` in a path is no picture."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """The same segments, with what would not be seen as escape sequences; the console's own controls stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Says so, where rich would end with the code of a finding and no run could note why it ended."""
        raise BrokenPipeError


def say(text: str) -> None:
    """Prints text that others may have written: a terminal obeys nothing in it."""
    print(printable(text))


def print_whole(console: rich.Console, content: RenderableType) -> None:
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
