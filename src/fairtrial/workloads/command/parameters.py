"""What a study says of a command: its program, how it is run, and where its numbers are."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, Field, model_validator

from fairtrial.study.catalogue import Better, MetricKind
from fairtrial.study.tree.quantities import CommandLine, Seconds

MOST_RUNS = 10_000  # in one trial; more is a load of its own


def _compiles(pattern: str) -> str:
    try:
        groups = re.compile(pattern, re.MULTILINE).groups
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    if groups != 1:
        raise ValueError(f"expected exactly one group ( ), which holds the number, found {groups}")
    return pattern


class CommandMetric(BaseModel, frozen=True, extra="forbid"):
    """One number that the program gives."""

    regex: Annotated[str, AfterValidator(_compiles)] | None = Field(
        None,
        description="Regular expression whose only group is the number; the last match on the program's standard "
        "output counts.",
    )
    json_path: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_.%\[\]-]+$",
        description="Path into the last JSON document on the program's standard output: `jobs[0].read.iops`; "
        "`[0].score` if it is a list.",
    )
    file_key: str | None = Field(
        None, description="Key (or path) in the JSON file `$FAIRTRIAL_METRICS_FILE` that the program writes."
    )
    unit: str = Field("", description="Unit, printed beside values.")
    better: Better = Field("lower", description="Direction in which the metric gets better.")
    kind: MetricKind = Field(
        "wall_clock", description="Kind of quantity: counts remain evidence under emulation, wall-clock times do not."
    )
    label: str | None = Field(None, description="Name in reports (default: the metric's name).")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.regex, self.json_path, self.file_key)) != 1:
            raise ValueError("expected exactly one of `regex`, `json_path` and `file_key`, which locates the number")
        return self


class CommandParameters(BaseModel, frozen=True, extra="forbid"):
    """A program that is run in each trial; the trial is its whole life, or several of them."""

    run: CommandLine = Field(description="Command line, split as a shell would but run without one.")
    directory: str | None = Field(None, description="Working directory (default: a fresh one per trial).")
    timeout: Seconds = Field(3600.0, gt=0, description="Time limit of the program; a trial that exceeds it is invalid.")
    exit_codes: list[int] = Field(default=[0], description="Exit codes that mean success.")
    label: str | None = Field(
        None, description="Name of the program. Two labels make two arms of one program: an A/A comparison."
    )
    prepare: CommandLine | None = Field(
        None,
        description="Command line run before every run of the program, warm-up runs included; not measured. Telemetry "
        "is of the whole window, so with `runs` above 1 no metric of telemetry may have a role.",
    )
    warm_ups: int = Field(0, ge=0, le=MOST_RUNS, description="Number of runs in each trial before the measured ones.")
    runs: int = Field(
        1,
        ge=1,
        le=MOST_RUNS,
        description="Number of measured runs in each trial; the trial's metrics are means over them, of the "
        "largest resident set the largest. The window lasts from the first to the last, with what "
        "`prepare` does between them.",
    )
    metrics: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], CommandMetric] = Field(
        default_factory=dict, description="Metrics by name; a name ends with its unit."
    )

    @model_validator(mode="after")
    def _one_output(self) -> Self:
        if self.metrics and self.runs > 1:
            raise ValueError("`metrics` are read from the output of a single run, so `runs` must be 1")
        return self
