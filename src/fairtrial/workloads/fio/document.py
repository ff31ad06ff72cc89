"""fio's JSON document, as much of it as is read; versions differ in what they leave out."""

from __future__ import annotations

import json

from pydantic import BaseModel, Field


class Latency(BaseModel, frozen=True):
    """Latencies of one kind, nanoseconds; `bins` by their middles, of `json+` only."""

    count: int = Field(0, alias="N")
    mean: float = 0.0
    max: float = 0.0
    bins: dict[int, int] = {}
    percentile: dict[float, float] = {}


class Side(BaseModel, frozen=True):
    """A direction of a job; old versions have its bandwidth in KiB per second only."""

    total_ios: int = 0
    io_bytes: int = 0
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


class Job(BaseModel, frozen=True):
    """A job, or one of its clones; processor time in percent of its run time, which is in milliseconds."""

    jobname: str = ""
    error: int = 0
    total_err: int = 0
    job_runtime: int = 0
    usr_cpu: float = 0.0
    sys_cpu: float = 0.0
    ctx: int = 0
    read: Side = Side()
    write: Side = Side()
    trim: Side = Side()

    def side(self, name: str) -> Side:
        """The direction of this name."""
        found: Side = getattr(self, name)
        return found


class Document(BaseModel, frozen=True):
    """The whole."""

    jobs: list[Job] = []

    @classmethod
    def of(cls, text: str) -> Document:
        """The document in an output, which may have notes before it.

        Raises:
            ValueError: it is not there, or cut.
        """
        found, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
        return cls.model_validate(found)


def weighed_mean(latencies: list[Latency]) -> float:
    """The mean over all clones, of which at least one has a latency."""
    return sum(each.mean * each.count for each in latencies) / sum(each.count for each in latencies)
