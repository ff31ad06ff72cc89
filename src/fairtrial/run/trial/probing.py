"""Probes of a diagnostic trial: started with its measured window, ended by process id, their outputs kept."""

from __future__ import annotations

import math
import shlex
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from fairtrial.errors import AgentError, PlaceError, StreamLostError
from fairtrial.metrics.telemetry.probes import RUNS, SEPARATOR, ProbeRun, write_runs
from fairtrial.protocol.generated import Exited, FileOutput, MeasuringProgress
from fairtrial.protocol.progress import ProgressLine
from fairtrial.record.models import Window
from fairtrial.run.trial import workspace
from fairtrial.study.probes import Probe
from fairtrial.wire.limits import Limits
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import Process, how
from fairtrial.workloads import OnProgress

AGAIN_S: Final = 15.0  # a map of thousands of keys is printed in a second or two
REPORT_S: Final = 600.0  # perf resolves the symbols of every program that was sampled
PLAIN: Final[Mapping[str, str]] = {"LC_ALL": "C"}  # perf writes numbers as the locale does
_INTERRUPTED: Final = 128 + signal.SIGINT  # the code of a program that ends itself when interrupted
NEVER_MEASURED: Final = "the load never said that it measures, so the probes were never started"
TOO_LATE: Final = "began after the measured window"


@dataclass
class _ProbeProcess:
    """A probe in this trial. `process` is None for a file, and where it could not be started."""

    probe: Probe
    run: ProbeRun
    process: Process | None = None

    def fail(self, reason: str) -> None:
        self.run = self.run.model_copy(update={"failure": self.run.failure or reason})


@dataclass
class TrialProbes:
    """The probes of one trial.

    Attributes:
        directory: at the place, for what they leave; made when they begin.
        processors: they may use; None: all.
    """

    place: OpenPlace
    directory: PurePosixPath
    probes: Sequence[Probe]
    processors: tuple[int, ...] | None = None
    _started: list[_ProbeProcess] = field(default_factory=list)
    _measuring: threading.Event = field(default_factory=threading.Event)
    _over: bool = False
    _waiting: threading.Thread | None = None

    def begin_when_measuring(self) -> None:
        """Begins once `listening` has heard that the window begins: in a thread, as the stream's must not ask."""
        self._make_ready()
        self._waiting = threading.Thread(target=self._wait, name="fairtrial-probes", daemon=True)
        self._waiting.start()

    def _wait(self) -> None:
        self._measuring.wait()
        if not self._over:
            self._start_all()

    def begin(self) -> None:
        """Starts every probe."""
        self._make_ready()
        self._start_all()

    def _make_ready(self) -> None:
        """What probes need besides their window, before it begins: nothing but they themselves shall run inside."""
        workspace.make(self.place, self.directory)
        for run, probe in self._numbered():
            if probe.bpftrace is not None:
                self.place.agent.put(str(self.directory / f"{run.stem}.bt"), probe.bpftrace.program.encode())

    def _numbered(self) -> Iterator[tuple[ProbeRun, Probe]]:
        for number, probe in enumerate(self.probes, start=1):
            yield ProbeRun(number=number, kind=probe.kind, label=probe.label), probe

    def _start_all(self) -> None:
        """Starts them in the study's order; one that does not start is noted and fails its trial."""
        for run, probe in self._numbered():
            started = _ProbeProcess(probe, run)
            self._started.append(started)
            try:
                self._start(started)
            except StreamLostError:
                return  # whoever drives is told by the next call
            except PlaceError as error:
                started.fail(f"did not start: {error}")

    def _start(self, started: _ProbeProcess) -> None:
        stem, probe = started.run.stem, started.probe
        if probe.file is not None:
            self._read(started, "before")
            return
        started.process = self.place.agent.spawn(
            name=f"probe {stem}",
            argv=command(probe, self.directory / stem),
            environment=PLAIN,
            directory=str(self.directory),
            processors=self.processors,
            stdout=_file(self.directory / (f"{stem}.txt" if probe.command is not None else f"{stem}.log")),
            stderr=_file(self.directory / f"{stem}-errors.log"),
        )
        started.run = started.run.model_copy(update={"start_ns": started.process.started_ns})

    def _read(self, started: _ProbeProcess, when: str) -> None:
        """A copy of a file, by `cat`: files of the kernel have no length to copy by."""
        process = self.place.agent.spawn(
            name=f"probe {started.run.stem}",
            argv=["cat", "--", str(started.probe.file)],
            stdout=_file(self.directory / f"{started.run.stem}.{when}.txt"),
            stderr=_file(self.directory / f"{started.run.stem}-errors.log"),
        )
        try:
            exited = process.wait(self.place.limits.short_s)
        except TimeoutError:
            exited = process.stop(1.0)
        edge = {"start_ns": process.started_ns} if when == "before" else {"end_ns": exited.time_ns}
        started.run = started.run.model_copy(update=edge)
        if exited.code != 0:
            started.fail(f"`cat {started.probe.file}` failed {when} the window with code {exited.code}")

    def listening(self, inner: OnProgress) -> OnProgress:
        """Passes progress on, and hears when the window begins."""

        def hear(line: ProgressLine) -> None:
            if isinstance(line, MeasuringProgress):
                self._measuring.set()
            inner(line)

        return hear

    def end(self, window: Window | None = None, *, shift_ns: int = 0) -> str:
        """Ends every probe and completes their files; returns why they cannot be believed, empty if they can.

        Args:
            window: what the load measured, as far as it is known.
            shift_ns: how far the clock of that is ahead of this place's.

        Raises:
            StreamLostError: the stream ended.
        """
        if self._waiting is not None and not self._has_begun(self._waiting):
            return NEVER_MEASURED
        self._fail_late(math.inf if window is None else window.end_ns - shift_ns)
        running = [each for each in self._started if each.process is not None and each.process.exited is None]
        for each in running:
            if each.process is not None:
                each.process.signal(signal.SIGINT, group=True)
        for each in self._started:
            if each.probe.file is not None and not each.run.failure:
                self._read(each, "after")
        for each in self._started:  # each file of them right at the window's end, and nothing slow before that
            if each.process is not None:
                self._finish(each, each.process, interrupted=each in running)
        for each in self._started:
            if each.probe.perf_record is not None and not each.run.failure:
                self._report(each)
        runs = [_shifted(each.run, shift_ns) for each in self._started]
        self.place.agent.put(str(self.directory / RUNS), write_runs(runs))
        return "; ".join(f"probe {run.label}: {run.failure}" for run in runs if run.failure)

    def _fail_late(self, window_end_ns: float) -> None:
        """Probes are started from here: where the controller stood still meanwhile, they saw nothing of the window."""
        for each in self._started:
            if each.run.start_ns is not None and each.run.start_ns >= window_end_ns:
                each.fail(TOO_LATE)

    def _has_begun(self, waiting: threading.Thread) -> bool:
        """Whether the window ever began; the thread that waited for it has ended."""
        began = self._measuring.is_set()
        self._over = not began
        self._measuring.set()
        waiting.join()
        return began

    def _finish(self, started: _ProbeProcess, process: Process, *, interrupted: bool) -> None:
        """Waits for its end. A program that ended by itself did so well with code 0 only."""
        try:
            exited = ended(process, again_s=AGAIN_S, limits=self.place.limits)
        except TimeoutError:
            started.fail("is still there after it was killed")
            return
        if started.probe.command is not None:
            # What a shell runs in the background ignores interruptions, and must not be there in the next trial.
            self.place.execute(["sh", "-c", 'kill -s KILL -- "-$0"', str(process.pid)])
        if exited.signal == signal.SIGKILL:
            started.fail(f"did not end within {self.place.limits.short_s:g} s of its interruption and was killed")
        started.run = started.run.model_copy(update={"end_ns": exited.time_ns})
        as_intended = interrupted and (exited.signal == signal.SIGINT or exited.code == _INTERRUPTED)
        if exited.code != 0 and not as_intended:
            started.fail(f"ended with {how(exited)}; its words are in {started.run.stem}-errors.log")

    def _report(self, started: _ProbeProcess) -> None:
        """The profile with its symbols, which only the place can resolve: its programs are there."""
        stem = self.directory / started.run.stem
        process = self.place.agent.spawn(
            name=f"report {started.run.stem}",
            argv=report_command(PurePosixPath(f"{stem}.data")),
            environment=PLAIN,
            stdout=_file(PurePosixPath(f"{stem}.tsv")),
            stderr=_file(PurePosixPath(f"{stem}-errors.log")),
        )
        try:
            code = process.wait(REPORT_S).code
        except TimeoutError:
            code = process.stop(1.0).code
        if code != 0:
            started.fail(f"`perf report` ended with code {code}; its words are in {started.run.stem}-errors.log")


def _shifted(run: ProbeRun, shift_ns: int) -> ProbeRun:
    """Its times in the clock that tells all of the trial."""
    times = {"start_ns": run.start_ns, "end_ns": run.end_ns}
    return run.model_copy(update={name: ns + shift_ns for name, ns in times.items() if ns is not None})


def ended(process: Process, *, again_s: float, limits: Limits) -> Exited:
    """Waits for the end of a process that was interrupted; in the end it is killed.

    Until then it is interrupted again now and then: bpftrace sleeps on if that came while it attached its probes.

    Args:
        process: interrupted already, or at its end anyway.
        again_s: between interruptions; one that comes while bpftrace prints would cut its output off.
        limits: after `short_s` it is killed: perf writes what it gathered, bpftrace prints its maps.

    Raises:
        TimeoutError: it hangs in the kernel.
    """
    for _ in range(math.ceil(limits.short_s / again_s)):
        try:
            return process.wait(again_s)
        except TimeoutError:
            process.signal(signal.SIGINT, group=True)
    process.signal(signal.SIGKILL, group=True)
    return process.wait(limits.kill_s)


def command(probe: Probe, stem: PurePosixPath) -> list[str]:
    """The command line of a probe that is a program.

    Args:
        probe: any but `file`.
        stem: path that the names of its files begin with; the script of a `bpftrace` is at `.bt`.

    Raises:
        AgentError: it is no program.
    """
    if probe.perf_stat is not None:
        events = [word for event in probe.perf_stat.events for word in ("-e", event)]
        return ["perf", "stat", "-a", "-x", SEPARATOR, "-o", f"{stem}.tsv", *events]
    if probe.perf_record is not None:
        options = probe.perf_record
        chains = ["-g"] if options.call_graph else []
        return [
            *("perf", "record", "-a", "-F", str(options.frequency), "-e", options.event),
            *(*chains, "-o", f"{stem}.data"),
        ]
    if probe.bpftrace is not None:
        return ["bpftrace", "-o", f"{stem}.txt", f"{stem}.bt"]
    if probe.command is not None:
        return shlex.split(probe.command)
    raise AgentError(f"probe {probe.label} is no program", code="invalid", hint="this is a bug")


def report_command(data: PurePosixPath) -> list[str]:
    """The command that turns a profile into rows of samples, program, origin and symbol."""
    how = ["--stdio", "--no-children", "-g", "none", "-F", "sample,comm,dso,sym", "-t", SEPARATOR]
    return ["perf", "report", "-f", "-i", str(data), *how]


def _file(path: PurePosixPath) -> FileOutput:
    return FileOutput(path=str(path))
