"""The keys of a study file, their meaning and their limits: what the JSON Schema and the reference page are made from.

Owns what can be said without knowing any kind. Parameters of places, systems, workloads and settings are the
catalogue's.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from fairtrial.study.quantities import Seconds, Share

MAXIMUM_BLOCKS = 10_000  # a year of one-hour trials; more is a typing error
MAXIMUM_SEED = 2**63 - 1  # what every tool that takes a seed accepts
FASTEST_TELEMETRY_S = 0.01  # below it the sampler's own CPU shows in the measurement

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=80)]


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Names = Annotated[list[str], BeforeValidator(_as_list)]


def _whole_milliseconds(seconds: float) -> float:
    if round(seconds * 1000) != round(seconds * 1000, 6):
        raise ValueError(f"expected whole milliseconds, found {seconds * 1000:g} ms")
    return seconds


class FileModel(BaseModel):
    """Frozen, and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Overlay(FileModel):
    """A partial trial, merged over the base trial: mappings key by key, scalars and lists replace, `null` removes."""

    place: dict[str, Any] | None = Field(None, description="Changes the place; another kind replaces it whole.")
    system: dict[str, Any] | None = Field(None, description="Changes the system; another kind replaces it whole.")
    workload: dict[str, Any] | None = Field(None, description="Changes the workload; another kind replaces it whole.")
    settings: dict[str, Any] | None = Field(None, description="Changes settings.")


class Trials(FileModel):
    """How many trials, in which order, and how they are judged."""

    blocks: int = Field(10, ge=1, le=MAXIMUM_BLOCKS, description="Blocks per cell: trials of each arm in each cell.")
    order: Literal["randomised_blocks", "abba", "sequential"] = Field(
        "randomised_blocks",
        description="`randomised_blocks`: rounds of one block per cell, cells and arms shuffled. `abba`: arms in "
        "alternating direction. `sequential`: one arm after the other, which confounds the arm with time.",
    )
    seed: int = Field(
        1,
        ge=0,
        le=MAXIMUM_SEED,
        description="Decides order and load: the same seed, the same plan, on every machine. The arms of a block share "
        "the load's seed, so that what its draw adds leaves their ratio; blocks and cells differ.",
    )
    stop: Literal["fixed"] = Field("fixed", description="`fixed`: all blocks are run.")
    margin: Share = Field(0.02, gt=0, lt=1, description="Differences within this share of the baseline do not matter.")
    confidence: Share = Field(0.95, ge=0.5, lt=1, description="Confidence of every interval, before multiplicity.")
    voided_limit: int | None = Field(
        None,
        ge=0,
        le=MAXIMUM_BLOCKS,
        description="How many blocks a cell may lose to invalid trials and have replaced; by default `blocks`.",
    )


class Metrics(FileModel):
    """Which quantities are judged, by role."""

    primary: Annotated[Names, Field(min_length=1)] = Field(
        description="Verdicts are adjusted for these: every cell and arm of one family. One name or a list."
    )
    secondary: Names = Field([], description="Reported with intervals, outside the family.")
    guardrails: Names = Field([], description="Must not get worse, whatever the primary metric gains.")

    @model_validator(mode="after")
    def _one_role_each(self) -> Self:
        names = [*self.primary, *self.secondary, *self.guardrails]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"a metric has one role and stands there once, but not {', '.join(twice)}")
        return self


class Telemetry(FileModel):
    """What is sampled beside the load."""

    interval: Annotated[Seconds, AfterValidator(_whole_milliseconds)] = Field(
        1.0,
        ge=FASTEST_TELEMETRY_S,
        le=60,
        description="Between two samples; from 10ms to 1min, whole milliseconds. A server's own counters are asked for "
        "every 100ms at most.",
    )
    lock_waits: bool = Field(
        default=False, description="Ask a server at each sample who waits for whose lock; it costs the server more."
    )


class StudyFile(FileModel):
    """A study: one question, with its design and procedure."""

    study: Name = Field(description="Its name; runs are named after it.")
    question: str = Field("", description="What the study asks, in a sentence; every report begins with it.")
    include: str | list[str] = Field(
        [], description="Files merged below this one, in this order; relative to the file that includes."
    )
    place: dict[str, Any] = Field({"local": {}}, description="Where trials run: exactly one kind.")
    system: dict[str, Any] = Field({"command": {}}, description="What is tested: exactly one kind.")
    workload: dict[str, Any] = Field({}, description="What loads the system: exactly one kind.")
    settings: dict[str, Any] = Field({}, description="Changes outside system and workload, by kind.")
    factors: dict[Name, Annotated[dict[Name, Overlay], Field(min_length=1)]] = Field(
        min_length=1, description="Factors, each with its levels; the first level is the baseline."
    )
    arm: str = Field(description="The factor under test.")
    also_compare: Names = Field([], description="Other factors that are contrasted as well. One name or a list.")
    expect: dict[str, dict[str, str]] = Field(
        {},
        description="By level (or `factor.level`): metric → range, one of `8..12 %`, `'>= 3'`, `'<= 0.1'`. A cell that "
        "does not keep to it gets no verdict.",
    )
    trials: Trials = Field(Trials(), description="Number, order and judgement of trials.")
    metrics: Metrics = Field(description="Quantities by role.")
    telemetry: Telemetry = Field(Telemetry(), description="Sampling beside the load.")
    sizes: dict[Name, dict[str, Any]] = Field(
        {}, description="Named partial studies, merged over this one by `--size NAME`."
    )
