"""`fio`: the real fio, on files of its own that were prepared, warmed up by a process that is in no figure.

A trial is the life of one process. What comes before the window is another process over the same files, because fio's
own ramp ends by the clock and is no number of accesses; `invalidate=0` keeps what that process has cached.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.metrics import consistency, latency
from fairtrial.programs import Program
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tree.nodes import Branch
from fairtrial.study.tree.problems import Problems
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import prepared_files, tool
from fairtrial.workloads.engine import file_scalars
from fairtrial.workloads.fio import agreeing, checking, footprint, job_file, output
from fairtrial.workloads.fio.agreeing import DOCUMENT
from fairtrial.workloads.fio.job_file import HISTOGRAMS, Life
from fairtrial.workloads.fio.parameters import FioParameters
from fairtrial.workloads.tool import Ran, Running
from fairtrial.workloads.workload import Drive, Driven

DRIVE_GRACE_S: Final = 600.0  # beyond what is asked for: fio lays its tables out, and writes its files
COUNTED_PER_S: Final = 100.0  # accesses of one job; slower storage is broken
STOP_S: Final = 30.0  # after SIGINT, at which fio prints what it has
JOB_FILE: Final = "fio.job"
HINT: Final = "install fio at the place (apt install fio), version 3.28 or newer"
WORDS: Final = 40  # lines of fio's own that are kept of a failure
PROGRAM: Final = tool.Tool("fio", HINT, words=lambda lines: checking.words(lines[-WORDS:]), stop_s=STOP_S)


class Fio(prepared_files.FileWorkload[FioParameters]):
    """The real fio; it lays nothing out itself, and says by its exit code and its jobs' errors what went wrong."""

    name = "fio"
    summary = "The real fio, with any options, on prepared files."
    model = FioParameters
    programs = (Program("fio", "the workload `fio` runs it"),)
    builds = MappingProxyType({"fio_sha256": "fio"})

    @classmethod
    def check(cls, parameters: FioParameters, branch: Branch, problems: Problems) -> None:
        """Notes every option that cannot be."""
        checking.check(parameters, branch, problems)

    def metrics(self) -> Mapping[str, MetricDefinition]:
        """All of access to files; what sequential access can meet is not told."""
        found = dict(file_scalars.definitions(resolution=output.RESOLUTION))
        if not self.parameters.is_random:
            del found["footprint_share"]
        return found

    def duration_s(self) -> float:
        """Warm-up and window; what goes by count is guessed."""
        return super().duration_s() + self.parameters.warm_up

    def require(self, place: OpenPlace) -> None:
        """Looks for fio.

        Raises:
            PlaceError: there is none.
        """
        PROGRAM.identify(place)

    def drive(self, place: OpenPlace, drive: Drive) -> Driven:
        """Warms up, then measures one life of fio; leaves fio's own files and ours made from them.

        Raises:
            PlaceError: there is no fio, or it refuses the job.
        """
        asked = self.parameters
        run = _Run(place, asked, drive, directory=prepared_files.directory(drive.endpoint))
        effective = PROGRAM.identify(place)
        measured = run.life("window", asked.accesses, asked.duration)
        run.parse(measured)
        if asked.warm_up_accesses or asked.warm_up:
            warm = run.life("warm-up", asked.warm_up_accesses or None, asked.warm_up or None)
            effective["warm_up_randseed"] = str(warm.seed)
            ended = run.execute(warm, name="warm-up", output=drive.work_directory / DOCUMENT)
            if ended.failure:
                return Driven(window=ended.life, effective=effective, invalid_reason=f"warming up: {ended.failure}")
        before = prepared_files.counters(place, run.directory)
        drive.on_progress({"progress": "measuring", "time_ns": before["time_ns"]})
        ended = run.execute(measured, name="load", output=drive.directory / DOCUMENT)
        edges = [before, prepared_files.counters(place, run.directory)]
        tool.keep(place, drive, {file_scalars.COUNTERS: json.dumps(edges).encode()})
        effective |= {"randseed": str(measured.seed), "random_distribution": run.chosen}
        effective |= file_scalars.said_of(before["medium"])
        failure = ended.failure or run.convert(ended)
        return Driven(window=ended.life, effective=effective, invalid_reason=failure)

    def scalars(self, directory: Path, window: Window) -> dict[str, float]:
        """Accesses, misses and what they cost; latencies from fio's bins, their mean and maximum as fio keeps them."""
        own = file_scalars.compute(directory, window=window, direct=self.parameters.direct)
        latencies = latency.compute(directory)
        known = json.loads((directory / "result.json").read_bytes())["latency"]
        exact = {f"{side}_": found for side, found in known.items() if found}
        if exact:
            count = sum(found["n"] for found in exact.values())
            mean_ns = sum(found["n"] * found["mean_ns"] for found in exact.values()) / count
            exact[""] = {"mean_ns": mean_ns, "max_ns": max(found["max_ns"] for found in exact.values())}
        for prefix, found in exact.items():
            latencies |= {f"{prefix}latency_ns_{name}": found[f"{name}_ns"] for name in ("mean", "max")}
        return {**own, **latencies, **_footprint(self.parameters)}

    def contradictions(self, directory: Path) -> list[str]:
        """Where our files disagree, or are not what fio wrote."""
        result = json.loads((directory / "result.json").read_bytes())
        return [*agreeing.contradictions(directory, result), *consistency.contradictions(directory)]


def _footprint(parameters: FioParameters) -> dict[str, float]:
    if parameters.reaches_by_hash:
        share = footprint.share(parameters.size // parameters.block_size)
    else:
        share = 1.0 if parameters.is_random and parameters.distribution == "random" else None
    return {} if share is None else {"footprint_share": share}


class _Run:
    """A trial's processes of fio."""

    def __init__(self, place: OpenPlace, parameters: FioParameters, drive: Drive, *, directory: PurePosixPath) -> None:
        self.place = place
        self.parameters = parameters
        self.drive = drive
        self.directory = directory
        self.chosen = job_file.distribution(parameters.distribution, trial_seed=drive.seed)

    def life(self, part: str, accesses: int | None, duration_s: float | None) -> Life:
        """One process; only the window's keeps histograms."""
        logs = self.drive.work_directory if part == "window" else None
        seed = tool.seed_of(self.drive.seed, part)
        return Life(accesses=accesses, duration_s=duration_s, seed=seed, logs=logs)

    def parse(self, life: Life) -> None:
        """Lets fio read the job without running it, which also brings its program into memory.

        Raises:
            PlaceError: fio refuses an option, in its own words.
        """
        path = self._put(life, self.drive.directory / JOB_FILE)
        parsed = self.place.execute(["fio", "--parse-only", str(path)])
        if parsed.code != 0:
            said = checking.words(parsed.output.splitlines())
            raise PlaceError(
                f"fio rejects the job: {said}", hint="fix workload.fio; fio's manual describes every option"
            )

    def _put(self, life: Life, path: PurePosixPath) -> PurePosixPath:
        text = job_file.text(self.parameters, life, directory=str(self.directory), chosen=self.chosen)
        self.place.agent.put(str(path), text.encode(), mode=0o644)
        return path

    def execute(self, life: Life, *, name: str, output: PurePosixPath) -> Ran:
        """Runs fio to its end."""
        path = self._put(life, self.drive.work_directory / f"{name}.job")
        running = Running(name, self.drive.work_directory, self._limit_s(life), self.drive.starting)
        arguments = ["--output-format=json+", f"--output={output}", "--eta=never", str(path)]
        ran = PROGRAM.run(self.place, arguments, running)
        tool.keep(self.place, self.drive, {f"log/{name}.log": ran.text.encode()})
        return ran

    def _limit_s(self, life: Life) -> float:
        return (life.duration_s or 0) + (life.accesses or 0) / COUNTED_PER_S + DRIVE_GRACE_S

    def convert(self, ended: Ran) -> str:
        """Makes our files of fio's; returns why the trial cannot count, empty if it can."""
        found = output.document(self._text(self.drive.directory / DOCUMENT))
        if failure := output.failure(found):
            return failure
        result = output.result(found)
        began_ns = max(ended.life.start_ns, ended.life.end_ns - result["runtime_ms"] * output.NANOSECONDS_PER_MS)
        logs = [
            self._text(self.drive.work_directory / f"{HISTOGRAMS}_clat_hist.{job}.log")
            for job in range(1, self.parameters.jobs + 1)
        ]
        intervals = output.intervals(
            logs,
            output.whole(found),
            width_ms=round(self.parameters.interval * 1000),
            life_ns=(began_ns, ended.life.end_ns),
        )
        result |= {
            "window": ended.life.model_dump(),
            "client": {**ended.usage.model_dump(), **result["client"]},
            "effective": {},
        }
        files = {
            "result.json": json.dumps(result).encode(),
            "latency.hlog": output.latency_log(intervals).encode(),
            "timeline.parquet": output.timeline(intervals),
        }
        tool.keep(self.place, self.drive, files)
        done = sum(outcome["committed"] for outcome in result["transactions"].values())
        return "" if done else "fio made no access inside the measurement window"

    def _text(self, path: PurePosixPath) -> str:
        return self.place.agent.get(str(path)).decode("utf-8", errors="replace")
