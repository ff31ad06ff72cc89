"""fio at a place: its job files, its processes, and the files made from what they write.

A trial is the life of one process. What comes before the window is another process over the same files, because fio's
own ramp ends by the clock and is no number of accesses; `invalidate=0` keeps what that process has cached.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import ClassVar, Final

from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.record.models import Window
from fairtrial.workloads import prepared_files, tool
from fairtrial.workloads.engine import file_scalars
from fairtrial.workloads.fio import checking, job_file, output
from fairtrial.workloads.fio.parameters import FioParameters
from fairtrial.workloads.tool import Invocation, Life, ToolRun
from fairtrial.workloads.workload import Drive

DRIVE_GRACE_S: Final = 600.0  # beyond what is asked for: fio lays its tables out, and writes its files
COUNTED_PER_S: Final = 100.0  # accesses of one job; slower storage is broken
STOP_S: Final = 30.0  # after SIGINT, at which fio prints what it has
JOB_FILE: Final = "fio.job"
HISTOGRAMS: Final = "histograms"
HINT: Final = "install fio at the place (apt install fio), version 3.28 or newer"
WORDS: Final = 40  # lines of fio's own that are kept of a failure
PROGRAM: Final = tool.Tool("fio", HINT, words=lambda lines: checking.words(lines[-WORDS:]), stop_s=STOP_S)


@dataclass(frozen=True)
class FioBench(tool.Bench):
    """fio on prepared files.

    Attributes:
        directory: of the files.
        chosen: the distribution, from `job_file.distribution`.
        edges: the kernel's counters before and after the window, as they are read.
    """

    parameters: FioParameters
    directory: PurePosixPath
    chosen: str
    edges: list[wire.FileCounters] = field(default_factory=list)
    ramps: ClassVar[str] = "warm"
    seed: ClassVar[str] = "randseed"

    def parse(self, life: Life, drive: Drive) -> None:
        """Lets fio read the job without running it, which also brings its program into memory.

        Raises:
            PlaceError: fio refuses an option, in its own words.
        """
        parsed = self.place.execute(["fio", "--parse-only", self._put(life, drive.directory / JOB_FILE)])
        if parsed.code != 0:
            said = checking.words(parsed.output.splitlines())
            hint = "fix workload.fio; fio's manual describes every option"
            raise PlaceError(f"fio rejects the job: {said}", hint=hint)

    def look(self) -> None:
        """The kernel's counters: who hears of the window has begun within them."""
        self.edges.append(prepared_files.counters(self.place, self.directory))

    def run(self, life: Life, drive: Drive, *, name: str) -> ToolRun:
        """One life; the kernel's counters around the one that keeps histograms are part of the record."""
        limit_s = (life.duration_s or 0) + (life.count or 0) / COUNTED_PER_S + DRIVE_GRACE_S
        into = drive.work_directory if life.log is None else drive.directory
        path = self._put(life, drive.work_directory / f"{name}.job")
        arguments = ["--output-format=json+", f"--output={into / output.DOCUMENT}", "--eta=never", path]
        invocation = Invocation(name, drive.work_directory, limit_s, drive.process_options)
        ran = PROGRAM.run(self.place, arguments, invocation)
        if life.log is not None:
            self.look()
            counters = json.dumps([each.model_dump() for each in self.edges])
            tool.keep(self.place, drive, {file_scalars.COUNTERS: counters.encode()})
        return ran

    def measured(self, ran: ToolRun, drive: Drive, _clock: wire.Reading) -> tuple[Window, str]:
        """Keeps what fio counted in the whole of it, and in intervals."""
        report = output.document(self._text(drive.directory / output.DOCUMENT))
        if failure := output.failure(report):
            return ran.life, failure
        result = output.result(report, life=ran.life)
        began_ns = max(ran.life.start_ns, ran.life.end_ns - result.runtime_ms * output.NANOSECONDS_PER_MS)
        intervals = output.intervals(
            (
                self._text(drive.work_directory / f"{HISTOGRAMS}_clat_hist.{job}.log")
                for job in range(1, self.parameters.jobs + 1)
            ),
            output.whole(report),
            width_ms=round(self.parameters.interval * 1000),
            life=Window(start_ns=began_ns, end_ns=ran.life.end_ns),
        )
        files = {"latency.hlog": output.latency_log(intervals).encode(), "timeline.parquet": output.timeline(intervals)}
        self.leave(drive, ran, result=result, files=files)
        return ran.life, "" if result.done else "fio made no access inside the measurement window"

    def _put(self, life: Life, path: PurePosixPath) -> str:
        text = job_file.text(self.parameters, life, directory=str(self.directory), chosen=self.chosen)
        self.place.agent.put(str(path), text.encode(), mode=0o644)
        return str(path)

    def _text(self, path: PurePosixPath) -> str:
        return self.place.agent.get(str(path)).decode("utf-8", errors="replace")
