"""Lines of progress: the agent's own, and those of programs that the control plane runs itself."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from fairtrial.protocol.generated import (
    FinishingProgress,
    LoadingProgress,
    MeasuringProgress,
    ProbedProgress,
    ProbingProgress,
    RampUpProgress,
    RateProgress,
    ReadyProgress,
)


class HashingProgress(BaseModel):
    """Another program's data are hashed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    progress: Literal["hashing"] = "hashing"


class TelemetryProgress(BaseModel):
    """What the sampler read of one source: a few of its raw counters and gauges. `time_ns`: monotonic, the place's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    progress: Literal["telemetry"] = "telemetry"
    source: str
    time_ns: int
    values: dict[str, int]


ProgressLine = (
    FinishingProgress
    | HashingProgress
    | LoadingProgress
    | MeasuringProgress
    | ProbedProgress
    | ProbingProgress
    | RampUpProgress
    | RateProgress
    | ReadyProgress
    | TelemetryProgress
)
PROGRESS: Final[TypeAdapter[ProgressLine]] = TypeAdapter(Annotated[ProgressLine, Field(discriminator="progress")])
