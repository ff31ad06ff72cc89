"""Whether a trial's files are what pgbench reported and logged: its own report, and every transaction, read again."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from fairtrial.metrics import latency
from fairtrial.metrics.series import timeline
from fairtrial.workloads import latency_log
from fairtrial.workloads.pgbench import output
from fairtrial.workloads.pgbench.output import ROUNDED_MS
from fairtrial.workloads.pgbench.parameters import PgbenchParameters
from fairtrial.workloads.pgbench.transactions import FILE, Counted, Layout

OUTPUT: Final = "log/load.log"
LATENESS: Final = "lateness.hlog"
ROUNDED: Final = ROUNDED_MS * (1 + 1e-6)  # sums are of whole numbers, their quotient is of floating point


def contradictions(directory: Path, asked: PgbenchParameters) -> list[str]:
    """Where files disagree with what pgbench printed or with its transactions, a sentence each.

    Where in time the window lies only the transactions say; a trial that kept none has its length alone to be checked.

    Raises:
        PlaceError: the output is none of pgbench's.
        OSError: a file is not there.
    """
    told = output.report((directory / OUTPUT).read_text(encoding="utf-8"))
    stored = json.loads((directory / "result.json").read_bytes())
    found = list(reported(told, stored))
    if not (directory / FILE).exists():
        return found
    window = (stored["window"]["start_ns"], stored["window"]["end_ns"])
    counted = Counted.of(directory / FILE, layout=Layout.of(asked), window=window)
    return [*found, *_recounted(counted, stored), *_logs(counted, directory), *_intervals(counted, directory)]


def reported(told: output.Report, stored: Mapping[str, Any]) -> Iterator[str]:
    """Where `result.json` is not what pgbench printed."""
    length_us = (stored["window"]["end_ns"] - stored["window"]["start_ns"]) / 1000
    if length_us != told.whole_us:
        yield f"result.json: window of {length_us / 1e6:g} s, but {OUTPUT} gives {told.whole_us / 1e6:g} s"
    connecting = stored["connecting_ms"]
    if connecting != told.connecting_ms:
        yield f"result.json: connecting_ms is {connecting}, but {OUTPUT} says {told.connecting_ms}"
    yield from _counts("all", told.whole, _together(stored))
    if (stored["late"] or 0) != told.late:
        yield f"result.json: {stored['late']} above the latency limit, but {OUTPUT} says {told.late}"
    exact = told.scripts if told.threads == 1 else []
    for (kind, own), script in zip(stored["transactions"].items(), exact, strict=False):
        yield from _counts(kind, script, own)
    if told.lag is not None:
        lag = stored["lag_us"]
        yield from _near("mean schedule lag", lag["sum"] / lag["n"] / 1000, told.lag.mean_ms)
        yield from _near("largest schedule lag", lag["max"] / 1000, told.lag.max_ms)


def _together(stored: Mapping[str, Any]) -> dict[str, Any]:
    each = stored["transactions"].values()
    counts = {name: sum(own[name] for own in each) for name in ("committed", "failed", "retried", "skipped")}
    return {**counts, "latency_us": stored["latency_us"]}


def _counts(kind: str, told: output.Counted, own: Mapping[str, Any]) -> Iterator[str]:
    failed = told.serialization + told.deadlock
    printed = {"committed": told.processed, "failed": failed, "retried": told.retries, "skipped": told.skipped}
    for name, count in printed.items():
        if own[name] != count:
            yield f"result.json: {own[name]} {name} of {kind}, but {OUTPUT} says {count}"
    sums = own["latency_us"]
    if told.latency is not None and sums["n"]:
        mean_us = sums["sum"] / sums["n"]
        deviation_us = math.sqrt(max(0.0, sums["squares"] / sums["n"] - mean_us**2))
        yield from _near(f"mean latency of {kind}", mean_us / 1000, told.latency.mean_ms)
        yield from _near(f"deviation of latency of {kind}", deviation_us / 1000, told.latency.deviation_ms)


def _near(what: str, own_ms: float, printed_ms: float) -> Iterator[str]:
    if abs(own_ms - printed_ms) > ROUNDED:
        yield f"result.json: {what} is {own_ms:.4f} ms, but {OUTPUT} says {printed_ms:.3f} ms"


def _recounted(counted: Counted, stored: Mapping[str, Any]) -> Iterator[str]:
    for name, given in json.loads(json.dumps(counted.result())).items():
        if stored.get(name) != given:
            yield f"result.json: {name} is {stored.get(name)}, but {FILE} gives {given}"


def _logs(counted: Counted, directory: Path) -> Iterator[str]:
    texts = {latency.FILE: counted.latency_log()}
    if counted.layout.is_open:
        texts[LATENESS] = counted.lateness_log()
    for name, text in texts.items():
        for found in latency_log.differing(text, directory, file=name):
            yield f"{found} {FILE} gives"


def _intervals(counted: Counted, directory: Path) -> Iterator[str]:
    if not pl.read_parquet(io.BytesIO(counted.timeline())).equals(timeline.read(directory)):
        yield f"{timeline.FILE}: other intervals than {FILE} gives"
