"""`pgbench`: the real pgbench 15 or newer, with its scripts or anyone's, every transaction of which it logs.

A trial's window is the life of one process. Ramp-up is another over the same data, because pgbench cannot begin to
count later; what it leaves warm stays in the server.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from fairtrial.errors import PlaceError
from fairtrial.metrics import consistency
from fairtrial.programs import Act, Program
from fairtrial.protocol.endpoints import Endpoint, server
from fairtrial.protocol.generated import Loaded
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tree.nodes import Branch, Position
from fairtrial.study.tree.problems import Problems
from fairtrial.wire.native import OnProgress
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import contents
from fairtrial.workloads.pgbench import agreeing
from fairtrial.workloads.pgbench import scalars as pgbench_scalars
from fairtrial.workloads.pgbench.parameters import PgbenchParameters, reserved
from fairtrial.workloads.pgbench.running import PROGRAM, PgbenchBench
from fairtrial.workloads.pgbench.scripts import faults
from fairtrial.workloads.text_files import refuse_kept
from fairtrial.workloads.tool import Life, build, seed_of
from fairtrial.workloads.workload import Drive, DriveOutcome, Workload

COMMAND: Final = re.compile(r"\\[A-Za-z!]|\bprogram\b", re.IGNORECASE)  # of psql and pgbench; of COPY
LOADER_VERSION: Final = 1  # part of the key of prepared data: raise it when loading changes
GUESSED_PER_S: Final = 500.0  # to estimate a window by count before anything was measured
BYTES_PER_SCALE: Final = 16 << 20  # 100,000 accounts with their index, and what little the other tables have
BYTES_LOGGED: Final = 45  # a transaction with its lag and tries, as text
LOGGED_PER_S: Final = 20_000  # without a rate: select-only on two processors
FULL: Final = 100  # percent: a page's fill factor if none is asked for


class Pgbench(Workload[PgbenchParameters]):
    """The real pgbench; what a script should leave behind only its author knows, so that no data are checked."""

    name = "pgbench"
    summary = "The real pgbench, with its own scripts or yours: see [pgbench](../guides/workloads.md#pgbench)."
    model = PgbenchParameters
    throughput = "throughput_tps"
    example = MappingProxyType({"script": "tpcb-like", "scale": 10, "clients": 8, "duration": "60s"})
    systems = frozenset({"postgres"})
    programs = (Program("pgbench", "the workload `pgbench` runs it", "postgresql"),)
    builds = MappingProxyType({"pgbench_sha256": "pgbench"})

    @classmethod
    def check(cls, parameters: PgbenchParameters, branch: Branch, problems: Problems) -> None:
        """Notes every option that the run sets itself, and what pgbench will not take of a script, with its line."""
        refuse_kept(parameters.options, branch.below("options"), problems, program="pgbench", kept=reserved)
        for name, _weight, file in parameters.scripts:
            if file is None:
                continue
            field = branch.field("mix", name) if parameters.mix else branch.field("file")
            for fault in faults(file.text):
                at = Position(name if parameters.mix else file.name, fault.line, 1)
                problems.add(fault.message, at, field=field, suggestion=fault.suggestion)

    def acts(self) -> Iterator[Act]:
        """Pgbench with its scripts, psql with the file that makes data, and every line of them that is no SQL."""
        parameters = self.parameters
        yield Act("runs", "pgbench --version", "in every trial, for the record")
        init = [] if parameters.init is None else [("psql", parameters.init)]
        scripts = [("pgbench", file) for _name, _weight, file in parameters.scripts if file is not None]
        for program, file in (*init, *scripts):
            yield Act("runs", f"{file.name}, SHA-256 {file.sha256}", f"in {program}")
            for line in file.text.splitlines():
                if COMMAND.search(line):
                    yield Act("runs", line.strip(), f"in {program}, from {file.name}")
        options = [*parameters.data.items(), *parameters.options.items()]
        words = [f"--{name}={value}" for name, value in options]
        yield Act("runs", shlex.join(["pgbench", *parameters.types, *words]))

    def metrics(self) -> Mapping[str, MetricDefinition]:
        """Throughput, failures and latency, by script if there are several; those of an open loop or a limit."""
        return pgbench_scalars.definitions(
            self.parameters.types, is_open=self.parameters.is_open, has_limit=self.parameters.latency_limit is not None
        )

    def duration_s(self) -> float:
        """Ramp-up and window; one by count is guessed."""
        parameters = self.parameters
        return parameters.ramp_up + (parameters.duration or (parameters.transactions or 0) / GUESSED_PER_S)

    def disk_bytes(self) -> int:
        """Of pgbench's own tables, and of its log; what `init` makes nobody knows."""
        parameters = self.parameters
        tables = (parameters.tables_scale or 0) * BYTES_PER_SCALE * FULL // int(parameters.data.get("fillfactor", FULL))
        logged = parameters.transactions or (parameters.duration or 0) * (parameters.rate or LOGGED_PER_S)
        return tables + round(logged * BYTES_LOGGED)

    def require(self, place: OpenPlace) -> None:
        """Looks for pgbench 15 or newer."""
        PROGRAM.identify(place)

    def data(self) -> Mapping[str, Any]:
        """Pgbench's own tables and whatever `init` makes, whichever script runs."""
        parameters = self.parameters
        return {
            "workload": "pgbench",
            "scale": parameters.tables_scale,
            "data": parameters.data,
            "init": parameters.init.sha256 if parameters.init else None,
            "loader_version": LOADER_VERSION,
        }

    def loader(self, place: OpenPlace) -> Mapping[str, str]:
        """The pgbench that initialises its tables."""
        return build(PROGRAM.identify(place), "pgbench")

    def load(self, place: OpenPlace, endpoint: Endpoint, *, on_progress: OnProgress) -> Loaded:
        """Fills an empty database by pgbench and by the SQL of `init`, after which all that they made is read."""
        path = PROGRAM.identify(place)["pgbench"]
        made = contents.fill(
            place,
            endpoint,
            program="pgbench",
            by=lambda own: PgbenchBench.set_up(
                place, self.parameters, path, endpoint=server(endpoint), directory=own
            ).prepare(),
            on_progress=on_progress,
        )
        if not made.rows:
            raise PlaceError("`init` did not create a table", hint="fix the file of workload.pgbench.init")
        return made

    def drive(self, place: OpenPlace, drive: Drive) -> DriveOutcome:
        """Ramps up, then measures one life of pgbench; leaves its output, and our files made from it and its log."""
        parameters = self.parameters
        identity = PROGRAM.identify(place)
        directory = drive.work_directory / "pgbench"
        bench = PgbenchBench.set_up(
            place, parameters, identity["pgbench"], endpoint=server(drive.endpoint), directory=directory
        )
        each = None if parameters.transactions is None else parameters.transactions // parameters.clients
        ramp_up = Life(parameters.ramp_up, None, seed=seed_of(drive.seed, "ramp-up"))
        window = Life(parameters.duration, each, seed=seed_of(drive.seed, "window"), log=bench.log)
        return bench.drive(drive, identity, window=window, ramp_up=ramp_up)

    def scalars(self, directory: Path, window: Window) -> dict[str, float]:
        """Throughput, failures, latency and lateness from the files made of pgbench's output and log."""
        return pgbench_scalars.compute(directory, window=window, types=self.parameters.types, rate=self.parameters.rate)

    def contradictions(self, directory: Path) -> list[str]:
        """Where our files disagree, or are not what pgbench reported and logged."""
        return [*agreeing.contradictions(directory, self.parameters), *consistency.contradictions(directory)]
