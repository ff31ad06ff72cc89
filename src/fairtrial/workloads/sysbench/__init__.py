"""`sysbench`: the real sysbench 1.0, with its scripts or anyone's, its own `prepare`, its histogram and its intervals.

A trial's window is the life of one process. Ramp-up is another over the same data, because sysbench 1.0 cannot begin
to count later; what it leaves warm stays in the server.
"""

from __future__ import annotations

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
from fairtrial.study.tree.nodes import Branch
from fairtrial.study.tree.problems import Problems
from fairtrial.wire.native import OnProgress
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import contents
from fairtrial.workloads.engine.oltp import Oltp, OltpParameters
from fairtrial.workloads.sysbench import output
from fairtrial.workloads.sysbench import scalars as sysbench_scalars
from fairtrial.workloads.sysbench.arguments import BULK_INSERT, seed_of
from fairtrial.workloads.sysbench.parameters import NATIVE, SysbenchParameters, reserved
from fairtrial.workloads.sysbench.running import PROGRAM, SysbenchBench
from fairtrial.workloads.text_files import refuse_kept
from fairtrial.workloads.tool import Life, build
from fairtrial.workloads.workload import Drive, DriveOutcome, Workload

LOADER_VERSION: Final = 1  # part of the key of prepared data: raise it when loading changes
GUESSED_PER_S: Final = 500.0  # to estimate a window by count before anything was measured


class Sysbench(Workload[SysbenchParameters]):
    """The real sysbench; what a script should leave behind only its author knows, so that no data are checked."""

    name = "sysbench"
    summary = "The real sysbench, with its own scripts or yours: see [sysbench](../guides/workloads.md#sysbench)."
    model = SysbenchParameters
    throughput = "throughput_tps"
    example = MappingProxyType({"script": "oltp_point_select", "duration": "60s"})
    systems = frozenset({"mariadb", "mysql", "postgres"})
    programs = (Program("sysbench", "the workload `sysbench` runs it"),)
    builds = MappingProxyType({"sysbench_sha256": "sysbench"})

    @classmethod
    def check(cls, parameters: SysbenchParameters, branch: Branch, problems: Problems) -> None:
        """Notes every option that the run sets itself."""
        for part in ("data", "options"):
            refuse_kept(getattr(parameters, part), branch.below(part), problems, program="sysbench", kept=reserved)

    def acts(self) -> Iterator[Act]:
        """Sysbench with its script, which is a program of Lua, and the words that it is told."""
        parameters = self.parameters
        yield Act("runs", "sysbench --version", "in every trial, for the record")
        for file in parameters.files:
            yield Act("runs", f"{file.name}, a program of Lua, SHA-256 {file.sha256}", "in sysbench")
        words = [f"--{name}={value}" for name, value in {**parameters.data, **parameters.options}.items()]
        yield Act("runs", shlex.join(["sysbench", parameters.script or parameters.files[0].name, *words]))

    def loading(self) -> Iterator[Act]:
        """Our own loader, for tables that it knows; else sysbench is told."""
        if self.parameters.is_native:
            yield from self._tables.loading()

    def metrics(self) -> Mapping[str, MetricDefinition]:
        """Throughput, errors and latency."""
        return sysbench_scalars.definitions(is_open=self.parameters.rate is not None)

    def duration_s(self) -> float:
        """Ramp-up and window; one by count is guessed."""
        parameters = self.parameters
        return parameters.ramp_up + (parameters.duration or (parameters.events or 0) / GUESSED_PER_S)

    def disk_bytes(self) -> int:
        """As our own loader fills tables; what other scripts do nobody knows."""
        return self._tables.disk_bytes() if self.parameters.is_native else 0

    def require(self, place: OpenPlace) -> None:
        """Looks for sysbench 1.0."""
        PROGRAM.identify(place)

    def data(self) -> Mapping[str, Any] | None:
        """The same as of `oltp`, which may share them; else whatever `prepare` is told, and what it runs."""
        parameters = self.parameters
        if parameters.is_native:
            return self._tables.data()
        return {
            "workload": "sysbench",
            "script": parameters.file.sha256 if parameters.file else parameters.script,
            "modules": [each.sha256 for each in parameters.modules],
            "threads": parameters.threads if parameters.script == BULK_INSERT else None,  # a table for each
            "options": parameters.data,
            "loader_version": LOADER_VERSION,
        }

    def loader(self, place: OpenPlace) -> Mapping[str, str]:
        """Sysbench, where its `prepare` is what loads."""
        return {} if self.parameters.is_native else build(PROGRAM.identify(place), "sysbench")

    @property
    def _tables(self) -> Oltp:
        """`oltp` with the same tables."""
        parameters = self.parameters
        options = NATIVE | {name.replace("_", "-"): int(value) for name, value in parameters.data.items()}
        tables = {"tables": options["tables"], "table_size": options["table-size"]}
        own = {"duration": 1, "data_seed": parameters.data_seed, "load_threads": parameters.load_threads}
        return Oltp(OltpParameters.model_validate({**tables, **own}))

    def load(self, place: OpenPlace, endpoint: Endpoint, *, on_progress: OnProgress) -> Loaded:
        """Fills an empty database: by our own loader, or by `prepare`, after which all that it made is read."""
        if self.parameters.is_native:
            return self._tables.load(place, endpoint, on_progress=on_progress)
        PROGRAM.identify(place)
        loaded = contents.fill(
            place,
            endpoint,
            program="sysbench",
            by=lambda own: SysbenchBench.set_up(
                place, self.parameters, endpoint=server(endpoint), directory=own
            ).prepare(),
            on_progress=on_progress,
        )
        if not loaded.rows:
            raise PlaceError(
                "sysbench's `prepare` did not create a table", hint="fix workload.sysbench.data, or the script"
            )
        return loaded

    def drive(self, place: OpenPlace, drive: Drive) -> DriveOutcome:
        """Ramps up, then measures one life of sysbench; leaves its output, and our files made from it."""
        parameters = self.parameters
        identity = PROGRAM.identify(place)
        bench = SysbenchBench.set_up(place, parameters, endpoint=server(drive.endpoint), directory=drive.work_directory)
        ramp_up = Life(parameters.ramp_up, None, seed=seed_of(drive.seed, "ramp-up"))
        window = Life(parameters.duration, parameters.events, seed=seed_of(drive.seed, "window"))
        return bench.drive(drive, identity, window=window, ramp_up=ramp_up)

    def scalars(self, directory: Path, window: Window) -> dict[str, float]:
        """Throughput, errors and latency from the files made of sysbench's output."""
        return sysbench_scalars.compute(directory, window=window, rate=self.parameters.rate)

    def contradictions(self, directory: Path) -> list[str]:
        """Where our files disagree, or are not what sysbench printed."""
        return [*output.contradictions(directory), *consistency.contradictions(directory)]
