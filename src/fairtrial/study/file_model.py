"""The keys of a study file, their meaning and their limits: what the JSON Schema and the reference page are made from.

Owns what can be said without knowing any kind. Parameters of places, systems, workloads and settings are the
catalogue's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from fairtrial.study.builds import Builds
from fairtrial.study.designs.numeric_factors import Curve
from fairtrial.study.probes import MOST_PROBES, Probe
from fairtrial.study.service_counters import (
    ERROR_SUFFIX,
    CounterCommands,
    CounterMetric,
    Exporters,
    one_or_more,
)
from fairtrial.study.tree.problems import listed, raise_all, wrong_below
from fairtrial.study.tree.quantities import Seconds, Share, WholeMilliseconds
from fairtrial.study.tuning import Tuning

MAXIMUM_BLOCKS = 10_000  # a year of one-hour trials; more is a typing error
NOT_IN_SIZES = ("study", "include", "sizes")
TEXTS_AS_WRITTEN = ("study", "question", "arm")  # and `also_compare`: a factor `6.10` is not `6.1`
MAXIMUM_SEED = 2**63 - 1  # what every tool that takes a seed accepts
FEWEST_BLOCKS = 3  # two values hardly have a spread
DEFAULT_MIN_BLOCKS = 3  # large effects show at once; how sure they are, the boundary sees to
DEFAULT_MIN_BLOCKS_ALONE = 4  # three blocks of two modes fall on one side in 1 of 32 cases; no other cell shows it
DEFAULT_MIN_BLOCKS_PRECISION = 8  # a spread from fewer is too uncertain to stop by
_STOPS_WITH = {
    "min_blocks": ("sequential", "anytime", "precision"),
    "spending": ("sequential",),
    "futility": ("sequential", "anytime"),
    "equivalence": ("sequential", "anytime"),
    "precision": ("precision",),
    "time_budget": ("sequential", "anytime", "precision"),
}
MAXIMUM_DIAGNOSTIC_BLOCKS = 100  # they explain and are never averaged into a claim: more only cost time
MOST_PER_BOOT = 100  # more add next to nothing: what differs between boots does not average out within one
FASTEST_TELEMETRY_S = 0.01  # below it the sampler's own CPU shows in the measurement

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=80)]


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Names = Annotated[list[str], BeforeValidator(_as_list)]


class FileModel(BaseModel):
    """Frozen, and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Overlay(FileModel):
    """A partial trial, merged over the base trial: mappings key by key, scalars and lists replace, `null` removes."""

    place: dict[str, Any] | None = Field(
        None, description="Changes to the place; a different kind replaces the whole mapping."
    )
    system: dict[str, Any] | None = Field(
        None, description="Changes to the system; a different kind replaces the whole mapping."
    )
    workload: dict[str, Any] | None = Field(
        None, description="Changes to the workload; a different kind replaces the whole mapping."
    )
    settings: dict[str, Any] | None = Field(None, description="Changes to the settings.")


class Trials(FileModel):
    """How many trials, in which order, and how they are judged."""

    blocks: int = Field(
        10, ge=1, le=MAXIMUM_BLOCKS, description="Blocks per cell, that is trials of each arm in each cell."
    )
    order: Literal["randomised_blocks", "abba", "sequential", "duet"] = Field(
        "randomised_blocks",
        description="Order of trials. `randomised_blocks`: rounds of one block per cell, cells and arms shuffled. "
        "`abba`: arms in alternating order. `sequential`: one arm after the other, which confounds the arm with "
        "time. `duet`: the two arms of a block at the same time, each on its half of the processors.",
    )
    seed: int = Field(
        1,
        ge=0,
        le=MAXIMUM_SEED,
        description="Seed of the order and of the load: the same seed gives the same plan on every machine. The "
        "arms of a block share the load's seed, so that its random draws cancel in their ratio; blocks and cells "
        "differ.",
    )
    margin: Share = Field(
        0.02, gt=0, lt=1, description="Largest difference that does not matter, as a share of the baseline."
    )
    stop: Literal["fixed", "sequential", "anytime", "precision"] = Field(
        "fixed",
        description="Rule that ends a cell. `fixed`: after all `blocks`. The others decide after each round, cell "
        "by cell, and `blocks` is the maximum. `sequential`: once a difference or equivalence is shown, or neither "
        "can be expected any more; the family's error is spent over the looks. `anytime`: the same, with intervals "
        "that stay valid however often they are looked at. `precision`: once the interval is narrow enough.",
    )
    min_blocks: int | None = Field(
        None,
        ge=FEWEST_BLOCKS,
        le=MAXIMUM_BLOCKS,
        description=f"Blocks before the first decision (default: {DEFAULT_MIN_BLOCKS}, "
        f"{DEFAULT_MIN_BLOCKS_ALONE} for one cell of two arms, "
        f"{DEFAULT_MIN_BLOCKS_PRECISION} for `precision`; `blocks` if that is less).",
    )
    spending: Literal["pocock", "obrien_fleming"] | None = Field(
        None,
        description="Spending of the error by `sequential`: `pocock` (default) early, which needs the fewest "
        "blocks; `obrien_fleming` late, which loses almost no power against `fixed`.",
    )
    futility: bool | None = Field(
        None,
        description="Whether to give up a cell once a claim has become improbable (default: `true` with "
        "`sequential`, `false` with `anytime`).",
    )
    equivalence: bool | None = Field(
        None,
        description="Whether `sequential` and `anytime` stop a cell that is shown to be equivalent within `margin` "
        "(default: `true`).",
    )
    precision: Share | None = Field(
        None, gt=0, lt=1, description="Half-width of the interval at which `stop: precision` ends a cell."
    )
    time_budget: Seconds | None = Field(
        None,
        gt=0,
        description="Limit on the time of all trials, with any `stop` but `fixed`: no round begins that would "
        "exceed it.",
    )
    confidence: Share = Field(
        0.95, ge=0.5, lt=1, description="Confidence level of all intervals, before adjustment for multiplicity."
    )
    voided_limit: int | None = Field(
        None,
        ge=0,
        le=MAXIMUM_BLOCKS,
        description="Number of blocks that a cell may lose to invalid trials and have replaced (default: `blocks`). "
        "With `design`, rows that may be run again (default: a quarter of the trials).",
    )
    design: Literal["plackett_burman", "fractional", "definitive"] | None = Field(
        None,
        description="Design that screens many factors in few trials, each row of it one trial; there is no `arm` then. "
        "`plackett_burman`: two levels, in the fewest trials. `fractional`: two levels, the smallest fraction of "
        "`resolution`. `definitive`: three levels (low, middle, high), in about two trials per factor. `blocks` is the "
        "number of replicates of the design (default: 1).",
    )
    resolution: Literal[3, 4, 5] | None = Field(
        None,
        description="Resolution of `design: fractional` (default: 4, where no main effect is mixed with an interaction "
        "of two factors).",
    )
    fold: bool | None = Field(
        None,
        description="Whether `design: plackett_burman` is run with its mirror image, twice the trials, so that no main "
        "effect is mixed with an interaction of two factors (default: `false`).",
    )
    hosts: Literal["alike", "factor"] = Field(
        "alike",
        description="Hosts of a farm. `alike`: one whose kernel, processor or binaries differ from the first host's "
        "gets no block. `factor`: they may differ; a block compares arms on one host either way.",
    )

    reboot: Literal["every_trial", "between_blocks"] = Field(
        "every_trial",
        description="When a place that boots kernels does so. `between_blocks`: each arm boots once in a round, for "
        "all cells of it (a split-plot design); the boot is then the unit of inference.",
    )
    per_boot: int = Field(
        1,
        ge=1,
        le=MOST_PER_BOOT,
        description="Trials of each cell in one boot with `reboot: between_blocks`; their mean is one value.",
    )

    @field_validator("reboot")
    @classmethod
    def _shuffles_boots(cls, reboot: str, info: ValidationInfo) -> str:
        order = info.data.get("order", "randomised_blocks")
        if reboot == "between_blocks" and order != "randomised_blocks":
            raise ValueError(f"boots of arms are shuffled in each round, and `order: {order}` does not; leave it out")
        return reboot

    @field_validator("per_boot")
    @classmethod
    def _has_boots(cls, per_boot: int, info: ValidationInfo) -> int:
        if per_boot > 1 and info.data.get("reboot") == "every_trial":
            raise ValueError("has no effect without `reboot: between_blocks`; write that, or leave `per_boot` out")
        return per_boot

    @field_validator("stop")
    @classmethod
    def _needs_blocks(cls, stop: str, info: ValidationInfo) -> str:
        if stop != "fixed" and info.data.get("order") == "sequential":
            raise ValueError(
                f"`stop: {stop}` decides after rounds, and `order: sequential` has none; use randomised_blocks or abba"
            )
        return stop

    @field_validator("min_blocks", "spending", "futility", "equivalence", "precision", "time_budget")
    @classmethod
    def _fits_stop(cls, value: object, info: ValidationInfo) -> object:
        """Each of these says something about some ways to stop; beside another it would be silently ignored."""
        stop, name = info.data.get("stop"), info.field_name or ""
        if value is None or stop is None or stop in _STOPS_WITH[name]:
            return value
        allowed = " or ".join(f"`stop: {each}`" for each in _STOPS_WITH[name])
        raise ValueError(f"has no effect with `stop: {stop}`; write {allowed}, or leave `{name}` out")

    @field_validator("min_blocks")
    @classmethod
    def _within_blocks(cls, value: int | None, info: ValidationInfo) -> int | None:
        blocks = info.data.get("blocks")
        if value is not None and blocks is not None and value > blocks:
            raise ValueError(f"expected at most `blocks: {blocks}`, found {value}; lower it or raise `blocks`")
        return value

    @field_validator("resolution", "fold")
    @classmethod
    def _fits_design(cls, value: object, info: ValidationInfo) -> object:
        wanted = {"resolution": "fractional", "fold": "plackett_burman"}[info.field_name or ""]
        if value is not None and info.data.get("design") != wanted:
            raise ValueError(f"has no effect without `design: {wanted}`; write it, or leave `{info.field_name}` out")
        return value

    @model_validator(mode="before")
    @classmethod
    def _one_replicate(cls, data: object) -> object:
        """Of a design that is a matrix, one is the usual number."""
        if isinstance(data, dict) and data.get("design") and "blocks" not in data:
            return {**data, "blocks": 1}
        return data

    @model_validator(mode="after")
    def _has_target(self) -> Self:
        if self.stop == "precision" and self.precision is None:
            raise wrong_below("stop", message="`stop: precision` needs a target; add one, such as `precision: 2%`")
        return self

    def first_look(self, *, comparisons: int) -> int | None:
        """Blocks before the first decision where a metric has so many comparisons, None if there is none."""
        if self.stop == "fixed":
            return None
        return self.min_blocks or first_look_of(self.stop, comparisons=comparisons, blocks=self.blocks)


def first_look_of(stop: str, *, comparisons: int, blocks: int) -> int:
    """The default: later where a metric has one comparison only, whose spread no other cell or arm confirms."""
    usual = DEFAULT_MIN_BLOCKS if comparisons > 1 else DEFAULT_MIN_BLOCKS_ALONE
    return min(DEFAULT_MIN_BLOCKS_PRECISION if stop == "precision" else usual, blocks)


Covariate = Literal["calibration_loop_ns", "time_since_boot_s", "memory_fragmentation", "processor_frequency_hz"]


def _own_metric(value: object) -> object:
    """Of the keys of `metrics`, one that is not a role defines a metric; what cannot be a definition is misspelt."""
    if isinstance(value, CounterMetric) or (isinstance(value, dict) and value.keys() & CounterMetric.model_fields):
        return value
    raise PydanticCustomError("extra_forbidden", "neither a role nor the definition of a metric")


OwnMetric = Annotated[CounterMetric, BeforeValidator(_own_metric)]


class Metrics(FileModel):
    """Which quantities are judged, by role; every other key names a metric of the study's own, made from counters."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[Name, OwnMetric] = Field(init=False)

    primary: Annotated[Names, Field(min_length=1)] = Field(
        description="Metrics that decide: the verdicts of all cells and arms form one family and are adjusted for "
        "it. One name or a list."
    )
    secondary: Names = Field(
        [], description="Metrics screened beside the claims: adjusted for one another, exploratory."
    )
    guardrails: Names = Field(
        [],
        description="Metrics that must not get worse by more than their margin, whatever the primary metric gains; "
        "each is tested for it.",
    )
    guardrail_margins: dict[str, Annotated[Share, Field(gt=0, lt=1)]] = Field(
        {}, description="Largest change for the worse that does not matter, by guardrail (default: `trials.margin`)."
    )
    covariates: Annotated[list[Covariate], BeforeValidator(_as_list)] = Field(
        [],
        description="Covariates measured at the system's place before each trial, before any of its settings; one or a "
        "list. Estimates of primary metrics that are adjusted for them are reported beside the plain ones. "
        "`calibration_loop_ns`: time that a fixed amount of arithmetic and memory access takes. `time_since_boot_s`. "
        "`memory_fragmentation`: share of free memory in pieces smaller than 2 MiB. `processor_frequency_hz`: mean "
        "over processors, where the kernel tells it.",
    )
    adjust: bool = Field(
        default=False,
        description="Whether the adjusted estimates give the verdicts on primary metrics, instead of the plain ones.",
    )

    @property
    def own(self) -> dict[str, CounterMetric]:
        """The study's own metrics, by name."""
        return dict(self.__pydantic_extra__ or {})

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        raise_all(self._wrong())
        return self

    def _wrong(self) -> Iterator[PydanticCustomError]:
        met: set[str] = set()
        for role in ("primary", "secondary", "guardrails"):
            for index, name in enumerate(getattr(self, role)):
                if name in met:
                    message = f"expected each metric once, in one role; found {name} more than once"
                    yield wrong_below(role, index, message=message)
                met.add(name)
        for name in self.guardrail_margins:
            if name not in self.guardrails:
                message = f"expected margins of guardrails only; not a guardrail: {name}"
                yield wrong_below("guardrail_margins", name, message=message)
        if len(set(self.covariates)) < len(self.covariates):
            yield wrong_below("covariates", message=f"expected each covariate once, found {', '.join(self.covariates)}")
        if self.adjust and not self.covariates:
            message = "`adjust` has no effect without `covariates`; name some, or leave it out"
            yield wrong_below("adjust", message=message)


class Telemetry(FileModel):
    """What is sampled beside the load."""

    interval: WholeMilliseconds = Field(
        1.0,
        ge=FASTEST_TELEMETRY_S,
        le=60,
        description="Time between two samples, from 10ms to 1min in whole milliseconds. A server's own counters "
        "are read every 100ms at most.",
    )
    lock_waits: bool = Field(
        default=False,
        description="Whether each sample asks the server which transaction waits for whose lock; this costs the "
        "server more.",
    )
    prometheus: Exporters = one_or_more(
        "Endpoints whose counters are read beside the load, one or a list, in the text format of Prometheus and "
        "OpenMetrics."
    )
    command: CounterCommands = one_or_more(
        "Commands whose output gives one counter or gauge each, run beside the load at every reading; one or a list."
    )
    probes: list[Probe] = Field(
        [],
        max_length=MOST_PROBES,
        description="Expensive probes of the system, run in extra diagnostic trials that estimates leave out.",
    )
    diagnostic_blocks: int | None = Field(
        None,
        ge=1,
        le=MAXIMUM_DIAGNOSTIC_BLOCKS,
        description="Diagnostic trials of each arm in each cell with `probes`, run after all others (default: 1).",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        raise_all(self._wrong())
        return self

    def _wrong(self) -> Iterator[PydanticCustomError]:
        if self.diagnostic_blocks is not None and not self.probes:
            message = "`diagnostic_blocks` has no effect without `probes`; add probes, or leave it out"
            yield wrong_below("diagnostic_blocks", message=message)
        names = [command.name for command in self.command]
        for index, name in enumerate(names):
            if name in names[:index]:
                message = f"another command is called {name}; expressions would add them up"
                yield wrong_below("command", index, "name", message=message)

    @property
    def blocks_of_diagnostics(self) -> int:
        """Diagnostic trials of each arm in each cell."""
        return (self.diagnostic_blocks or 1) if self.probes else 0


class StudyFile(FileModel):
    """A study: one question, with its design and procedure."""

    study: Name = Field(description="Name of the study; runs are named after it.")
    question: str = Field("", description="Question of the study, in one sentence; every report begins with it.")
    include: str | list[str] = Field(
        [], description="Files merged below this one, in this order; paths are relative to the including file."
    )
    place: dict[str, Any] = Field({"local": {}}, description="Place where trials run: exactly one kind.")
    system: dict[str, Any] = Field({"command": {}}, description="System under test: exactly one kind.")
    workload: dict[str, Any] = Field(
        {},
        description="Load on the system: exactly one kind; beside it `place`, if the load generator runs at a "
        "different place from the system.",
    )
    settings: dict[str, Any] = Field({}, description="Settings outside system and workload, by kind.")
    factors: dict[Name, Annotated[dict[Name, Overlay], Field(min_length=1)]] = Field(
        min_length=1,
        description="Factors, each with its levels; the first level is the baseline. A numeric factor has `values`, a "
        "list of numbers, and `of`, the path in the trial that each value sets (or a list of paths).",
    )
    arm: str | None = Field(None, description="The factor under test; required unless `trials.design` screens all.")
    also_compare: Names = Field([], description="Further factors to contrast. One name or a list.")
    expect: dict[str, dict[str, str]] = Field(
        {},
        description="Conditions that a cell must meet, by level (or `factor.level`): metric → range, one of `8..12 "
        "%`, `'>= 3'`, `'<= 0.1'`. A cell whose baseline arm is outside the range gets no verdict; a treatment arm "
        "outside it raises a doubt.",
    )
    builds: Builds | None = Field(
        None, description="Programs of the arms, linked in several random orders, so that no claim is about one layout."
    )
    curve: Curve | None = Field(None, description="Curve to fit to each arm's primary metrics over a numeric factor.")
    trials: Trials = Field(Trials(), description="Number and order of trials, and how they are judged.")
    metrics: Metrics = Field(description="Metrics by role.")
    telemetry: Telemetry = Field(Telemetry(), description="Sampling during the load.")
    tune: Tuning | None = Field(
        None, description="Options to search (`fairtrial tune`), in place of `factors` and `arm`."
    )
    sizes: dict[Name, dict[str, Any]] = Field(
        {}, description="Named partial studies, merged over this one by `--size NAME`."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        raise_all([*self._wrong_builds(), *self._wrong_covariates(), *self._wrong_own_metrics()])
        return self

    def _wrong_builds(self) -> Iterator[PydanticCustomError]:
        if self.builds is None:
            return
        levels = list(self.factors.get(self.arm or "", {}))
        if set(self.builds.objects) != set(levels):
            message = f"expected one entry for each level of the arm, {listed(levels)}"
            yield wrong_below("builds", "objects", message=message)
        if self.trials.order in ("sequential", "duet"):
            message = f"with `builds`, blocks share a layout, one trial at a time; `order: {self.trials.order}` cannot"
            yield wrong_below("trials", "order", message=message)

    def _wrong_covariates(self) -> Iterator[PydanticCustomError]:
        if self.metrics.covariates and self.trials.order == "sequential":
            message = "covariates compare the trials of a block, and `order: sequential` has no blocks"
            yield wrong_below("metrics", "covariates", message=message)
        if self.metrics.adjust and self.trials.stop != "fixed":
            suggestion = f"leave `adjust` out, or write `stop: fixed` instead of `stop: {self.trials.stop}`"
            message = f"a rule that stops early looks at plain estimates; {suggestion}"
            yield wrong_below("metrics", "adjust", message=message)

    def _wrong_own_metrics(self) -> Iterator[PydanticCustomError]:
        commands = [command.name for command in self.telemetry.command]
        for name, metric in self.metrics.own.items():
            wanted = metric.expression.metric
            if not getattr(self.telemetry, metric.source):
                suggestion = f"add `telemetry: {{{metric.source}: …}}`"
                message = f"made from `{metric.source}`, and `telemetry` has none; {suggestion}"
                yield wrong_below("metrics", name, message=message)
            elif metric.source == "command" and wanted not in commands:
                message = f"no command is called {wanted}; expected one of {listed(commands)}"
                yield wrong_below("metrics", name, "command", message=message)
            elif metric.source == "prometheus" and not any(each.keeps(wanted) for each in self.telemetry.prometheus):
                message = f"no `match` of telemetry.prometheus keeps {wanted}; add it there"
                yield wrong_below("metrics", name, "prometheus", message=message)
            if name.endswith(ERROR_SUFFIX):
                message = f"names that end in {ERROR_SUFFIX} are those of error bars"
                yield wrong_below("metrics", name, message=message)
