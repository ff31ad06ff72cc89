"""Tables written by hand, judged as `fairtrial analyse` does."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from fairtrial import imports as foreign
from fairtrial.analyse import analyse_table
from fairtrial.analyse.models import Analysis, Comparison


def rows_of(text: str | bytes, *, format_name: str = "") -> foreign.Rows:
    """Rows of what stands on standard input."""
    content = text.encode() if isinstance(text, str) else text
    files = foreign.sources(["-"], names=None, standard_input=io.BytesIO(content))
    return foreign.gather(files, format_name=format_name)


def rows_of_files(*given: str | Path, names: str | None = None, format_name: str = "") -> foreign.Rows:
    """Rows of files, as they would be named at the command line."""
    files = foreign.sources([str(each) for each in given], names=names, standard_input=io.BytesIO())
    return foreign.gather(files, format_name=format_name)


def judged(rows: foreign.Rows | str, **asked: Any) -> Analysis:
    """The analysis of rows or of a table's text."""
    found = rows_of(rows) if isinstance(rows, str) else rows
    return analyse_table(*foreign.ask(found, foreign.Question(**asked)))


def only_comparison(analysis: Analysis, metric: str, cell: str = "all") -> Comparison:
    """The one comparison of a metric in a cell."""
    (found,) = next(each for each in analysis.cells if each.cell == cell).comparisons[metric]
    return found
