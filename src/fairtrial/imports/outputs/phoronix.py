"""The Phoronix Test Suite's `composite.xml`: one row per run of a test on a system, from its `RawString`.

Source: the schema of its result files (pts-core/openbenchmarking.org/schemas/result-file.xsd).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from fairtrial.analyse.models import Doubt
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
    without: list[str] = []
    results = [each for each in enumerate(root.iterfind("Result"), start=1) if _text(each[1], "DisplayFormat") in _BARS]
    named = Counter((_test(result), _text(result, "Scale")) for _, result in results)
    for number, result in results:
        field = f"Result {number} ({_text(result, 'Title')})"
        scale, proportion = _text(result, "Scale"), _text(result, "Proportion") or "HIB"
        if proportion not in _BETTER:
            raise refused(source, f"expected HIB or LIB, found {proportion!r}", hint=_HINT, field=f"{field}.Proportion")
        name, known = column(scale), (scale, _BETTER[proportion])
        if units.setdefault(name, known) != known:
            name = f"{name}_{known[1]}"
            units[name] = known
        entries = [(_text(each, "Identifier"), _figures(each)) for each in result.iterfind("Data/Entry")]
        test = _test(result, versioned=named[_test(result), scale] > 1)
        without += [f"{test} on {system}" for system, figures in entries if not figures]
        for system, figures in entries:
            values = _values(source, figures, field=f"{field}.{system}.RawString")
            rows += [{"test": test, "system": system, name: value} for value in values]
    if not rows:
        raise refused(source, "expected at least one result in numbers, found none", hint=_HINT, field="Result")
    table = file_table(source, rows, lambda name: metric(name, *units[name], source=SOURCE))
    return replace(table, doubts=tuple(_left_out(source, without)))


def _values(source: ImportSource, figures: str, *, field: str) -> list[float]:
    """Of the runs of a test on a system, in order."""
    try:
        return [float(each) for each in figures.split(":") if each.strip()]
    except ValueError as error:
        message = f"expected numbers separated by colons, found {figures!r}"
        raise refused(source, message, hint=_HINT, field=field) from error


def _test(result: ET.Element, *, versioned: bool = False) -> str:
    """Its name with what distinguishes it from others of its profile."""
    title = " ".join([_text(result, "Title"), *([_text(result, "AppVersion")] * versioned)])
    return ": ".join(filter(None, (title, _text(result, "Description") or _text(result, "Arguments"))))


def _figures(entry: ET.Element) -> str:
    """Of the runs, separated by colons; empty where a test failed on a system."""
    return (_text(entry, "RawString") or _text(entry, "Value")).strip(":")


def _left_out(source: ImportSource, without: Sequence[str]) -> Iterator[Doubt]:
    if without:
        named = without[0] + (f" and {len(without) - 1} more" if len(without) > 1 else "")
        yield Doubt(
            code="missing",
            message=f"{source.name}: {named}: no result in numbers; left out",
            advice="find out why the test failed there: the reason may depend on the system",
        )


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
