"""The sampler's life in a trial, and what becomes of its files."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from fairtrial.errors import PlaceError
from fairtrial.metrics import telemetry
from fairtrial.wire.agent import Process
from fairtrial.wire.open_place import OpenPlace

SOURCES = ("cpu", "memory", "vmstat", "disks", "pressure")
STOP_S = 30.0


def start(place: OpenPlace, directory: PurePosixPath, *, interval_ms: int, processes: Mapping[str, int]) -> Process:
    """Starts sampling into `directory` until `stop`."""
    parameters = {
        "interval_ms": interval_ms,
        "sources": list(SOURCES),
        "processes": dict(processes),
        "output_directory": str(directory),
    }
    return place.agent.spawn(
        name="sampler",
        argv=["fairtrial-agent", "sample"],
        stdin=json.dumps(parameters),
        stdout={"kind": "file", "path": str(directory / "log" / "sampler.log")},
        stderr={"kind": "file", "path": str(directory / "log" / "sampler.log")},
    )


def stop(sampler: Process) -> str:
    """Ends sampling; returns why the telemetry cannot be believed, empty if it can.

    Raises:
        PlaceError: the sampler does not end.
    """
    if sampler.exited is None:
        sampler.signal(signal.SIGTERM)
    try:
        exited = sampler.wait(STOP_S)
    except TimeoutError as error:
        raise PlaceError("the sampler does not end on SIGTERM", hint="the place hangs: look at its load") from error
    return "" if exited.code == 0 else f"the sampler failed (code {exited.code}, signal {exited.signal})"


def to_parquet(directory: Path) -> list[str]:
    """Turns every Arrow stream of a trial into Parquet, in place; returns the telemetry sources that have a file."""
    sources: list[str] = []
    for stream in sorted(directory.glob("*.arrows")):
        target = stream.with_suffix(".parquet")
        rows = telemetry.to_parquet(stream, target)
        stream.unlink()
        if rows and stream.stem.startswith(telemetry.PREFIX):
            sources.append(stream.stem.removeprefix(telemetry.PREFIX))
    return sources
