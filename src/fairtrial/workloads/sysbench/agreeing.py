"""Whether the files that a trial's figures come from are what sysbench itself printed, read again."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from fairtrial.metrics import latency
from fairtrial.metrics.series import timeline
from fairtrial.workloads.sysbench import output

OUTPUT: Final = "log/load.log"


def contradictions(directory: Path) -> list[str]:
    """Where `result.json`, `latency.hlog` or `timeline.parquet` is not what the output gives, a sentence each.

    A window whose output has no interval ended with its process, whose time is in `result.json` alone.

    Raises:
        PlaceError: the output is none of sysbench's.
        OSError: a file is not there.
    """
    text = (directory / OUTPUT).read_text(encoding="utf-8")
    stored = json.loads((directory / "result.json").read_bytes())
    window = stored["window"]
    edges = output.window_ns(text, ended_ns=window["end_ns"])
    return [
        *_figures(text, {**stored, "window": (window["start_ns"], window["end_ns"])}, edges=edges),
        *_bins(text, directory),
        *_intervals(text, directory, edges=edges),
    ]


def _figures(text: str, stored: dict[str, object], *, edges: tuple[int, int]) -> Iterator[str]:
    for name, given in {**output.result(text), "window": edges}.items():
        if stored.get(name) != given:
            yield f"result.json: {name} is {stored.get(name)}, but {OUTPUT} gives {given}"


def _bins(text: str, directory: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / latency.FILE).write_text(output.latency_log(text, window=(0, 1)), encoding="utf-8")
        fresh = latency.read(Path(scratch))
    stored = latency.read(directory)
    for kind in dict.fromkeys([*fresh, *stored]):
        given, found = (
            {} if each is None else dict(zip(each.highest_ns.tolist(), each.counts.tolist(), strict=True))
            for each in (fresh.get(kind), stored.get(kind))
        )
        if given != found:
            yield f"{latency.FILE}: {sum(found.values())} of {kind} in other classes than {OUTPUT} has them"


def _intervals(text: str, directory: Path, *, edges: tuple[int, int]) -> Iterator[str]:
    fresh = pl.read_parquet(io.BytesIO(output.timeline(text, window=edges)))
    if not fresh.equals(timeline.read(directory)):
        yield f"{timeline.FILE}: other intervals than {OUTPUT} has"
