"""pgbench's report as one row. Source: pgbench.c of 9.6 to 18, `printResults`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from fairtrial.imports.outputs import printed
from fairtrial.imports.outputs.printed import NUMBER, Printed
from fairtrial.imports.reader import ImportSource, Reader, file_table, refused, summarised
from fairtrial.imports.rows import FileTable

VALUE: Final = "tps"
SOURCE: Final = "pgbench"
EXPECTED: Final = "the report that pgbench prints at its end"
_ABORTED: Final = re.compile(r"Run was aborted; the above results are incomplete\.")
_PLANNED: Final = re.compile(r"^number of transactions actually processed: \d+/(\d+)$", re.MULTILINE)
# Of the whole run: what is said of a script begins with a dash. The rate without connecting is the last of two.
_FIGURES: Final = {
    VALUE: Printed(rf"^tps = {NUMBER} \(", "transactions/s", "higher"),
    "transactions": Printed(rf"^number of transactions actually processed: {NUMBER}", "transactions", "higher"),
    "failed_transactions": Printed(rf"^number of failed transactions: {NUMBER}", "transactions", "lower"),
    "skipped_transactions": Printed(rf"^number of transactions skipped: {NUMBER}", "transactions", "lower"),
    "retries": Printed(rf"^total number of retries: {NUMBER}", "retries", "lower"),
    "latency_ms_mean": Printed(rf"^latency average[=: ]+{NUMBER} ms", "ms", "lower"),
    "latency_ms_sd": Printed(rf"^latency stddev[=: ]+{NUMBER} ms", "ms", "lower"),
    "lag_ms_mean": Printed(rf"^rate limit schedule lag: avg {NUMBER}", "ms", "lower"),
    "connection_ms": Printed(rf"^initial connection time = {NUMBER} ms", "ms", "lower"),
}


def read(source: ImportSource) -> FileTable:
    """One row: the run.

    Raises:
        InputError: the report is cut, a client gave up, or the file holds more than one run.
    """
    printed.one_run(source, r"^transaction type: ", tool="pgbench")
    row = printed.figures(source.text, _FIGURES)
    _require_whole_run(source, row)
    printed.require(source, row, "transactions", VALUE, hint=f"give {EXPECTED}, complete")
    return file_table(source, [row], lambda name: printed.definition(name, _FIGURES[name], source=SOURCE))


def _require_whole_run(source: ImportSource, row: Mapping[str, float]) -> None:
    """Refuses a run in which a client gave up: by pgbench's own words on standard error, else by its counts."""
    aborted = _ABORTED.search(source.text)
    if aborted is None and (planned := _PLANNED.search(source.text)):
        done = sum(row.get(name, 0.0) for name in ("transactions", "failed_transactions", "skipped_transactions"))
        aborted = planned if done < float(planned[1]) else None
    if aborted is not None:
        line = source.text[: aborted.start()].count("\n") + 1
        hint = "leave the run out, or run it again: the clients that gave up did not load the server to the end"
        raise refused(source, f"expected a run to its end, found {aborted[0]!r}", hint=hint, line=line)


READER: Final = Reader(
    name=SOURCE,
    expected=EXPECTED,
    recognises=lambda text: (
        text.startswith("pgbench (") or ("transaction type: " in text and "number of clients: " in text)
    ),
    read=read,
    values=(VALUE,),
    failures=("failed_transactions", "skipped_transactions"),
    lost=summarised(
        "each run of pgbench is one mean: checkpoints and stalls within a run, and the tail of latencies, are lost"
    ),
)
