"""The sampler's life in a trial, and what becomes of its files."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path, PurePosixPath
from typing import Final

from fairtrial.errors import PlaceError, SystemStartError
from fairtrial.metrics import telemetry
from fairtrial.metrics.telemetry import series
from fairtrial.metrics.telemetry.measures import shown_columns
from fairtrial.protocol.endpoints import ServiceEndpoint
from fairtrial.protocol.generated import Sample, SampledCommand, SampledExporter, SampledServer
from fairtrial.protocol.progress import PROGRESS, ProgressLine
from fairtrial.protocol.subcommands import SAMPLE, Failure, failure
from fairtrial.record.models import Plan
from fairtrial.systems import Instance
from fairtrial.systems.service import rendering
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import how
from fairtrial.workloads import OnProgress

SOURCES: Final = ("cpu", "memory", "vmstat", "disks", "pressure")
SHORTEST_SERVER_INTERVAL_MS = 100  # the sampler refuses less: a question costs a server some 0.2 ms
FIRST_READING_S = 6.0  # for which the sampler waits for an endpoint's or a command's first values, and a bit
POLL_S = 0.02


def _unseen(_line: ProgressLine) -> None:
    """Nobody looks on."""


class Sampler:
    """A sampler at work, from its first look at every source, which it waits for, until `stop`."""

    def __init__(self, place: OpenPlace, request: Sample, *, shown: OnProgress = _unseen) -> None:
        self._shown = shown
        self._place = place
        self._directory = PurePosixPath(request.output_directory)
        self._lines: list[str] = []
        self._sampling = threading.Event()
        self._process = place.agent.spawn(
            name="sampler",
            argv=SAMPLE.argv,
            stdin=SAMPLE.document(request),
            on_line=self._hear,
        )
        # It reads every source once in milliseconds; a place as slow as its limit measures nothing.
        others = [*(request.exporters or ()), *(request.commands or ())]
        deadline = time.monotonic() + place.limits.stop_s + len(others) * FIRST_READING_S
        while not self._sampling.wait(POLL_S) and self._process.exited is None and time.monotonic() < deadline:
            pass
        if others and self._process.exited is not None and self._process.exited.code != 0:
            # Nothing was loaded yet: as with a server that does not start, the first time ends the run.
            failed = failure(self._lines) or Failure(error=f"the sampler failed ({how(self._process.exited)})")
            raise SystemStartError(failed.error, hint=failed.hint)

    def _hear(self, _stream: str, line: str) -> None:
        """The stream's thread: a warning, the list of sources once all were read, or the ticks at the end."""
        if line.startswith('{"progress"'):
            self._shown(PROGRESS.validate_json(line))
            return
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


def request(directory: PurePosixPath, instance: Instance, *, plan: Plan) -> Sample:
    """What is sampled beside a trial: the place, the server's process, its own counters, and those that others tell.

    Args:
        directory: for the files; exists, with a `log` in it.
        instance: the trial's system.
        plan: says how often, and what beside the place; a server is asked no more often than it should be.
    """
    server = {} if instance.process is None else {"server": instance.process.pid}
    interval_ms = plan.telemetry_interval_ms
    handed_in = instance.endpoint.handed_in if isinstance(instance.endpoint, ServiceEndpoint) else {}
    return Sample(
        interval_ms=interval_ms,
        sources=list(SOURCES) if instance.is_at_place else [],
        processes=server if instance.is_one_process else {},
        process_trees={} if instance.is_one_process else server,
        server=None
        if instance.monitoring is None
        else SampledServer(
            endpoint=instance.monitoring,
            interval_ms=max(interval_ms, SHORTEST_SERVER_INTERVAL_MS),
            lock_waits=plan.telemetry_lock_waits,
        ),
        exporters=[
            SampledExporter(
                name=f"{series.EXPORTER}{number}",
                url=rendering.filled(exporter.url, handed_in),
                authorities=exporter.authorities if exporter.url.startswith("https:") else None,
                interval_ms=exporter.interval_ms(interval_ms),
                matching=exporter.match,
            )
            for number, exporter in enumerate(plan.exporters, start=1)
        ],
        commands=[
            SampledCommand(
                name=f"{series.COMMAND}{number}",
                argv=rendering.argv(command.run, handed_in),
                interval_ms=command.interval_ms(interval_ms),
                series=command.name,
                counter=command.type == "counter",
                json_path=command.json_path,
                regex=command.regex,
            )
            for number, command in enumerate(plan.counter_commands, start=1)
        ],
        shown=shown_columns(),
        output_directory=str(directory),
    )


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
