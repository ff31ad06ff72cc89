"""wrk's summary as one row, with `--latency` or without; wrk2's as well."""

from __future__ import annotations

import re
from typing import Final

from fairtrial.imports.outputs import printed
from fairtrial.imports.outputs.printed import NUMBER, Printed
from fairtrial.imports.reader import ImportSource, Reader, file_table, metric, refused, summarised
from fairtrial.imports.rows import FileTable
from fairtrial.study.catalogue import MetricDefinition

VALUE: Final = "requests_per_s"
SOURCE: Final = "wrk"
EXPECTED: Final = "the summary that wrk prints at its end"
_HINT: Final = f"give {EXPECTED}, complete"
_FIGURES: Final = {
    VALUE: Printed(rf"^Requests/sec:\s+{NUMBER}$", "requests/s", "higher"),
    "requests": Printed(rf"^ +{NUMBER} requests in ", "requests", "higher"),
    "error_responses": Printed(rf"^ +Non-2xx or 3xx responses: {NUMBER}", "responses", "lower"),
}
_MILLISECONDS: Final = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3, "h": 3600e3}
_BYTES: Final = {"B": 1.0, "KB": 2.0**10, "MB": 2.0**20, "GB": 2.0**30, "TB": 2.0**40}
_TRANSFERRED: Final = re.compile(rf"^Transfer/sec:\s+{NUMBER}([KMGT]?B)$", re.MULTILINE)
_LATENCY: Final = re.compile(rf"^ +Latency +{NUMBER}([a-z]+) +{NUMBER}[a-z]+ +{NUMBER}([a-z]+)", re.MULTILINE)
# A one-letter unit is followed by a space. Of wrk2 with -U the first of two: the other leaves out what requests waited.
_DISTRIBUTION: Final = re.compile(r"^ *Latency Distribution.*\n((?:(?!.* requests in ).+\n)*)", re.MULTILINE)
_PERCENTILE: Final = re.compile(rf" *{NUMBER}% +{NUMBER}(us|ms|s|m|h) *")
_ERRORS: Final = re.compile(r"^ +Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$", re.MULTILINE)


def read(source: ImportSource) -> FileTable:
    """One row: the run.

    Raises:
        InputError: the summary is cut, nothing succeeded, or the file holds more than one run.
    """
    text = source.text
    printed.one_run(source, r"^Running .+ test @ ", tool="wrk")
    row = {"socket_errors": 0.0, "error_responses": 0.0} | printed.figures(text, _FIGURES)  # not printed if none
    if found := _TRANSFERRED.search(text):
        row["transferred_bytes_per_s"] = float(found[1]) * _BYTES[found[2]]
    if found := _ERRORS.search(text):
        row["socket_errors"] = sum(map(float, found.groups()))
    try:
        if found := _LATENCY.search(text):
            row["latency_ms_mean"] = float(found[1]) * _MILLISECONDS[found[2]]
            row["latency_ms_max"] = float(found[4]) * _MILLISECONDS[found[5]]
    except KeyError as error:
        line = text[: found.start()].count("\n") + 1 if found else 0
        message = f"expected a time in us, ms, s, m or h, found the unit {error}"
        raise refused(source, message, hint=_HINT, line=line) from error
    row |= _percentiles(source)
    printed.require(source, row, "latency_ms_mean", "requests", VALUE, "transferred_bytes_per_s", hint=_HINT)
    if row["requests"] <= row["error_responses"]:
        what = "every response was an error" if row["requests"] else "no request was answered"
        raise refused(source, f"{what} in this run of wrk", hint="leave the run out: a failed run measures nothing")
    return file_table(source, [row], definition)


def _percentiles(source: ImportSource) -> dict[str, float]:
    """Of the latency distribution, if there is one."""
    row: dict[str, float] = {}
    if distribution := _DISTRIBUTION.search(source.text):
        first = source.text[: distribution.start(1)].count("\n") + 1
        lines = distribution[1].splitlines()
        for number, line in enumerate(lines or [""], start=first):
            found = _PERCENTILE.fullmatch(line)
            if found is None:
                message = f"expected a percentile and a time in us, ms, s, m or h, found {line!r}"
                raise refused(source, message, hint=_HINT, line=number)
            row[f"latency_ms_p{float(found[1]):g}"] = float(found[2]) * _MILLISECONDS[found[3]]
    return row


def definition(name: str) -> MetricDefinition:
    """Of a column."""
    if name in _FIGURES:
        return printed.definition(name, _FIGURES[name], source=SOURCE)
    if name == "transferred_bytes_per_s":
        return metric(name, "B/s", "higher", source=SOURCE)
    return metric(name, "errors" if name == "socket_errors" else "ms", "lower", source=SOURCE)


READER: Final = Reader(
    name=SOURCE,
    expected=EXPECTED,
    recognises=lambda text: text.startswith("Running ") and " test @ " in text,
    read=read,
    values=(VALUE,),
    failures=("error_responses", "socket_errors"),
    lost=summarised(
        "each run of wrk is one summary: stalls within it are lost, and its latencies leave out the time that "
        "requests would have waited while a connection was busy"
    ),
)
