"""When transactions begin, beyond one rate: rates that change, recorded times, and searches for the highest rate.

Owns what a study may say of them and what the engine is told. Times count from the start of ramp-up.
"""

from __future__ import annotations

import math
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from fairtrial.metrics.latency.percentiles import PERCENTILES
from fairtrial.protocol import generated as wire
from fairtrial.study.tree.quantities import Rate, Seconds, Share, format_rate, format_seconds
from fairtrial.workloads.engine.replay import RecordingFile

HIGHEST_PER_S: Final = 1e8  # beyond what any server here can be asked
LONGEST_S: Final = 31_536_000  # a year
SMALLEST: Final = 1e-9  # the engine's resolution, of seconds and of rates
MOST_STEPS: Final = 1_000  # more are a replay
OBSERVATIONS_BEYOND: Final = 10  # fewer observations beyond a percentile say little of it, and a probe is repeated
LIMITS_IN_A_WINDOW: Final = 20  # younger transactions say nothing yet at its end, which must be few
GROWTH: Final = 2.0  # the engine's own, until a rate misses the objective
PROBES_MOST: Final = 3  # of one rate
PROBE_OVERHEAD_S: Final = 1.0  # to connect, and to end what was begun
PROBE_GRACE_S: Final = 10.0  # the same where the server is overloaded

Percentile = Literal["p50", "p95", "p99", "p999"]
Spacing = Literal["constant", "exponential"]
Offered = (
    wire.ClosedArrivals
    | wire.OpenArrivals
    | wire.StepsArrivals
    | wire.RampArrivals
    | wire.SineArrivals
    | wire.ReplayArrivals
    | wire.SearchArrivals
)


class ArrivalsModel(BaseModel):
    """Frozen, and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)


class Step(ArrivalsModel):
    """A rate and how long it lasts."""

    rate: Rate = Field(le=HIGHEST_PER_S, description="Rate of all virtual users together; 0 is a pause.")
    length: Seconds = Field(ge=SMALLEST, le=LONGEST_S, description="Length of the step.")


class Ramp(ArrivalsModel):
    """A rate that changes evenly and then stays; after a ramp to 0 the drive ends when the last has ended."""

    from_: Rate = Field(alias="from", le=HIGHEST_PER_S, description="Rate at the beginning.")
    to: Rate = Field(le=HIGHEST_PER_S, description="Rate at the end, and from then on.")
    over: Seconds = Field(ge=SMALLEST, le=LONGEST_S, description="Length of the change.")

    @model_validator(mode="after")
    def _some(self) -> Self:
        if max(self.from_, self.to) < SMALLEST:
            raise ValueError("a ramp from 0 to 0 has no arrivals")
        return self


class Sine(ArrivalsModel):
    """A rate of mean + amplitude · sin(2π · time / period)."""

    mean: Rate = Field(ge=SMALLEST, le=HIGHEST_PER_S, description="Mean rate.")
    amplitude: Rate = Field(description="Largest difference from the mean; at most the mean itself.")
    period: Seconds = Field(ge=SMALLEST, le=LONGEST_S, description="Length of a wave.")

    @model_validator(mode="after")
    def _never_negative(self) -> Self:
        if self.amplitude > self.mean:
            raise ValueError(
                f"`amplitude` ({format_rate(self.amplitude)}) above `mean` ({format_rate(self.mean)}): "
                "the rate would become negative"
            )
        return self


class Replay(ArrivalsModel):
    """Arrivals at recorded times."""

    file: RecordingFile = Field(
        description="File with one number of seconds per line, counted from the first; the path is relative to the "
        "file that names it."
    )
    at_end: Literal["end", "again"] = Field(
        "end",
        description="What happens after the last time. `end`: the drive ends when the last transaction has ended, "
        "if `duration` or `transactions` does not end it before. `again`: the times start over, after the mean "
        "time between two arrivals.",
    )

    @model_validator(mode="after")
    def _two_times(self) -> Self:
        if self.at_end == "again" and not self.file.length_s:
            raise ValueError("`again` needs at least two different times")
        return self


class Search(ArrivalsModel):
    """A search for the highest rate that meets a latency objective: one trial is one search."""

    objective: dict[Percentile, Seconds] = Field(
        description="Latency objective: one percentile of latency, counted from when a transaction should have "
        "begun, and its limit: `{p99: 10ms}`."
    )
    from_: Rate = Field(alias="from", ge=SMALLEST, le=HIGHEST_PER_S, description="Rate of the first probe.")
    to: Rate = Field(ge=SMALLEST, le=HIGHEST_PER_S, description="Highest rate to probe.")
    precision: Share = Field(
        0.05, ge=0.001, le=1, description="Largest relative distance between the bounds at the end of the search."
    )
    window: Seconds = Field(10.0, ge=SMALLEST, le=LONGEST_S, description="Length of the measurement window of a probe.")
    settle: Seconds = Field(
        2.0,
        le=LONGEST_S,
        description="Ramp-up before each window, at the probe's rate; before the first, `ramp_up` if that is longer.",
    )

    @field_validator("objective")
    @classmethod
    def _one_objective(cls, value: dict[Percentile, float]) -> dict[Percentile, float]:
        if len(value) != 1:
            raise ValueError("expected exactly one percentile with its limit, such as {p99: 10ms}")
        if min(value.values()) < SMALLEST:
            raise ValueError("no latency meets a limit of 0")
        return value

    @model_validator(mode="after")
    def _long_enough(self) -> Self:
        if self.from_ > self.to:
            raise ValueError(f"`from` ({format_rate(self.from_)}) above `to` ({format_rate(self.to)})")
        ((percentile, limit_s),) = self.objective.items()
        needed = round(OBSERVATIONS_BEYOND / (1 - PERCENTILES[percentile] / 100))
        held = self.from_ * self.window
        if held < needed:
            raise ValueError(
                f"a `window` of {format_seconds(self.window)} at {format_rate(self.from_)} holds {held:g} "
                f"transactions, but {percentile} needs {needed}: lengthen it, or raise `from`"
            )
        if self.window < LIMITS_IN_A_WINDOW * limit_s:
            raise ValueError(
                f"a `window` of {format_seconds(self.window)} is too short for a limit of {format_seconds(limit_s)}: "
                "expected "
                f"at least {LIMITS_IN_A_WINDOW} times as long"
            )
        return self


class Arrivals(ArrivalsModel):
    """When transactions begin: exactly one of these."""

    steps: list[Step] | None = Field(
        None,
        min_length=1,
        max_length=MOST_STEPS,
        description="Rates one after the other, repeated from the beginning.",
    )
    ramp: Ramp | None = Field(None, description="Linear change from one rate to another.")
    sine: Sine | None = Field(None, description="Sine wave around a mean rate.")
    replay: Replay | None = Field(None, description="Arrivals at recorded times.")
    search: Search | None = Field(None, description="Search for the highest rate that meets a latency objective.")

    @field_validator("steps")
    @classmethod
    def _some(cls, value: list[Step] | None) -> list[Step] | None:
        if value is not None and max(step.rate for step in value) < SMALLEST:
            raise ValueError("steps whose rates are all 0 have no arrivals")
        return value

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(kind is not None for _, kind in self) != 1:
            raise ValueError("expected exactly one of `steps`, `ramp`, `sine`, `replay` and `search`")
        return self


def offered(arrivals: Arrivals, *, spacing: Spacing, path: str) -> Offered:
    """What the load generator gets.

    Args:
        arrivals: of the study.
        spacing: of arrivals.
        path: of recorded times at the place.
    """
    if arrivals.replay is not None:
        return wire.ReplayArrivals(path=path, again=arrivals.replay.at_end == "again")
    if arrivals.search is not None:
        return wire.SearchArrivals(search=_search(arrivals.search, spacing=spacing))
    if arrivals.ramp is not None:
        ramp = arrivals.ramp
        return wire.RampArrivals(from_per_s=ramp.from_, to_per_s=ramp.to, over_s=ramp.over, spacing=spacing)
    if arrivals.sine is not None:
        sine = arrivals.sine
        return wire.SineArrivals(
            mean_per_s=sine.mean, amplitude_per_s=sine.amplitude, period_s=sine.period, spacing=spacing
        )
    steps = [wire.RateStep(rate_per_s=step.rate, length_s=step.length) for step in arrivals.steps or ()]
    return wire.StepsArrivals(steps=steps, spacing=spacing)


def _search(search: Search, *, spacing: Spacing) -> wire.Search:
    ((percentile, limit_s),) = search.objective.items()
    return wire.Search(
        percentile=percentile,
        limit_s=limit_s,
        lowest_per_s=search.from_,
        highest_per_s=search.to,
        precision=search.precision,
        window_s=search.window,
        settle_s=search.settle,
        spacing=spacing,
    )


def duration_s(search: Search) -> float:
    """How long a search is expected to take: half the way up, both bounds repeated, then bisection."""
    up, halvings = _rates(search)
    return (math.ceil(up / 2) + 3 + 2 * halvings) * _probe_s(search, extra_s=PROBE_OVERHEAD_S)


def longest_s(search: Search) -> float:
    """How long it may take: every rate probed as often as any is."""
    return PROBES_MOST * (sum(_rates(search)) + 1) * _probe_s(search, extra_s=PROBE_GRACE_S)


def _rates(search: Search) -> tuple[int, int]:
    """Rates on the way up at most, and halvings of the last step."""
    up = math.ceil(math.log(search.to / search.from_, GROWTH)) + 1
    halvings = math.ceil(math.log2(math.log(GROWTH) / math.log1p(search.precision)))
    return up, max(halvings, 0)


def _probe_s(search: Search, *, extra_s: float) -> float:
    return search.settle + search.window + extra_s
