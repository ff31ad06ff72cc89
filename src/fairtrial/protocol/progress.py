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
)


class HashingProgress(BaseModel):
    """Another program's data are hashed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    progress: Literal["hashing"] = "hashing"


ProgressLine = (
    FinishingProgress
    | HashingProgress
    | LoadingProgress
    | MeasuringProgress
    | ProbedProgress
    | ProbingProgress
    | RampUpProgress
    | RateProgress
)
PROGRESS: Final[TypeAdapter[ProgressLine]] = TypeAdapter(Annotated[ProgressLine, Field(discriminator="progress")])
