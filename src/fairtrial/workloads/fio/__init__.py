"""`fio`: the real fio, on files of its own that were prepared, warmed up by a process that is in no figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from fairtrial import foreign
from fairtrial.metrics import consistency, latency
from fairtrial.metrics.drive import FILE as RESULT
from fairtrial.programs import Act, Program
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tree.nodes import Branch
from fairtrial.study.tree.problems import Problems
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import prepared_files
from fairtrial.workloads.engine import file_scalars
from fairtrial.workloads.fio import checking, footprint, job_file, output
from fairtrial.workloads.fio.parameters import FioParameters
from fairtrial.workloads.fio.running import HISTOGRAMS, PROGRAM, FioBench
from fairtrial.workloads.tool import Life, seed_of
from fairtrial.workloads.workload import Drive, DriveOutcome

SUBMISSION: Final = MetricDefinition(
    name="submission_share",
    label="time to submit accesses",
    unit="share",
    better="lower",
    kind="wall_clock",
    source=f"{output.DOCUMENT}: by how much the mean of clat_ns is below that of lat_ns, as a share of it; latency, "
    "which is clat, leaves it out",
)


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

    def acts(self) -> Iterator[Act]:
        """Fio, and every option of its job file."""
        parameters = self.parameters
        yield Act("runs", "fio --version", "in every trial, for the record")
        yield Act("runs", f"fio, with the engine {parameters.engine}", "in every trial, on files that fairtrial made")
        for name, value in parameters.options.items():
            yield Act("runs", f"fio option {f'{name}={value}' if value else name}")

    def metrics(self) -> Mapping[str, MetricDefinition]:
        """All of access to files; what sequential access can meet is not told."""
        definitions = {**file_scalars.definitions(resolution=output.RESOLUTION), SUBMISSION.name: SUBMISSION}
        if not self.parameters.is_random:
            del definitions["footprint_share"]
        return definitions

    def duration_s(self) -> float:
        """Warm-up and window; what goes by count is guessed."""
        return super().duration_s() + self.parameters.warm_up

    def require(self, place: OpenPlace) -> None:
        """Looks for fio."""
        PROGRAM.identify(place)

    def drive(self, place: OpenPlace, drive: Drive) -> DriveOutcome:
        """Warms up, then measures one life of fio; leaves fio's own files and ours made from them."""
        parameters = self.parameters
        chosen = job_file.distribution(parameters.distribution, trial_seed=drive.seed)
        bench = FioBench(place, parameters, prepared_files.directory(drive.endpoint), chosen)
        identity = PROGRAM.identify(place) | ({"random_distribution": chosen} if parameters.is_random else {})
        log = drive.work_directory / HISTOGRAMS
        window = Life(parameters.duration, parameters.accesses, seed=seed_of(drive.seed, "window"), log=log)
        bench.parse(window, drive)
        identity |= file_scalars.said_of(prepared_files.counters(place, bench.directory).medium)
        seed = seed_of(drive.seed, "warm-up")
        ramp_up = Life(parameters.warm_up or None, parameters.warm_up_accesses or None, seed=seed)
        return bench.drive(drive, identity, window=window, ramp_up=ramp_up)

    def scalars(self, directory: Path, window: Window) -> dict[str, float]:
        """Accesses, misses and what they cost; latencies from fio's bins, their mean and maximum as fio keeps them."""
        own = file_scalars.compute(directory, window=window, direct=self.parameters.direct)
        latencies = latency.compute(directory)
        known = foreign.of_trial(directory / RESULT, output.FioResult).latency
        exact = {f"{side}_": each for side, each in known.items() if each.n}
        if exact:
            count = sum(each.n for each in exact.values())
            mean_ns = sum(each.n * each.mean_ns for each in exact.values()) / count
            exact[""] = output.LatencySummary(
                n=count, mean_ns=mean_ns, max_ns=max(each.max_ns for each in exact.values())
            )
        for prefix, each in exact.items():
            latencies |= {f"{prefix}latency_ns_mean": each.mean_ns, f"{prefix}latency_ns_max": each.max_ns}
        submitting = output.submission_share(output.document(foreign.read(directory / output.DOCUMENT).decode()))
        return own | latencies | self._footprint() | ({} if submitting is None else {SUBMISSION.name: submitting})

    def _footprint(self) -> dict[str, float]:
        parameters = self.parameters
        if parameters.reaches_by_hash:
            share = footprint.share(parameters.size // parameters.block_size)
        else:
            share = 1.0 if parameters.is_random and parameters.distribution == "random" else None
        return {} if share is None else {"footprint_share": share}

    def contradictions(self, directory: Path) -> list[str]:
        """Where our files disagree, or are not what fio wrote."""
        return [*output.contradictions(directory), *consistency.contradictions(directory)]
