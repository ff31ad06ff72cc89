"""The Phoronix Test Suite's `composite.xml`: one row per run of a test on a system, from its `RawString`.

Source: the schema of its result files (pts-core/openbenchmarking.org/schemas/result-file.xsd).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Final

from fairtrial.imports.reader import Figure, ImportSource, Reader, column, file_table, metric, refused, shared_state
from fairtrial.imports.rows import FileTable
from fairtrial.study.catalogue import Better

SOURCE: Final = "Phoronix Test Suite"
EXPECTED: Final = "the composite.xml of a complete result of the Phoronix Test Suite"
_HINT: Final = f"give {EXPECTED}"
_BETTER: Final[dict[str, Better]] = {"HIB": "higher", "LIB": "lower"}
_BARS: Final = ("", "BAR_GRAPH")  # what has a figure per run; the others are lines, pictures, passes


def read(source: ImportSource) -> FileTable:
    """Rows by test, system and run; a column per unit.

    Raises:
        InputError: the document is cut, or a result has no numbers.
    """
    if "<!ENTITY" in source.text:
        raise refused(source, "expected no entities of its own", hint=_HINT)
    try:
        root = ET.fromstring(source.text)  # noqa: S314 - no entities
    except (ET.ParseError, ValueError) as error:
        line = error.position[0] if isinstance(error, ET.ParseError) else 0
        raise refused(source, f"not a complete XML document: {error}", hint=_HINT, line=line) from error
    units: dict[str, tuple[str, Better]] = {}
    rows: list[dict[str, Figure]] = []
    for number, result in enumerate(root.iter("Result"), start=1):
        if _text(result, "DisplayFormat") not in _BARS:
            continue
        field = f"Result {number} ({_text(result, 'Title')})"
        scale, proportion = _text(result, "Scale"), _text(result, "Proportion") or "HIB"
        if proportion not in _BETTER:
            raise refused(source, f"expected HIB or LIB, found {proportion!r}", hint=_HINT, field=f"{field}.Proportion")
        name, known = column(scale), (scale, _BETTER[proportion])
        if units.setdefault(name, known) != known:
            name = f"{name}_{known[1]}"
            units[name] = known
        rows += _rows(source, result, name, field=field)
    if not rows:
        raise refused(source, "expected at least one result in numbers, found none", hint=_HINT, field="Result")
    return file_table(source, rows, lambda name: metric(name, *units[name], source=SOURCE))


def _rows(source: ImportSource, result: ET.Element, name: str, *, field: str) -> Iterator[dict[str, Figure]]:
    """Of one test: its systems in turn, the runs of each in order."""
    test = ": ".join(filter(None, (_text(result, "Title"), _text(result, "Description") or _text(result, "Arguments"))))
    for entry in result.iter("Entry"):
        system = _text(entry, "Identifier")
        text = _text(entry, "RawString") or _text(entry, "Value")
        try:
            values = [float(each) for each in text.split(":") if each.strip()]
        except ValueError:
            values = []
        if not values:
            message = f"expected numbers separated by colons, found {text!r}"
            raise refused(source, message, hint=_HINT, field=f"{field}.{system}.RawString")
        for value in values:
            yield {"test": test, "system": system, name: value}


def _text(element: ET.Element, tag: str) -> str:
    return (element.findtext(tag) or "").strip()


READER: Final = Reader(
    name="phoronix",
    expected=EXPECTED,
    recognises=lambda text: text.startswith("<") and "<PhoronixTestSuite" in text,
    read=read,
    arm="system",
    conditions=("test",),
    shared=shared_state(
        "all runs of a test on a system follow one another, and end when their values agree: the systems are not "
        "interleaved, and the number of runs depends on the values"
    ),
)
