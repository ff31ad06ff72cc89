"""What sysbench prints at its end, of whichever of its tests, as one row."""

from __future__ import annotations

import re
from typing import Final

from fairtrial.imports.outputs import printed
from fairtrial.imports.outputs.printed import NUMBER, Printed
from fairtrial.imports.reader import ImportSource, Reader, file_table, refused, require_end
from fairtrial.imports.rows import FileTable
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.workloads.sysbench.output import RESOLUTION

VALUE: Final = "events_per_s"
SOURCE: Final = "sysbench"
EXPECTED: Final = "the summary that sysbench prints at its end"
_END: Final = "Threads fairness:"  # no figure stands after it

# All of sysbench 1.0's sections; 0.5 and 1.1 word some of them otherwise.
_FIGURES: Final = {
    "transactions_per_s": Printed(rf"transactions:\s+\d+\s+\({NUMBER} per sec", "transactions/s", "higher"),
    "queries_per_s": Printed(rf"queries:\s+\d+\s+\({NUMBER} per sec", "queries/s", "higher"),
    "ignored_errors_per_s": Printed(rf"ignored errors:\s+\d+\s+\({NUMBER} per sec", "errors/s", "lower"),
    "reconnects_per_s": Printed(rf"reconnects:\s+\d+\s+\({NUMBER} per sec", "reconnects/s", "lower"),
    "reads_per_s": Printed(rf"reads/s:\s+{NUMBER}", "reads/s", "higher"),
    "writes_per_s": Printed(rf"writes/s:\s+{NUMBER}", "writes/s", "higher"),
    "fsyncs_per_s": Printed(rf"fsyncs/s:\s+{NUMBER}", "fsyncs/s", "higher"),
    "read_mib_per_s": Printed(rf"read, MiB/s:\s+{NUMBER}", "MiB/s", "higher"),
    "written_mib_per_s": Printed(rf"written, MiB/s:\s+{NUMBER}", "MiB/s", "higher"),
    "operations_per_s": Printed(rf"Total operations:\s+\d+\s+\(\s*{NUMBER} per second", "operations/s", "higher"),
    "transferred_mib_per_s": Printed(rf"transferred \({NUMBER} MiB/sec", "MiB/s", "higher"),
    "events": Printed(r"total number of events:\s+(\d+)", "events", "higher"),
    "total_time_s": Printed(rf"(?:total time|time elapsed):\s+{NUMBER}s", "s", "lower"),
    "latency_ms_min": Printed(rf"^ +min:\s+{NUMBER}", "ms", "lower"),
    "latency_ms_mean": Printed(rf"^ +avg:\s+{NUMBER}", "ms", "lower"),
    "latency_ms_max": Printed(rf"^ +max:\s+{NUMBER}", "ms", "lower"),
}
_PERCENTILE: Final = re.compile(rf"^ +(?:approx\. +)?(\d{{1,9}})(?:th)? percentile:\s+{NUMBER}", re.MULTILINE)


def read(source: ImportSource) -> FileTable:
    """One row: the run.

    Raises:
        InputError: it is cut, has no events, or holds more than one run.
    """
    printed.one_run(source, r"total number of events:\s+\d+", tool="sysbench")
    row = printed.figures(source.text, _FIGURES)
    for percentile, value in _PERCENTILE.findall(source.text):
        row[f"latency_ms_p{percentile}"] = float(value)
    if not row["events"] or not row.get("total_time_s"):
        raise refused(source, "sysbench processed no events in this run", hint="leave the file out")
    printed.require(source, row, "latency_ms_max", hint=f"give {EXPECTED}, complete")
    if _END not in source.text:
        require_end(source)
    row[VALUE] = row["events"] / row["total_time_s"]
    return file_table(source, [row], definition)


def definition(name: str) -> MetricDefinition:
    """A column of sysbench's as a metric; percentiles are the ones without an entry."""
    known = Printed("", "events/s", "higher") if name == VALUE else _FIGURES.get(name, Printed("", "ms", "lower"))
    resolution = RESOLUTION if name.startswith("latency_ms_p") else 0.0
    more = {"label": name.replace("_", " "), "resolution": resolution}
    return printed.definition(name, known, source=SOURCE).model_copy(update=more)


READER: Final = Reader(
    name=SOURCE,
    expected=EXPECTED,
    recognises=lambda text: (
        bool(re.match(r"sysbench \d", text)) or ("General statistics:" in text and "total number of events" in text)
    ),
    read=read,
    values=(VALUE,),
    failures=("ignored_errors_per_s", "reconnects_per_s"),
)
