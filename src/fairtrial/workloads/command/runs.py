"""A program's runs within one trial: those that warm up, and those that are measured; each prepared, timed, accounted.

The trial stays the unit. Short programs are run several times in one because opening a trial takes longer than they do;
its figures are means over the runs, so what varies between trials keeps its say.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from fairtrial.protocol import generated as wire
from fairtrial.protocol.endpoints import Endpoint, ServiceEndpoint
from fairtrial.protocol.generated import FileOutput, PostgresEndpoint
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import how
from fairtrial.workloads.command.parameters import CommandParameters
from fairtrial.workloads.workload import Drive

STOP_S = 10.0
OUTPUT = "log/load.log"  # of measured runs, in the trial's directory
UNMEASURED = "log/load-unmeasured.log"  # of warm-up runs and of what prepares a run
ERRORS = "log/load-errors.log"
LAST_LINES, MOST_CHARACTERS = 5, 1000
# A service file goes before libpq's other variables, an address before its host: both would lead elsewhere.
WITHOUT = ("env", "-u", "PGSERVICE", "-u", "PGSERVICEFILE", "-u", "PGHOSTADDR")
ENDPOINT = {
    "socket": "FAIRTRIAL_SOCKET",
    "socket_directory": "FAIRTRIAL_SOCKET_DIRECTORY",
    "host": "FAIRTRIAL_HOST",
    "port": "FAIRTRIAL_PORT",
    "user": "FAIRTRIAL_USER",
    "password": "FAIRTRIAL_PASSWORD",
    "database": "FAIRTRIAL_DATABASE",
    "path": "FAIRTRIAL_PATH",
}
LIBPQ = {
    "socket_directory": "PGHOST",
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "database": "PGDATABASE",
}
METRICS_VARIABLE = "FAIRTRIAL_METRICS_FILE"  # where a program is told to put its metrics
LARGEST = "max_resident_bytes"  # of several runs the largest counts; of all other figures the mean


@dataclass(frozen=True)
class CommandRun:
    """One run.

    Attributes:
        start_ns, end_ns: on the place's monotonic clock, from its start to its end as the kernel reports it.
        usage: the kernel's accounting.
        failure: why it cannot count; empty if it can.
    """

    start_ns: int
    end_ns: int
    usage: wire.Usage
    failure: str

    @property
    def elapsed_s(self) -> float:
        """Wall time."""
        return (self.end_ns - self.start_ns) / 1e9

    def figures(self) -> dict[str, float]:
        """Its accounting and its wall time, by metric name."""
        return {**self.usage.model_dump(), "elapsed_s": self.elapsed_s}


def reaching(endpoint: Endpoint | None) -> dict[str, str]:
    """Variables by which a program reaches the system: `FAIRTRIAL_*`, and those that libpq reads anyway.

    Of a service, one for everything that its command lines name; `FAIRTRIAL_PORT` is its first port.

    MariaDB's clients have such variables too, but what Debian's configuration file says goes before them.
    """
    if endpoint is None:
        return {}
    if isinstance(endpoint, ServiceEndpoint):
        first = endpoint.handed_in[endpoint.ports[0]] if endpoint.ports else ""
        named = {f"FAIRTRIAL_{name.upper()}": value for name, value in endpoint.handed_in.items()}
        return {**named, **({ENDPOINT["port"]: first} if first else {})}
    own = libpq(endpoint) if isinstance(endpoint, PostgresEndpoint) else {}
    return {ENDPOINT[name]: value for name, value in _fields(endpoint).items() if name in ENDPOINT} | own


def libpq(endpoint: Endpoint) -> dict[str, str]:
    """Libpq's variables (libpq-envars)."""
    fields = _fields(endpoint)
    return {variable: fields[name] for name, variable in LIBPQ.items() if name in fields}


def _fields(endpoint: Endpoint) -> dict[str, str]:
    return {name: str(value) for name, value in endpoint.model_dump().items() if value not in (None, "")}


def measured(place: OpenPlace, parameters: CommandParameters, drive: Drive) -> list[CommandRun]:
    """Warms up, then runs and measures. The last run is the one that failed, if one did."""
    for _ in range(parameters.warm_ups):
        ran = _prepared_run(place, parameters, drive, output=UNMEASURED)
        if ran.failure:
            return [ran]
    runs: list[CommandRun] = []
    for _ in range(parameters.runs):
        runs.append(_prepared_run(place, parameters, drive, output=OUTPUT))
        if runs[-1].failure:
            break
    return runs


def accounting(runs: Sequence[CommandRun]) -> bytes:
    """`usage.json`: figures of all runs by metric name; each run's own below `runs` where there are several."""
    each = [run.figures() for run in runs]
    if len(each) == 1:
        return json.dumps(each[0]).encode()
    together = {name: sum(run[name] for run in each) / len(each) for name in each[0]}
    together[LARGEST] = max(run[LARGEST] for run in each)
    return json.dumps({**together, "runs": each}).encode()


def _prepared_run(place: OpenPlace, parameters: CommandParameters, drive: Drive, *, output: str) -> CommandRun:
    if parameters.prepare is not None:
        preparing = parameters.model_copy(update={"run": parameters.prepare, "exit_codes": [0]})
        before = run_once(place, preparing, drive, output=UNMEASURED)
        if before.failure:
            return before
    return run_once(place, parameters, drive, output=output)


def run_once(place: OpenPlace, parameters: CommandParameters, drive: Drive, *, output: str) -> CommandRun:
    """Runs the program once, its output appended to a file of the trial's directory."""
    environment = {**reaching(drive.endpoint), **drive.environment}
    if output == UNMEASURED:  # or its figures would stand for those of a run that writes none
        environment[METRICS_VARIABLE] = str(drive.work_directory / "metrics-unmeasured.json")
    process = place.agent.spawn(
        name="load",
        argv=[*(WITHOUT if isinstance(drive.endpoint, PostgresEndpoint) else []), *shlex.split(parameters.run)],
        directory=parameters.directory or str(drive.work_directory),
        environment=environment,
        processors=drive.processors,
        groups=drive.groups,
        stdout=_file(drive.directory / output),
        stderr=_file(drive.directory / ERRORS),
        of_trial=True,
    )
    failure = ""
    try:
        exited = process.wait(parameters.timeout)
    except TimeoutError:
        exited = process.stop(STOP_S, group=True)  # what it started must not load the next trial
        failure = f"`{parameters.run}` ran longer than {parameters.timeout:g} s and was stopped"
    if not failure and exited.code not in parameters.exit_codes:
        failure = f"`{parameters.run}` ended with {how(exited)}{_last_words(place, drive.directory / ERRORS)}"
    return CommandRun(start_ns=process.started_ns, end_ns=exited.time_ns, usage=exited.usage, failure=failure)


def _last_words(place: OpenPlace, path: PurePosixPath) -> str:
    """What stands at the end of the trial's errors: this run's, or of one before it that was not so silent."""
    said = place.execute(["tail", "-n", str(LAST_LINES), str(path)])
    words = said.output.strip()[-MOST_CHARACTERS:] if said.code == 0 else ""
    return f"; the end of {path.name}: {words}" if words else ""


def _file(path: PurePosixPath) -> FileOutput:
    return FileOutput(path=str(path))
