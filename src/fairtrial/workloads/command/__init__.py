"""`command`: any program as the workload, with metrics by regular expression, JSON path or a metrics file."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Literal

from pydantic_core import from_json

from fairtrial.errors import PlaceError
from fairtrial.programs import Act, asked_for
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition, MetricKind
from fairtrial.wire.open_place import OpenPlace
from fairtrial.words import counted
from fairtrial.workloads.command import numbers
from fairtrial.workloads.command import runs as command_runs
from fairtrial.workloads.command.parameters import CommandParameters
from fairtrial.workloads.command.runs import OUTPUT
from fairtrial.workloads.workload import Drive, DriveOutcome, Workload

RUN = "workload.command.run"
USAGE = "usage.json"  # the kernel's accounting of it
PROGRAM = "program_sha256"
HASH = 'program=$(command -v -- "$0") && [ -f "$program" ] && sha256sum <"$program"'
METRICS_FILE = "metrics.json"
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


class Command(Workload[CommandParameters]):
    """Any program. It brings its own data, and checks itself: by its exit code."""

    name = "command"
    summary = "Any program, run once or several times per trial."
    model = CommandParameters
    example = MappingProxyType({"run": "true"})
    builds = MappingProxyType({PROGRAM: "program"})
    announces = False

    def acts(self) -> Iterator[Act]:
        """The program, and what prepares it; whatever they write, read and reach is theirs."""
        parameters = self.parameters
        where = "the trial's directory" if parameters.directory is None else parameters.directory
        runs = parameters.warm_ups + parameters.runs
        if parameters.prepare is not None:
            yield Act("runs", parameters.prepare, f"in every trial, in {where}, before each run of the program")
        yield Act("runs", parameters.run, f"in every trial, in {where}, {counted(runs, 'time')}")

    def window_holds(self) -> str:
        """What prepares its runs, if there are several: the window lasts from the first to the last."""
        parameters = self.parameters
        return "what `prepare` does between runs" if parameters.prepare is not None and parameters.runs > 1 else ""

    def metrics(self) -> Mapping[str, MetricDefinition]:
        """The kernel's accounting and every metric of the study."""
        definitions = {
            name: MetricDefinition(
                name=name, label=label, unit=unit, kind=kind, better=better, source="the kernel's accounting (wait4)"
            )
            for name, (label, unit, kind, better) in _USAGE.items()
        }
        for name, metric in self.parameters.metrics.items():
            source = metric.regex or metric.json_path or metric.file_key or ""
            definitions[name] = MetricDefinition(
                name=name,
                label=metric.label or name,
                unit=metric.unit,
                better=metric.better,
                kind=metric.kind,
                source=source,
            )
        return definitions

    def require(self, place: OpenPlace) -> None:
        """Looks for the program that the command line begins with."""
        program = self._program()
        if place.execute(["sh", "-c", 'command -v -- "$0"', program]).code != 0:
            raise PlaceError(f"no {program} at this place", hint="install it there, or give its full path", field=RUN)

    def _program(self) -> str:
        """The first word of the command line, by its path if that has one."""
        program = shlex.split(self.parameters.run)[0]
        directory = self.parameters.directory
        return str(PurePosixPath(directory, program)) if "/" in program and directory else program

    def _hashed(self, place: OpenPlace) -> dict[str, str]:
        """That program's hash as an option; none of a shell's own command or of what a trial may make for itself."""
        program = self._program()
        if self.parameters.prepare is not None or ("/" in program and not program.startswith("/")):
            return {}
        hashed = place.execute(["sh", "-c", HASH, program]).stdout.split()
        return {PROGRAM: hashed[0]} if hashed else {}

    def drive(self, place: OpenPlace, drive: Drive) -> DriveOutcome:
        """Runs the program, as often as it is asked. It finds its seed and where to put metrics in its environment."""
        exchange = {
            "FAIRTRIAL_SEED": str(drive.seed),
            "FAIRTRIAL_TRIAL_DIRECTORY": str(drive.directory),
            command_runs.METRICS_VARIABLE: str(drive.directory / METRICS_FILE),
        }
        drive = replace(drive, environment={**drive.environment, **exchange})
        program = self._hashed(place)
        with asked_for(RUN):
            runs = command_runs.measured(place, self.parameters, drive)
        place.agent.put(str(drive.directory / USAGE), command_runs.accounting(runs), mode=0o644)
        window = Window(start_ns=runs[0].start_ns, end_ns=runs[-1].end_ns)
        return DriveOutcome(window=window, effective=program, invalid_reason=runs[-1].failure)

    def scalars(self, directory: Path, _window: Window) -> dict[str, float]:
        """The kernel's accounting and every metric of the study."""
        usage = from_json((directory / USAGE).read_bytes())
        values = {name: float(usage[name]) for name in _USAGE}
        output = directory / OUTPUT  # not there if a warm-up failed
        text = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
        for name, metric in self.parameters.metrics.items():
            try:
                values[name] = numbers.read(metric, text, file=directory / METRICS_FILE)
            except ValueError as error:
                raise PlaceError(
                    f"cannot read metric {name} from the program's output: {error}; its last output:\n{text[-500:]}",
                    hint=f"fix workload.command.metrics.{name}; the full output is in {directory / OUTPUT}",
                ) from error
        return values
