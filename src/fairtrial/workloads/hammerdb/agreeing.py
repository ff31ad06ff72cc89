"""Whether the files that a trial's figures come from are what HammerDB itself printed, read again."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Final

import polars as pl

from fairtrial.metrics.series import timeline
from fairtrial.workloads.hammerdb import output
from fairtrial.workloads.hammerdb.output import Clock

OUTPUT: Final = "log/load.log"


def contradictions(directory: Path, *, interval_s: int) -> list[str]:
    """Where `result.json` or `timeline.parquet` is not what the output gives, a sentence each.

    How far the place's two clocks were apart is in `result.json` alone.

    Raises:
        PlaceError: the output is none of HammerDB's.
        OSError: a file is not there.
    """
    text = (directory / OUTPUT).read_text(encoding="utf-8")
    stored = json.loads((directory / "result.json").read_bytes())
    clock = Clock(**stored["clock"])
    found = [
        f"result.json: {name} is {stored.get(name)}, but {OUTPUT} gives {given}"
        for name, given in output.result(text, clock).items()
        if stored.get(name) != given
    ]
    fresh = pl.read_parquet(io.BytesIO(output.timeline(text, clock, interval_s=interval_s)))
    if not fresh.equals(timeline.read(directory)):
        found.append(f"{timeline.FILE}: other intervals than {OUTPUT} has")
    return found
