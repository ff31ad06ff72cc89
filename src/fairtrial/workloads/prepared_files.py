"""Files that workloads access: one per job, its own alone, made once and restored for every trial."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Annotated, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fairtrial.errors import PlaceError
from fairtrial.programs import Act
from fairtrial.protocol.endpoints import Endpoint, FilesEndpoint
from fairtrial.protocol.generated import FileCounters, FileCountersOf, FileLoad, Loaded
from fairtrial.protocol.subcommands import FILE_COUNTERS, FILE_LOAD
from fairtrial.study.tree.quantities import NUMBER, Bytes, Seconds
from fairtrial.wire.native import OnProgress
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.workload import Workload

LOADER_VERSION = 1  # part of the key of prepared data: raise it when the loader writes other data
LOAD_BYTES_PER_S = 1 << 20  # a hung load ends some day; the slowest guest under emulation writes ten times as much
LOAD_GRACE_S = 600.0
UNIT_BYTES = 512  # the smallest block that storage reads or writes
PAGE_BYTES = 4096
GUESSED_PER_S = 5_000.0  # to estimate a drive by count before anything was measured

SHAPES = ("zipf", "pareto", "normal")  # distributions that are spread over a file by a hash, or a permutation


def _pages(size: int) -> int:
    if not size or size % PAGE_BYTES:
        raise ValueError(f"expected whole pages of {PAGE_BYTES} bytes, found {size} bytes")
    return size


def _units(size: int) -> int:
    if not size or size % UNIT_BYTES:
        raise ValueError(f"expected a multiple of {UNIT_BYTES} bytes, found {size}")
    return size


_SKEWED = re.compile(rf"({'|'.join(SHAPES)}):({NUMBER})(?::({NUMBER}))?")


def skewed(distribution: str) -> tuple[str, float, float | None] | None:
    """Shape, parameter and centre of `zipf:0.8` or `zipf:0.8:0.5`; None for any other distribution."""
    match = _SKEWED.fullmatch(distribution)
    return None if match is None else (match[1], float(match[2]), None if match[3] is None else float(match[3]))


class FileParameters(BaseModel):
    """What every access to prepared files takes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    jobs: int = Field(1, ge=1, le=4096, description="Number of jobs, each with a file of its own.")
    size: Annotated[Bytes, AfterValidator(_pages)] = Field(
        64 << 20, description="Length of each job's file, in whole pages."
    )
    block_size: Annotated[Bytes, AfterValidator(_units)] = Field(
        PAGE_BYTES, description="Number of bytes per access, a multiple of 512."
    )
    direct: bool = Field(default=False, description="Whether to bypass the page cache (O_DIRECT).")
    accesses: int | None = Field(
        None,
        ge=1,
        description="Length of the measurement window as a number of accesses of each job; counts per access are "
        "comparable under emulation, too.",
    )
    duration: Seconds | None = Field(None, gt=0, description="Length of the measurement window, instead of `accesses`.")
    warm_up_accesses: int = Field(
        0, ge=0, description="Number of accesses of each job before the measurement window, excluded from all metrics."
    )
    interval: Seconds = Field(1.0, ge=0.01, le=60, description="Width of timeline and histogram intervals.")
    data_seed: int = Field(1, ge=0, description="Seed of the files' content.")

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if (self.accesses is None) == (self.duration is None):
            raise ValueError("expected exactly one of `accesses` and `duration`, which ends the measurement window")
        if self.size % self.block_size:
            raise ValueError("`size` must be a multiple of `block_size`")
        return self


Parameters = TypeVar("Parameters", bound=FileParameters)


class FileWorkload(Workload[Parameters]):
    """What the workloads of prepared files have in common."""

    throughput = "throughput_iops"
    example = MappingProxyType({"accesses": 10000})
    systems = frozenset({"files"})

    def duration_s(self) -> float:
        """Warm-up and window; what goes by count is guessed."""
        parameters = self.parameters
        measured = (parameters.duration or 0) + (parameters.accesses or 0) / GUESSED_PER_S
        return measured + parameters.warm_up_accesses / GUESSED_PER_S

    def disk_bytes(self) -> int:
        """Of all files."""
        return self.parameters.jobs * self.parameters.size

    def loading(self) -> Iterator[Act]:
        """Our own loader of files."""
        yield Act("runs", f"fairtrial-agent {FILE_LOAD.name}", "to make data")

    def data(self) -> Mapping[str, object]:
        """Number, length, seed and version of the loader; what accesses them does not matter."""
        return {
            "workload": "files",
            "files": self.parameters.jobs,
            "bytes": self.parameters.size,
            "seed": self.parameters.data_seed,
            "loader_version": LOADER_VERSION,
        }

    def load(self, place: OpenPlace, endpoint: Endpoint, *, on_progress: OnProgress) -> Loaded:
        """Writes `job.0`, `job.1` and so on, each 512 bytes beginning with their place."""
        task = FileLoad(
            directory=str(directory(endpoint)),
            files=self.parameters.jobs,
            bytes=self.parameters.size,
            seed=self.parameters.data_seed,
        )
        limit_s = LOAD_GRACE_S + self.disk_bytes() / LOAD_BYTES_PER_S
        return place.native(FILE_LOAD, task, timeout_s=limit_s, on_progress=on_progress)


def directory(endpoint: Endpoint | None) -> PurePosixPath:
    """Where the files are.

    Raises:
        PlaceError: the system has none.
    """
    if not isinstance(endpoint, FilesEndpoint):
        raise PlaceError("this workload needs files", hint="name the system: `system: {files: {}}`")
    return PurePosixPath(endpoint.directory)


def counters(place: OpenPlace, files: PurePosixPath) -> FileCounters:
    """The kernel's counters now, and what the files lie on."""
    return place.native(FILE_COUNTERS, FileCountersOf(path=str(files / "job.0")))
