"""fio's JSON document, as much of it as is read; versions differ in what they leave out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Final, Self

from pydantic import BaseModel, Field, model_validator

DIRECTIONS: Final = ("read", "write", "trim")
LATENCIES: Final = ("slat_ns", "clat_ns", "lat_ns")
Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class Latency(BaseModel, frozen=True):
    """Latencies of one kind, nanoseconds; `bins` by their middles, of `json+` only."""

    count: Count = Field(0, alias="N")
    mean: float = 0.0
    max: float = 0.0
    bins: dict[Count, Count] = {}
    percentile: dict[float, float] = {}


class Direction(BaseModel, frozen=True):
    """A direction of a job; old versions have its bandwidth in KiB per second only."""

    total_ios: Count = 0
    io_bytes: Count = 0
    iops: float = 0.0
    bw: float = 0.0
    bw_bytes: float | None = None
    slat_ns: Latency = Latency()
    clat_ns: Latency = Latency()
    lat_ns: Latency = Latency()

    @property
    def bytes_per_s(self) -> float:
        """Bandwidth."""
        return self.bw * 1024 if self.bw_bytes is None else self.bw_bytes

    def missing(self) -> Iterator[str]:
        """Figures of its I/O that it does not have; without I/O it needs none."""
        if self.total_ios and "iops" not in self.model_fields_set:
            yield "iops"
        if self.total_ios and self.bw_bytes is None and "bw" not in self.model_fields_set:
            yield "bw_bytes"
        for name in LATENCIES:
            latency: Latency = getattr(self, name)
            if latency.count:
                yield from (f"{name}.{each}" for each in ("mean", "max") if each not in latency.model_fields_set)


class Job(BaseModel, frozen=True):
    """A job, or one of its clones; processor time in percent of its run time, which is in milliseconds."""

    jobname: str
    error: int = 0
    total_err: Count = 0
    job_runtime: Count = 0
    usr_cpu: float = 0.0
    sys_cpu: float = 0.0
    ctx: Count = 0
    read: Direction = Direction()
    write: Direction = Direction()
    trim: Direction = Direction()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """A failed job needs no figures: its error is what counts."""
        missing = [] if self.error else [f"{name}.{each}" for name in DIRECTIONS for each in self.side(name).missing()]
        if missing:
            raise ValueError(f"expected figures of the job's I/O, missing: {', '.join(missing)}")
        return self

    def side(self, name: str) -> Direction:
        """The direction of this name."""
        side: Direction = getattr(self, name)
        return side


class Document(BaseModel, frozen=True):
    """The whole."""

    jobs: list[Job] = []

    @classmethod
    def of(cls, text: str) -> Document:
        """The document in an output, which may have notes before it.

        Raises:
            ValidationError: a field is missing, or is not what fio writes.
            ValueError: it is not there, or cut.
        """
        content, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
        return cls.model_validate(content)


def weighed_mean(latencies: list[Latency]) -> float:
    """The mean over all clones, of which at least one has a latency."""
    return sum(each.mean * each.count for each in latencies) / sum(each.count for each in latencies)
