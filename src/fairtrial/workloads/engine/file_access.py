"""`file_access`: access to files by the native load engine, over a permutation that reaches every block at any size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from fairtrial.metrics import consistency, latency
from fairtrial.programs import Act
from fairtrial.protocol import generated as wire
from fairtrial.protocol.subcommands import FILE_DRIVE
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tree.quantities import Share
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import prepared_files
from fairtrial.workloads.engine import drive as native
from fairtrial.workloads.engine import file_scalars
from fairtrial.workloads.prepared_files import FileParameters, skewed
from fairtrial.workloads.workload import Drive, DriveOutcome

DRIVE_GRACE_S = 300.0  # beyond what is asked for, for files to be opened and written
COUNTED_PER_S = 100.0  # accesses of one job; slower storage is broken
Distribution = (
    wire.RandomFileDistribution | wire.ZipfFileDistribution | wire.ParetoFileDistribution | wire.NormalFileDistribution
)


class FileAccessParameters(FileParameters):
    """Access to one file per job, each block checked to be the right one."""

    engine: Literal["pread", "mmap", "io_uring"] = Field(
        "pread", description="Way in which a block reaches the process."
    )
    iodepth: int = Field(
        1, ge=1, le=4096, description="Queue depth: outstanding accesses per job; more than one with `io_uring` only."
    )
    distribution: str = Field(
        "random",
        description="Distribution of accesses: `random`, `zipf:THETA`, `pareto:H` or `normal:PERCENT` (standard "
        "deviation, percent of the file); the trial's seed decides the permutation by which ranks lie in the file.",
    )
    write_share: Share = Field(0.0, ge=0, le=1, description="Share of accesses that write.")

    @field_validator("distribution")
    @classmethod
    def _known(cls, text: str) -> str:
        skew = skewed(text)
        if text != "random" and (skew is None or skew[2] is not None):
            raise ValueError(f"expected `random`, `zipf:0.8`, `pareto:0.2` or `normal:14`, found {text!r}")
        if skew is not None and (skew[1] <= 0 or (skew[0] == "pareto" and skew[1] >= 1)):
            raise ValueError(f"{skew[1]:g} is not a valid parameter of `{skew[0]}`")
        return text

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.iodepth > 1 and self.engine != "io_uring":
            raise ValueError("only `io_uring` allows more than one outstanding access: leave `iodepth` out")
        if self.direct and self.engine == "mmap":
            raise ValueError("`mmap` goes through the page cache and cannot be `direct`")
        return self


class FileAccess(prepared_files.FileWorkload[FileAccessParameters]):
    """Access to files by the native load engine, which checks every block when it is read."""

    name = "file_access"
    summary = "Access to files by the native load engine, uniform or skewed, buffered, direct, mapped or by io_uring."
    model = FileAccessParameters

    def acts(self) -> Iterator[Act]:
        """The load generator alone."""
        yield native.engine_act(FILE_DRIVE.name)

    def metrics(self) -> Mapping[str, MetricDefinition]:
        """All of access to files."""
        return file_scalars.definitions()

    def drive(self, place: OpenPlace, drive: Drive) -> DriveOutcome:
        """Warms up and measures; leaves `result.json`, `latency.hlog`, `timeline.arrows` and `counters.json`.

        Raises:
            PlaceError: an access failed, or gave a block of another place.
        """
        parameters = self.parameters
        task = wire.FileDrive(
            directory=str(prepared_files.directory(drive.endpoint)),
            jobs=parameters.jobs,
            bytes=parameters.size,
            block_bytes=parameters.block_size,
            engine=parameters.engine,
            direct=parameters.direct,
            depth=parameters.iodepth,
            distribution=_distribution(parameters.distribution),
            write_share=parameters.write_share,
            accesses=parameters.accesses,
            duration_s=parameters.duration,
            warm_up_accesses=parameters.warm_up_accesses,
            seed=drive.seed,
            interval_ms=round(parameters.interval * 1000),
            output_directory=str(drive.directory),
        )
        accesses = (parameters.accesses or 0) + parameters.warm_up_accesses
        limit_s = (parameters.duration or 0) + accesses / COUNTED_PER_S + DRIVE_GRACE_S
        place.native(FILE_DRIVE, task, timeout_s=limit_s, on_progress=drive.on_progress, **drive.process_options)
        result = native.read_result(place, drive)
        counted = native.left(place, drive.directory / file_scalars.COUNTERS, file_scalars.Edges)
        done = sum(outcome.committed for outcome in result.transactions.values())
        return DriveOutcome(
            window=native.window(result),
            effective={**result.effective, **file_scalars.said_of(counted.before.medium)},
            invalid_reason="" if done else "no access ended inside the measurement window",
        )

    def scalars(self, directory: Path, window: Window) -> dict[str, float]:
        """Accesses, misses and what they cost, from `result.json`, `counters.json` and `latency.hlog`."""
        own = file_scalars.compute(directory, window=window, direct=self.parameters.direct)
        return {**own, "footprint_share": 1.0, **latency.compute(directory)}

    def contradictions(self, directory: Path) -> list[str]:
        """Where the engine's files disagree: each counts all accesses."""
        return consistency.contradictions(directory)


def _distribution(text: str) -> Distribution:
    match skewed(text):
        case ("zipf", theta, _):
            return wire.ZipfFileDistribution(theta=theta)
        case ("pareto", h, _):
            return wire.ParetoFileDistribution(h=h)
        case ("normal", percent, _):
            return wire.NormalFileDistribution(deviation_percent=percent)
        case _:
            return wire.RandomFileDistribution()
