"""`command`: any program as the workload, with metrics by regular expression, JSON path or a metrics file."""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from fairtrial.errors import PlaceError
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import Better, Kind, MetricDefinition, MetricKind
from fairtrial.study.quantities import CommandLine, Seconds
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads.workload import Drive, Driven, Loaded, OnProgress

OUTPUT = "log/load.log"  # the program's output, in the trial's directory
USAGE = "usage.json"  # the kernel's accounting of it
METRICS_FILE = "metrics.json"
STOP_S = 10.0


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
    """A program that is run once per trial; the trial is its whole life."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: CommandLine = Field(description="Command line, split like a shell does but run without one.")
    directory: str | None = Field(None, description="Working directory; a fresh one per trial if left out.")
    timeout: Seconds = Field(3600.0, gt=0, description="A program that takes longer makes its trial invalid.")
    exit_codes: list[int] = Field(default=[0], description="Exit codes of success.")
    metrics: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], CommandMetric] = Field(
        default_factory=dict, description="Metrics by name, unit last in the name."
    )


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
    summary="Any program, run once per trial.",
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
    """Runs the program. It finds its seed and where to put metrics in its environment."""
    log = drive.directory / OUTPUT
    exchange = {
        "FAIRTRIAL_SEED": str(drive.seed),
        "FAIRTRIAL_TRIAL_DIRECTORY": str(drive.directory),
        "FAIRTRIAL_METRICS_FILE": str(drive.directory / METRICS_FILE),
    }
    process = place.agent.spawn(
        name="load",
        argv=shlex.split(parameters["run"]),
        environment={**drive.environment, **exchange},
        directory=parameters["directory"] or str(drive.work_directory),
        processors=list(drive.processors) if drive.processors is not None else None,
        stdout={"kind": "file", "path": str(log)},
        stderr={"kind": "file", "path": str(drive.directory / "log" / "load-errors.log")},
    )
    reason = ""
    try:
        exited = process.wait(parameters["timeout"])
    except TimeoutError:
        process.signal(signal.SIGTERM, group=True)  # what it started must not load the next trial
        exited = process.stop(STOP_S)
        reason = f"`{parameters['run']}` ran longer than {parameters['timeout']:g} s and was stopped"
    window = Window(start_ns=process.started_ns, end_ns=exited.time_ns)
    usage = exited.usage.model_dump() | {"elapsed_s": (window.end_ns - window.start_ns) / 1e9}
    place.agent.put(str(drive.directory / USAGE), json.dumps(usage).encode(), mode=0o644)
    if not reason and exited.code not in parameters["exit_codes"]:
        ended = f"signal {exited.signal}" if exited.signal is not None else f"exit code {exited.code}"
        reason = f"`{parameters['run']}` ended with {ended}"
    return Driven(window=window, invalid_reason=reason)


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
