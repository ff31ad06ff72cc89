"""`file_access`: access to files by the native load engine, over a permutation that reaches every block at any size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, TypeAdapter, field_validator, model_validator

from fairtrial.metrics import consistency, latency
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import Kind
from fairtrial.study.tree.quantities import Share
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import prepared_files
from fairtrial.workloads.engine import file_scalars
from fairtrial.workloads.prepared_files import COUNTERS, FileParameters, skewed
from fairtrial.workloads.workload import Drive, Driven

DRIVE_GRACE_S = 300.0  # beyond what is asked for, for files to be opened and written
COUNTED_PER_S = 100.0  # accesses of one job; slower storage is broken
KEYS = {"zipf": "theta", "pareto": "h", "normal": "deviation_percent"}


class FileAccessParameters(FileParameters):
    """Access to one file per job, each block checked to be the right one."""

    engine: Literal["pread", "mmap", "io_uring"] = Field("pread", description="How a block reaches the process.")
    iodepth: int = Field(1, ge=1, le=4096, description="Accesses under way per job; more than one with `io_uring`.")
    distribution: str = Field(
        "random",
        description="`random`, `zipf:THETA`, `pareto:H` or `normal:PERCENT` (standard deviation, percent of the file); "
        "ranks lie in the file by a permutation that the trial's seed decides.",
    )
    write_share: Share = Field(0.0, ge=0, le=1, description="Share of accesses that write.")

    @field_validator("distribution")
    @classmethod
    def _known(cls, text: str) -> str:
        found = skewed(text)
        if text != "random" and (found is None or found[2] is not None):
            raise ValueError(f"expected `random`, `zipf:0.8`, `pareto:0.2` or `normal:14`, found {text!r}")
        if found is not None and (found[1] <= 0 or (found[0] == "pareto" and found[1] >= 1)):
            raise ValueError(f"{found[1]:g} is no parameter of `{found[0]}`")
        return text

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        self.one_end()
        if self.iodepth > 1 and self.engine != "io_uring":
            raise ValueError("only `io_uring` has several accesses under way: leave `iodepth` out")
        if self.direct and self.engine == "mmap":
            raise ValueError("a mapping is the page cache: `mmap` cannot be `direct`")
        return self


KIND = Kind(
    name="file_access",
    summary="Access to files by the native load engine, uniform or skewed, buffered, direct, mapped or by io_uring.",
    parameters=TypeAdapter(FileAccessParameters),
    metrics=lambda _parameters: file_scalars.definitions(),
    throughput="throughput_iops",
    example={"accesses": 10000},
    duration_s=prepared_files.duration_s,
    disk_bytes=prepared_files.disk_bytes,
    systems=frozenset({"files"}),
)


data = prepared_files.data
load = prepared_files.load


def drive(place: OpenPlace, parameters: Mapping[str, Any], drive: Drive) -> Driven:
    """Warms up and measures; leaves `result.json`, `latency.hlog`, `timeline.arrows` and `counters.json`.

    Raises:
        PlaceError: an access failed, or gave a block of another place.
    """
    task = {
        "directory": str(prepared_files.directory(drive.endpoint)),
        "jobs": parameters["jobs"],
        "bytes": parameters["size"],
        "block_bytes": parameters["block_size"],
        "engine": parameters["engine"],
        "direct": parameters["direct"],
        "depth": parameters["iodepth"],
        "distribution": _distribution(parameters["distribution"]),
        "write_share": parameters["write_share"],
        "accesses": parameters["accesses"],
        "duration_s": parameters["duration"],
        "warm_up_accesses": parameters["warm_up_accesses"],
        "seed": drive.seed,
        "interval_ms": round(parameters["interval"] * 1000),
        "output_directory": str(drive.directory),
    }
    place.native(
        "file-drive",
        task,
        timeout_s=_limit_s(parameters),
        on_progress=drive.on_progress,
        **drive.starting,
    )
    result = json.loads(place.agent.get(str(drive.directory / "result.json")))
    medium = json.loads(place.agent.get(str(drive.directory / COUNTERS)))[0]["medium"]
    done = sum(outcome["committed"] for outcome in result["transactions"].values())
    return Driven(
        window=Window.model_validate(result["window"]),
        effective={**result["effective"], **file_scalars.said_of(medium)},
        invalid_reason="" if done else "no access ended inside the measured window",
    )


def _distribution(text: str) -> Mapping[str, Any]:
    found = skewed(text)
    return {"kind": "random"} if found is None else {"kind": found[0], KEYS[found[0]]: found[1]}


def _limit_s(parameters: Mapping[str, Any]) -> float:
    counted = (parameters["accesses"] or 0) + parameters["warm_up_accesses"]
    return float((parameters["duration"] or 0) + counted / COUNTED_PER_S + DRIVE_GRACE_S)


def checks_after(_parameters: Mapping[str, Any]) -> str:
    """Every block read was checked when it was read."""
    return "never"


def check(_place: OpenPlace, _parameters: Mapping[str, Any], _endpoint: Mapping[str, Any]) -> list[Check]:
    """Nothing more to check."""
    return []


def scalars(directory: Path, parameters: Mapping[str, Any], window: Window) -> dict[str, float]:
    """Accesses, misses and what they cost, from `result.json`, `counters.json` and `latency.hlog`."""
    own = file_scalars.compute(directory, window=window, direct=parameters["direct"])
    return {**own, "footprint_share": 1.0, **latency.compute(directory)}


def contradictions(directory: Path, _parameters: Mapping[str, Any]) -> list[str]:
    """Where the engine's files disagree: each counts all accesses."""
    return consistency.contradictions(directory)
