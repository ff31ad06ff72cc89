"""`command`: any program as the workload, with metrics by regular expression, JSON path or a metrics file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from fairtrial.errors import PlaceError
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import Better, Kind, MetricDefinition, MetricKind
from fairtrial.study.tree.quantities import CommandLine, Seconds
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.command import runs as command_runs
from fairtrial.workloads.command.runs import OUTPUT
from fairtrial.workloads.workload import Drive, Driven, Loaded, OnProgress

USAGE = "usage.json"  # the kernel's accounting of it
METRICS_FILE = "metrics.json"
MOST_RUNS = 10_000  # in one trial; more is a load of its own


def _compiles(pattern: str) -> str:
    try:
        groups = re.compile(pattern, re.MULTILINE).groups
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    if groups != 1:
        raise ValueError(f"exactly one group ( ) must hold the number; this has {groups}")
    return pattern


class CommandMetric(BaseModel):
    """One number that the program gives."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    regex: Annotated[str, AfterValidator(_compiles)] | None = Field(
        None, description="Its one group is the number, in the last match in the program's output."
    )
    json_path: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_.%\[\]-]+$",
        description="Path into the last JSON document on the program's standard output: `jobs[0].read.iops`.",
    )
    file_key: str | None = Field(
        None, description="Key (or path) in the JSON file that the program writes to $FAIRTRIAL_METRICS_FILE."
    )
    unit: str = Field("", description="Printed beside values.")
    better: Better = Field("lower", description="Which direction is good.")
    kind: MetricKind = Field("wall_clock", description="Counts stay evidence under emulation, wall-clock does not.")
    label: str | None = Field(None, description="As reports print it; the name if left out.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.regex, self.json_path, self.file_key)) != 1:
            raise ValueError("exactly one of `regex`, `json_path` and `file_key` says where the number is")
        return self


class CommandParameters(BaseModel):
    """A program that is run in each trial; the trial is its whole life, or several of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: CommandLine = Field(description="Command line, split like a shell does but run without one.")
    directory: str | None = Field(None, description="Working directory; a fresh one per trial if left out.")
    timeout: Seconds = Field(3600.0, gt=0, description="A program that takes longer makes its trial invalid.")
    exit_codes: list[int] = Field(default=[0], description="Exit codes of success.")
    label: str | None = Field(
        None, description="What it is called. Two labels make two arms of one program: an A/A comparison."
    )
    prepare: CommandLine | None = Field(
        None, description="Run before every run of the program, those that warm up included; not measured."
    )
    warm_ups: int = Field(0, ge=0, le=MOST_RUNS, description="Runs in each trial before the measured one.")
    runs: int = Field(
        1, ge=1, le=MOST_RUNS, description="Measured runs in each trial; its figures are means over them."
    )
    metrics: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], CommandMetric] = Field(
        default_factory=dict, description="Metrics by name, unit last in the name."
    )

    @model_validator(mode="after")
    def _one_output(self) -> Self:
        if self.metrics and self.runs > 1:
            raise ValueError("`metrics` are read from the output of one run, so `runs` must be 1")
        return self


_USAGE: Mapping[str, tuple[str, str, MetricKind, Literal["lower"]]] = {
    "elapsed_s": ("wall time", "s", "wall_clock", "lower"),
    "user_s": ("user CPU", "s", "wall_clock", "lower"),
    "system_s": ("system CPU", "s", "wall_clock", "lower"),
    "max_resident_bytes": ("largest resident set", "B", "count", "lower"),
    "minor_faults": ("minor page faults", "faults", "count", "lower"),
    "major_faults": ("major page faults", "faults", "count", "lower"),
    "voluntary_switches": ("voluntary context switches", "switches", "count", "lower"),
    "involuntary_switches": ("involuntary context switches", "switches", "count", "lower"),
}


def _definitions(parameters: CommandParameters) -> Mapping[str, MetricDefinition]:
    found = {
        name: MetricDefinition(
            name=name, label=label, unit=unit, kind=kind, better=better, source="the kernel's accounting (wait4)"
        )
        for name, (label, unit, kind, better) in _USAGE.items()
    }
    for name, metric in parameters.metrics.items():
        source = metric.regex or metric.json_path or metric.file_key or ""
        found[name] = MetricDefinition(
            name=name,
            label=metric.label or name,
            unit=metric.unit,
            better=metric.better,
            kind=metric.kind,
            source=source,
        )
    return found


KIND = Kind(
    name="command",
    summary="Any program, run once per trial, or several times.",
    parameters=TypeAdapter(CommandParameters),
    metrics=_definitions,
    example={"run": "true"},
)


def data(_parameters: Mapping[str, Any]) -> None:
    """A command brings its own data."""


def load(
    _place: OpenPlace, _parameters: Mapping[str, Any], _endpoint: Mapping[str, Any], *, on_progress: OnProgress
) -> Loaded:
    """Never called: `data` is None."""
    del on_progress
    raise AssertionError("a command has no data to load")


def drive(place: OpenPlace, parameters: Mapping[str, Any], drive: Drive) -> Driven:
    """Runs the program, as often as it is asked. It finds its seed and where to put metrics in its environment."""
    exchange = {
        "FAIRTRIAL_SEED": str(drive.seed),
        "FAIRTRIAL_TRIAL_DIRECTORY": str(drive.directory),
        command_runs.METRICS_VARIABLE: str(drive.directory / METRICS_FILE),
    }
    drive = replace(drive, environment={**drive.environment, **exchange})
    runs = command_runs.measured(place, parameters, drive)
    usage = command_runs.mean_figures(runs)
    place.agent.put(str(drive.directory / USAGE), json.dumps(usage).encode(), mode=0o644)
    window = Window(start_ns=runs[0].start_ns, end_ns=runs[-1].end_ns)
    return Driven(window=window, invalid_reason=runs[-1].failure)


def checks_after(_parameters: Mapping[str, Any]) -> str:
    """A command checks itself: by its exit code."""
    return "never"


def check(_place: OpenPlace, _parameters: Mapping[str, Any], _endpoint: Mapping[str, Any]) -> list[Check]:
    """Nothing to check."""
    return []


def scalars(directory: Path, parameters: Mapping[str, Any], _window: Window) -> dict[str, float]:
    """The kernel's accounting and every metric of the study.

    Raises:
        PlaceError: a metric is not in the output, or is no number.
    """
    usage = json.loads((directory / USAGE).read_bytes())
    found = {name: float(usage[name]) for name in _USAGE}
    text = (directory / OUTPUT).read_text(encoding="utf-8", errors="replace")
    for name, metric in parameters["metrics"].items():
        try:
            found[name] = _number(metric, text, directory)
        except (KeyError, IndexError, TypeError, ValueError, FileNotFoundError) as error:
            raise PlaceError(
                f"metric {name} cannot be read from the program's output: {error!r}; its last lines:\n{text[-500:]}",
                hint=f"mend workload.command.metrics.{name}; the whole output is in {directory / OUTPUT}",
            ) from error
    return found


def contradictions(_directory: Path, _parameters: Mapping[str, Any]) -> list[str]:
    """Nothing: a command's files tell nothing twice."""
    return []


def _number(metric: Mapping[str, Any], text: str, directory: Path) -> float:
    if metric["regex"] is not None:
        return float(re.findall(metric["regex"], text, re.MULTILINE)[-1])
    if metric["json_path"] is not None:
        return float(_follow(_last_json(text), metric["json_path"]))
    return float(_follow(json.loads((directory / METRICS_FILE).read_bytes()), metric["file_key"]))


def _last_json(text: str) -> Any:
    """The last JSON object in the text, whatever stands around it."""
    decoder = json.JSONDecoder()
    found = None
    position = text.find("{")
    while position != -1:
        try:
            found, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError:
            end = position + 1
        position = text.find("{", end)
    if found is None:
        raise ValueError("no JSON object in the output")
    return found


def _follow(value: Any, path: str) -> Any:
    for part in re.findall(r"[^.\[\]]+", path):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value
