"""Whether the files that a trial's figures come from are what sysbench itself printed, read again."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import polars as pl

from fairtrial.metrics.series import timeline
from fairtrial.workloads import latency_log
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
    logged = output.latency_log(text, window=edges)
    return [
        *_figures(text, {**stored, "window": (window["start_ns"], window["end_ns"])}, edges=edges),
        *(f"{found} {OUTPUT} has them" for found in latency_log.differing(logged, directory)),
        *_intervals(text, directory, edges=edges),
    ]


def _figures(text: str, stored: dict[str, object], *, edges: tuple[int, int]) -> Iterator[str]:
    for name, given in {**output.result(text), "window": edges}.items():
        if stored.get(name) != given:
            yield f"result.json: {name} is {stored.get(name)}, but {OUTPUT} gives {given}"


def _intervals(text: str, directory: Path, *, edges: tuple[int, int]) -> Iterator[str]:
    fresh = pl.read_parquet(io.BytesIO(output.timeline(text, window=edges)))
    if not fresh.equals(timeline.read(directory)):
        yield f"{timeline.FILE}: other intervals than {OUTPUT} has"
