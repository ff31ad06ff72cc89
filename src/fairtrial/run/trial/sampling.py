"""The sampler's life in a trial, and what becomes of its files."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from fairtrial.errors import PlaceError
from fairtrial.metrics import telemetry
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import how

SOURCES = ("cpu", "memory", "vmstat", "disks", "pressure")
SHORTEST_SERVER_INTERVAL_MS = 100  # the sampler refuses less: a question costs a server some 0.2 ms
POLL_S = 0.02


class Sampler:
    """A sampler at work: from its first look at every source until `stop`."""

    def __init__(self, place: OpenPlace, directory: PurePosixPath, parameters: Mapping[str, Any]) -> None:
        self._place = place
        self._directory = directory
        self._lines: list[str] = []
        self._sampling = threading.Event()
        self._process = place.agent.spawn(
            name="sampler",
            argv=["fairtrial-agent", "sample"],
            stdin=json.dumps({**parameters, "output_directory": str(directory)}),
            on_line=self._hear,
        )
        # It reads every source once in milliseconds; a place as slow as its limit measures nothing.
        deadline = time.monotonic() + place.limits.stop_s
        while not self._sampling.wait(POLL_S) and self._process.exited is None and time.monotonic() < deadline:
            pass

    def _hear(self, _stream: str, line: str) -> None:
        """The stream's thread: a warning, the list of sources once all were read, or the ticks at the end."""
        self._lines.append(line)
        if line.startswith('{"sampling"'):
            self._sampling.set()

    def stop(self) -> str:
        """Ends sampling; returns why the telemetry cannot be believed, empty if it can.

        Raises:
            PlaceError: the sampler does not end.
        """
        if self._process.exited is None:
            self._process.signal(signal.SIGTERM)
        try:
            exited = self._process.wait(self._place.limits.stop_s)
        except TimeoutError as error:
            raise PlaceError("the sampler does not end on SIGTERM", hint="the place hangs: look at its load") from error
        said = "\n".join(self._lines)
        self._place.agent.put(str(self._directory / "log" / "sampler.log"), said.encode(), mode=0o644)
        if exited.code != 0:
            return f"the sampler failed ({how(exited)}): {said}"
        return "" if self._sampling.is_set() else "the sampler never said that it samples; is the agent an older one?"


def start(
    place: OpenPlace,
    directory: PurePosixPath,
    *,
    interval_ms: int,
    followed: Mapping[str, Mapping[str, int]],
    server: Mapping[str, Any] | None = None,
) -> Sampler:
    """Starts sampling into `directory`; returns once every source has been read for the first time.

    Args:
        place: where.
        directory: for the files; exists, with a `log` in it.
        interval_ms: between two samples.
        followed: processes, from `followed`.
        server: whose own counters to sample, from `sampled_server`; None: no server's.
    """
    parameters = {
        "interval_ms": interval_ms,
        "sources": list(SOURCES),
        **{kind: dict(of) for kind, of in followed.items()},
    }
    return Sampler(place, directory, parameters | ({"server": dict(server)} if server else {}))


def followed(process: int | None, *, is_one_process: bool) -> dict[str, dict[str, int]]:
    """The sampler's parameters for a server's process, by its number: alone, or with its children."""
    if process is None:
        return {}
    return {"processes" if is_one_process else "process_trees": {"server": process}}


def sampled_server(endpoint: Mapping[str, Any] | None, *, interval_ms: int, lock_waits: bool) -> dict[str, Any] | None:
    """The sampler's parameters for a server reached by `endpoint`, asked no more often than a server should be."""
    if endpoint is None:
        return None
    interval_ms = max(interval_ms, SHORTEST_SERVER_INTERVAL_MS)
    return {"endpoint": dict(endpoint), "interval_ms": interval_ms, "lock_waits": lock_waits}


def to_parquet(directory: Path, *, shift_ns: int = 0) -> list[str]:
    """Turns every Arrow stream of a trial into Parquet, in place; returns the telemetry sources that have a file.

    A stream of the load from which no row can be read stays as it is: its trial contradicts itself.

    `shift_ns` is added to the times of telemetry: what another clock than the load's told.
    """
    sources: list[str] = []
    for stream in sorted(directory.rglob("*.arrows")):
        target = stream.with_suffix(".parquet")
        sampled = stream.stem.startswith(telemetry.PREFIX)
        rows = telemetry.to_parquet(stream, target, shift_ns=shift_ns if sampled else 0)
        if rows or sampled:
            stream.unlink()
        if rows and sampled:
            sources.append(stream.stem.removeprefix(telemetry.PREFIX))
    return sources
