"""Files that somebody might hand to `fairtrial analyse`, broken in every way: refused with reasons, or wholly used."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
from attack_tables import Attacked

from fairtrial.cli import main
from fairtrial.imports import READERS

FINE, REFUSED = 0, 2
LAST = 200  # characters of a traceback that are shown
MARK = "\ufeff"  # what spreadsheets put before UTF-8
HOSTILE, PAIRED = 0.15, 0.7  # shares of the cells on which a trick is played, and of tables asked about with blocks
ABSENT = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "None"})  # as docs/reference/commands.md lists them
OUTPUTS = Path(__file__).parents[1] / "tests" / "unit" / "imports" / "data"  # of real tools, a file or two of each
NAMED = 0.3  # share of the outputs whose format is named, rightly or not
VALUES = {"jmh.json": "ns_per_op", "phoronix.xml": "MIPS"}  # of files that need a value named
COLUMNS = ("kernel", "x", "y", "block", "tpm")

# What stands where a number should. The first are numbers in anyone's reading; of larger ones differences are none.
NUMBERS = ("1e-300", "1e300", "5e-324", "0", "-0.0", "-3.5", "+7", ".5", "5.", "1E3", " 4 ")
MISSING = ("", "NA", "NaN", "nan", "null", "None", "N/A")
NO_NUMBERS = ("inf", "-Infinity", "1e400", "−5", "1,234.5", "1.234,5", "12 %", "fast", "0x10", "1_000", "٣", "--1")


@dataclass(frozen=True)
class Hostile:
    """A table as it is written, and how it is asked about.

    Attributes:
        tricks: what was done to it, for a message.
        values: of its rows, as they are written.
        rows: how many it has; -1 where what is a row is nobody's to say.
        labels: under each of which the file is named; none: without.
    """

    content: bytes
    tricks: tuple[str, ...]
    values: tuple[str, ...]
    rows: int
    options: tuple[str, ...]
    labels: tuple[str, ...] = ()


def hostile_output(random: np.random.Generator) -> Hostile:
    """The output of a tool with some tricks played on it."""
    files = sorted(path for path in OUTPUTS.iterdir() if path.suffix in {".json", ".txt", ".csv", ".xml"})
    path = files[random.integers(0, len(files))]
    content = path.read_bytes()
    forms = [str(each) for each in random.permutation(list(OUTPUT_FORMS))[: random.integers(0, 3)]]
    for form in forms:
        content = OUTPUT_FORMS[form](random, content)
    options = ["--value", VALUES[path.name]] if path.name in VALUES else []
    if random.random() < NAMED:
        options += ["--format", str(random.choice(list(READERS)))]
    return Hostile(content, (path.name, *forms), (), rows=-1, options=tuple(options), labels=("a", "b"))


def hostile(random: np.random.Generator) -> Hostile:
    """One table with some tricks played on it."""
    records, options = _plain(random), ["--value", "tpm", "--arm", "kernel", "--by", "x,y", "--baseline", "a"]
    if random.random() < PAIRED:
        options += ["--block", "block"]
    tricks = [str(each) for each in random.permutation(list(TRICKS))[: random.integers(0, 4)]]
    for trick in tricks:
        records = TRICKS[trick](random, records)
    header = list(COLUMNS)
    forms = [str(each) for each in random.permutation(list(FORMS))[: random.integers(0, 3)]]
    lines = [header, *records]
    text = "".join(",".join(_quoted(cell) for cell in line) + "\n" for line in lines)
    content = text.encode()
    for form in forms:
        content = FORMS[form](random, content)
    broken = any(form in BROKEN for form in forms)
    values = () if broken else tuple(record[-1] for record in records)
    return Hostile(content, (*tricks, *forms), values, -1 if broken else len(records), tuple(options))


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set(',"\r\n') else cell


def _plain(random: np.random.Generator) -> list[list[str]]:
    n, conditions = int(random.integers(1, 9)), [("p", "r"), ("q", "r")][: random.integers(1, 3)]
    level = 10 ** random.uniform(-3, 6)
    return [
        [arm, x, y, str(block), repr(float(level * np.exp(random.normal(0, 0.03))))]
        for x, y in conditions
        for block in range(1, n + 1)
        for arm in "abc"[: random.integers(2, 4)]
    ]


Records = list[list[str]]
Trick = Callable[[np.random.Generator, Records], Records]


def _some(random: np.random.Generator, records: Records, change: Callable[[list[str]], list[str]]) -> Records:
    return [change(record) if random.random() < HOSTILE else record for record in records]


def _values_from(choices: Sequence[str]) -> Trick:
    return lambda random, records: _some(random, records, lambda record: [*record[:-1], str(random.choice(choices))])


def _column(index: int, change: Callable[[np.random.Generator, str], str]) -> Trick:
    def changed(random: np.random.Generator, records: Records) -> Records:
        return _some(
            random, records, lambda record: [*record[:index], change(random, record[index]), *record[index + 1 :]]
        )

    return changed


def _everywhere(index: int, change: Callable[[str], str]) -> Trick:
    return lambda _random, records: [
        [*record[:index], change(record[index]), *record[index + 1 :]] for record in records
    ]


TRICKS: dict[str, Trick] = {
    "strange numbers": _values_from(NUMBERS),
    "missing values": _values_from(MISSING),
    "no numbers": _values_from(NO_NUMBERS),
    "nothing but missing values": lambda _random, records: [[*record[:-1], "NA"] for record in records],
    "zeros": _values_from(("0", "0.0")),
    "negative values": _everywhere(4, lambda value: f"-{value}"),
    "huge exponents": lambda random, records: [
        [*record[:-1], f"{random.integers(1, 10)}e{random.integers(-320, 301)}"] for record in records
    ],
    "constants": _everywhere(4, lambda _value: "12"),
    "block 01 and 1": _column(3, lambda _random, block: f"0{block}"),
    "block 1.0 and 1": _column(3, lambda _random, block: f"{block}.0"),
    "large blocks": _everywhere(3, lambda block: f"170000000000000000{block}"),
    "larger blocks than any integer": _everywhere(3, lambda block: f"{block}e30"),
    "empty names": _column(0, lambda _random, _arm: ""),
    "conditions with plus signs": lambda random, records: [
        [record[0], *(("p+q", "r") if random.integers(2) else ("p", "q+r")), *record[3:]] for record in records
    ],
    "arms like numbers": _everywhere(0, lambda arm: {"a": "a", "b": "01", "c": "1"}.get(arm, arm)),
    "arms with lines and commas": _everywhere(0, lambda arm: {"a": "a", "b": 'b,"b\nb'}.get(arm, arm)),
    "markup in names": _everywhere(1, lambda x: f"[red]{x}[/bold]"),
    "rows twice": lambda random, records: [*records, records[random.integers(0, len(records))]],
    "one arm": lambda _random, records: [record for record in records if record[0] == "a"] or records,
    "an arm in one cell only": lambda _random, records: (
        [record for record in records if record[0] != "b" or record[1] != records[0][1]] or records
    ),
    "blocks of one arm only": _column(3, lambda random, block: f"{int(random.integers(100, 1000))}{block}"),
}

Form = Callable[[np.random.Generator, bytes], bytes]


def _cut(random: np.random.Generator, content: bytes) -> bytes:
    return content[: random.integers(0, max(1, len(content)))]


def _noise(random: np.random.Generator, content: bytes) -> bytes:
    at = random.integers(0, max(1, len(content)))
    return content[:at] + bytes(random.integers(0, 256, int(random.integers(1, 5))).tolist()) + content[at:]


FORMS: dict[str, Form] = {
    "a byte order mark": lambda _random, content: MARK.encode() + content,
    "CRLF": lambda _random, content: content.replace(b"\n", b"\r\n"),
    "empty lines": lambda _random, content: content + b"\n\n",
    "comments": lambda _random, content: b"# made by hand, of all things, for you, and you\n" + content,
    "no newline at the end": lambda _random, content: content.rstrip(b"\n"),
    "a header twice": lambda _random, content: content.replace(b"kernel,x,y", b"kernel,x,x"),
    "semicolons": lambda _random, content: content.replace(b",", b";"),
    "a ragged row": lambda _random, content: content + b"a,p\n",
    "cut short": _cut,
    "random bytes": _noise,
    "UTF-16": lambda _random, content: content.decode(errors="replace").encode("utf-16"),
    "CR": lambda _random, content: content.replace(b"\n", b"\r"),
    "nothing at all": lambda _random, _content: b"",
}


def _other_number(random: np.random.Generator, content: bytes) -> bytes:
    numbers = list(re.finditer(rb"[0-9.]+", content))
    if not numbers:
        return content
    number = numbers[random.integers(0, len(numbers))]
    written = str(random.choice([*NUMBERS, *MISSING, *NO_NUMBERS, "9" * 400, "[" * 2000]))
    return content[: number.start()] + written.encode() + content[number.end() :]


OUTPUT_FORMS: dict[str, Form] = {
    **{
        name: FORMS[name]
        for name in ("a byte order mark", "CRLF", "empty lines", "cut short", "random bytes", "UTF-16")
    },
    "another number": _other_number,
    "twice": lambda _random, content: content + content,
}
BROKEN = frozenset({"a header twice", "semicolons", "a ragged row", "cut short", "random bytes", "UTF-16", "CR"}) | {
    "nothing at all"
}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str
    warned: tuple[str, ...]


def command(*arguments: str) -> Ended:
    """`fairtrial` with these arguments, in this process: starting one takes longer than most tables."""
    out, err = io.StringIO(), io.StringIO()
    with (
        warnings.catch_warnings(record=True) as warned,
        mock.patch.object(sys, "argv", ["fairtrial", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("always")
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Ended(code, out.getvalue(), err.getvalue(), tuple(str(each.message) for each in warned))


def answers(table: Hostile, path: Path) -> tuple[Ended, Ended]:
    """For people, and as JSON."""
    path.write_bytes(table.content)
    files = [f"{label}={path}" for label in table.labels] or [str(path)]
    asked = ("analyse", *files, *table.options)
    return command(*asked), command(*asked, "--json")


def wrong(table: Hostile, said: tuple[Ended, Ended]) -> Iterator[str]:
    """Everything about the answers that should not be."""
    for ended in said:
        if ended.code not in (FINE, REFUSED):
            yield f"ended with {ended.code}: {ended.err.strip()[-LAST:]}"
        if ended.warned:
            yield f"warned: {ended.warned[0]}"
        if ended.code == REFUSED and not ("error: " in ended.err and "hint: " in ended.err):
            yield f"refused without a reason or a hint: {ended.err}"
    people, as_json = said
    if people.code != as_json.code:
        yield f"ended with {people.code}, as JSON with {as_json.code}"
    elif as_json.code == FINE and table.rows >= 0:
        yield from _lost(table, json.loads(as_json.out)["analysis"])


def _lost(table: Hostile, analysis: dict[str, Any]) -> Iterator[str]:
    """Values that are neither used nor said to be left out, and values that nobody wrote."""
    if analysis["counts"]["used"] != table.rows:
        yield f"{analysis['counts']['used']} rows are counted of {table.rows}"
    written = [value.strip() for value in table.values]
    expected = Counter(float(value) for value in written if value not in ABSENT)
    arms = [arm for cell in analysis["cells"] for arm in cell["summaries"]["tpm"]]
    used = Counter(value for arm in arms for value in arm["values"])
    if used != expected:
        yield f"values {sorted((used - expected).elements())} are nobody's, {sorted((expected - used).elements())} lost"
    if problem := _left_out(analysis, absent=len(written) - expected.total()):
        yield problem


def _left_out(analysis: dict[str, Any], *, absent: int) -> str:
    """Whether doubts say which rows count for nothing: without a value, without a partner, without a comparison."""
    compared = [each for cell in analysis["cells"] for each in cell["comparisons"]["tpm"]]
    missing = {
        (doubt["cell"], doubt["arm"]): int(doubt["message"].split()[0])
        for each in compared
        for doubt in each["doubts"]
        if doubt["code"] == "missing"
    }
    not_made = any(doubt["code"] == "missing" for doubt in analysis["doubts"])
    said = sum(missing.values())
    if said > absent or (said < absent and not not_made):
        return f"{absent} values are missing, of which {said} are said to be"
    if len(compared) < len(analysis["cells"]) * (len(analysis["levels"]) - 1) and not not_made:
        return "a comparison is missing, and nothing says so"
    for cell in analysis["cells"]:
        size = {arm["arm"]: arm["n"] for arm in cell["summaries"]["tpm"]}
        for each in cell["comparisons"]["tpm"]:
            alone = size[each["baseline"]] + size[each["arm"]] - 2 * each["n"]
            if alone and "unequal_n" not in {doubt["code"] for doubt in each["doubts"]}:
                return f"{alone} trials of {each['cell']} {each['arm']} have no partner, and nothing says so"
    return ""


def imports(random: np.random.Generator, runs: int) -> Iterator[Attacked]:
    """So many tables, and as many outputs. How many were analysed is said: to refuse them all would be easy."""
    for what, draw in (("tables", hostile), ("outputs of tools", hostile_output)):
        told: list[str] = []
        analysed = 0
        with TemporaryDirectory() as place:
            for _ in range(runs):
                table = draw(random)
                said = answers(table, Path(place) / "data.csv")
                analysed += said[0].code == FINE
                told += [f"{', '.join(table.tricks) or 'plain'}: {each}" for each in wrong(table, said)]
        yield Attacked(f"imports made hostile, {analysed:,} {what} analysed", runs, tuple(told))
