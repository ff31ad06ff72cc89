"""redis-benchmark's `--csv`: one row per command that it tested, of one run."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Final

from fairtrial.imports.reader import Figure, ImportSource, Reader, file_table, metric, refused, summarised
from fairtrial.imports.rows import FileTable
from fairtrial.study.catalogue import MetricDefinition

VALUE: Final = "rps"
SOURCE: Final = "redis-benchmark"
EXPECTED: Final = "the output of `redis-benchmark --csv`"
_HEADER: Final = '"test","rps"'
_WITHOUT_HEADER: Final = re.compile(r'"[^"\n]+","[0-9.]+"$', re.MULTILINE)  # of versions before 6.2
_HINT: Final = f"give {EXPECTED}, one run per file"


def read(source: ImportSource) -> FileTable:
    """Rows in the order of tests.

    Raises:
        InputError: a line is cut, or has no number where one belongs.
    """
    rows = list(_rows(source))
    if not rows:
        raise refused(source, "expected at least one test, found none", hint=_HINT, line=1)
    return file_table(source, rows, definition)


def _rows(source: ImportSource) -> Iterator[dict[str, Figure]]:
    reader = csv.reader(io.StringIO(source.text), strict=True)
    header = ["test", VALUE]
    try:
        for number, cells in enumerate(reader):
            if number == 0 and cells[:2] == header:
                header = cells
            elif len(cells) != len(header):
                message = f"expected {len(header)} cells, as in the header, found {len(cells)}"
                raise refused(source, message, hint=_HINT, line=reader.line_num)
            else:
                yield {"test": cells[0], **_figures(source, header[1:], cells[1:], line=reader.line_num)}
    except csv.Error as error:
        raise refused(source, f"the line is cut: {error}", hint=_HINT, line=reader.line_num) from error


def _figures(source: ImportSource, names: list[str], cells: list[str], *, line: int) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, cell in zip(names, cells, strict=True):
        try:
            figures[name] = float(cell)
        except ValueError as error:
            raise refused(source, f"expected a number, found {cell!r}", hint=_HINT, line=line, field=name) from error
    return figures


def definition(name: str) -> MetricDefinition:
    """Requests per second, or a latency in milliseconds."""
    return (
        metric(name, "requests/s", "higher", source=SOURCE)
        if name == VALUE
        else metric(name, "ms", "lower", source=SOURCE)
    )


READER: Final = Reader(
    name=SOURCE,
    expected=EXPECTED,
    recognises=lambda text: text.startswith(_HEADER) or bool(_WITHOUT_HEADER.match(text)),
    read=read,
    values=(VALUE,),
    conditions=("test",),
    lost=summarised(
        "each run of redis-benchmark is one summary, and its clients wait for every answer: stalls within a run, "
        "and the time that requests would have waited for them, are lost"
    ),
)
