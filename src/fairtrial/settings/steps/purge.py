"""Parameters of a governor of purge (MDEV-26356), as a study has them and as the agent takes them.

Owns their bounds and both forms. It must not know how the governor's process lives (`run.trial.governing`).
"""

from __future__ import annotations

from typing import Annotated, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fairtrial.protocol.endpoints import Database
from fairtrial.protocol.generated import Bounds, GovernPurge
from fairtrial.study.tree.quantities import Seconds, Share

MOST_THREADS: Final = 32  # innodb_purge_threads
MOST_BATCH: Final = 5000  # innodb_purge_batch_size
LONGEST_MS: Final = 60_000
LONGEST_ANSWER_S: Final = 10
MILLISECONDS_PER_SECOND: Final = 1000
PERCENT: Final = 100
ROUNDING: Final = 1e-6  # of a number that is whole but for how it is kept


def _whole_milliseconds(value: float) -> float:
    milliseconds = value * MILLISECONDS_PER_SECOND
    if abs(milliseconds - round(milliseconds)) > ROUNDING or not 1 <= round(milliseconds) <= LONGEST_MS:
        raise ValueError("expected whole milliseconds from 1ms to 60s")
    return value


def _whole_percent(value: float) -> float:
    percent = value * PERCENT
    if abs(percent - round(percent)) > ROUNDING or percent > PERCENT:
        raise ValueError("expected whole percents up to 100%: the algorithm counts in them")
    return value


Milliseconds = Annotated[Seconds, AfterValidator(_whole_milliseconds)]
Percents = Annotated[Share, AfterValidator(_whole_percent)]


class _Bounds(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    min: int
    max: int | None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max is not None and self.min > self.max:
            raise ValueError(f"`min` {self.min} is above `max` {self.max}")
        return self


class ThreadBounds(_Bounds):
    """Purge threads."""

    min: int = Field(1, ge=1, le=MOST_THREADS, description="Fewest while purge runs.")
    max: int | None = Field(None, ge=1, le=MOST_THREADS, description="Most; the server's own number without it.")


class BatchBounds(_Bounds):
    """Undo log pages of a batch."""

    min: int = Field(1, ge=1, le=MOST_BATCH, description="While purge is held.")
    max: int | None = Field(None, ge=1, le=MOST_BATCH, description="While it runs; the server's own without it.")


class PurgeGovernor(BaseModel):
    """How purge is governed; `{}` is the algorithm as published, every 50 ms."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    period: Milliseconds = Field(0.05, description="Time between two looks at the server.")
    answer_limit: Milliseconds = Field(1.0, description="How long a look waits for a server that hangs.")
    threads: ThreadBounds = Field(default_factory=ThreadBounds, description="Bounds of `innodb_purge_threads`.")
    batch_size: BatchBounds = Field(default_factory=BatchBounds, description="Bounds of `innodb_purge_batch_size`.")
    low_water: Percents = Field(
        0.2, description="Checkpoint age, as a share of the largest, up to which all threads work."
    )
    stop: Percents = Field(0.8, gt=0, description="From which purge is held: fewest threads, smallest batch.")
    hysteresis: Percents = Field(0.02, description="How far below `stop` the age must fall before purge is let go.")
    dry_run: bool = Field(
        default=False,
        description="Looks, decides and logs as ever, and sets nothing: an arm that tells what looking costs.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.answer_limit > LONGEST_ANSWER_S:
            raise ValueError(f"`answer_limit` is at most {LONGEST_ANSWER_S}s: nobody waits longer for its end")
        if self.low_water >= self.stop:
            raise ValueError("`low_water` must be below `stop`")
        if self.hysteresis >= self.stop:
            raise ValueError("`hysteresis` must be below `stop`")
        return self

    def governing(
        self, endpoint: Database, *, duration_s: float | None = None, output_directory: str | None = None
    ) -> GovernPurge:
        """What the agent takes, but for where original values are kept.

        Args:
            endpoint: of the server.
            duration_s: after which it ends by itself; None: it does not.
            output_directory: for its files; None: decisions go to standard output.
        """
        return GovernPurge(
            endpoint=endpoint,
            period_ms=round(self.period * MILLISECONDS_PER_SECOND),
            answer_limit_ms=round(self.answer_limit * MILLISECONDS_PER_SECOND),
            threads=Bounds(least=self.threads.min, most=self.threads.max),
            batch_size=Bounds(least=self.batch_size.min, most=self.batch_size.max),
            low_water_percent=round(self.low_water * PERCENT),
            stop_percent=round(self.stop * PERCENT),
            hysteresis_percent=round(self.hysteresis * PERCENT),
            dry_run=self.dry_run,
            duration_s=duration_s,
            output_directory=output_directory,
        )
