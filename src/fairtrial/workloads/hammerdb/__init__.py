"""`hammerdb`: HammerDB's TPROC-C by its own CLI, with its own schema, users, counts and time profile.

A trial's window lies between HammerDB's two counts of what the server ended. Its users see the end later, each for
itself: that time is in no figure but the client's processor time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Final

from fairtrial.errors import PlaceError
from fairtrial.programs import Act
from fairtrial.protocol.endpoints import Endpoint, server
from fairtrial.protocol.generated import Loaded
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tree.nodes import Branch
from fairtrial.study.tree.problems import Problems
from fairtrial.wire.native import OnProgress
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import contents
from fairtrial.workloads.engine import tpcc
from fairtrial.workloads.hammerdb import output
from fairtrial.workloads.hammerdb import scalars as hammerdb_scalars
from fairtrial.workloads.hammerdb.parameters import RESERVED, HammerdbParameters
from fairtrial.workloads.hammerdb.running import HammerdbBench, find, identify
from fairtrial.workloads.text_files import refuse_kept
from fairtrial.workloads.tool import build
from fairtrial.workloads.workload import Drive, DriveOutcome, Workload

LOADER_VERSION: Final = 1  # part of the key of prepared data: raise it when loading changes


class Hammerdb(Workload[HammerdbParameters]):
    """TPROC-C by HammerDB. Its own check of its schema, for one that no transaction has changed, is never run."""

    name = "hammerdb"
    summary = "TPROC-C driven by HammerDB's own CLI: see [HammerDB](../guides/workloads.md#hammerdb)."
    model = HammerdbParameters
    throughput = "throughput_nopm"
    example = MappingProxyType({"duration": "5min", "time_profile": True})
    systems = frozenset({"mariadb", "mysql", "postgres"})
    builds = MappingProxyType({"hammerdb_sha256": "hammerdb"})

    @classmethod
    def check(cls, parameters: HammerdbParameters, branch: Branch, problems: Problems) -> None:
        """Notes every setting that the run sets itself."""
        for part, options in (("data", parameters.data), ("options", parameters.options)):
            refuse_kept(options, branch.below(part), problems, program="HammerDB", kept=RESERVED.get)

    def acts(self) -> Iterator[Act]:
        """HammerDB with a script that fairtrial writes, and the settings in it."""
        where = self.parameters.directory or "the directory of the hammerdbcli on the PATH"
        yield Act("runs", f"./hammerdbcli in {where}", "to make data, and in every trial")
        for name, value in {**self.parameters.data, **self.parameters.options}.items():
            yield Act("changes", f"HammerDB setting {name} = {value}", undo="HammerDB ends with its trial")

    def metrics(self) -> Mapping[str, MetricDefinition]:
        """HammerDB's own; latencies only with a time profile."""
        return hammerdb_scalars.definitions(profiled=self.parameters.time_profile)

    def duration_s(self) -> float:
        """Ramp-up and window."""
        return self.parameters.ramp_up + self.parameters.duration

    def disk_bytes(self) -> int:
        """Of all warehouses."""
        return self.parameters.warehouses * tpcc.BYTES_PER_WAREHOUSE

    def require(self, place: OpenPlace) -> None:
        """Looks for HammerDB where the study or the PATH says, and asks which it is."""
        identify(place, find(place, self.parameters))

    def data(self) -> Mapping[str, Any]:
        """What the build is told, and which HammerDB builds: the procedures that are measured are its own."""
        named = {"directory": self.parameters.directory} if self.parameters.directory is not None else {}
        return named | {
            "workload": "hammerdb",
            "db": self.parameters.db,
            "warehouses": self.parameters.warehouses,
            "procedures": self.parameters.procedures,
            "options": self.parameters.data,
            "loader_version": LOADER_VERSION,
        }

    def loader(self, place: OpenPlace) -> Mapping[str, str]:
        """The HammerDB whose procedures are stored with the data."""
        return build(identify(place, find(place, self.parameters)), "hammerdb")

    def load(self, place: OpenPlace, endpoint: Endpoint, *, on_progress: OnProgress) -> Loaded:
        """Fills an empty database by `buildschema`, after which all that it made is read."""
        self.require(place)

        def build(directory: PurePosixPath) -> str:
            return (
                HammerdbBench.set_up(place, self.parameters, endpoint=server(endpoint), directory=directory)
                .build()
                .failure
            )

        loaded = contents.fill(place, endpoint, program="hammerdb", by=build, on_progress=on_progress)
        if loaded.rows.get("warehouse") != self.parameters.warehouses:
            said = f"HammerDB's build left {loaded.rows.get('warehouse', 0)} of {self.parameters.warehouses} warehouses"
            raise PlaceError(said, hint="fix workload.hammerdb, or see the server's log")
        return loaded

    def drive(self, place: OpenPlace, drive: Drive) -> DriveOutcome:
        """Ramps up and measures by one process; leaves its output, and our files made from it."""
        bench = HammerdbBench.set_up(
            place, self.parameters, endpoint=server(drive.endpoint), directory=drive.work_directory
        )
        return bench.drive(drive, identify(place, bench.home), window=bench.window)

    def scalars(self, directory: Path, window: Window) -> dict[str, float]:
        """Throughput, evenness, errors and latency from the files made of HammerDB's output."""
        return hammerdb_scalars.compute(directory, window=window)

    def contradictions(self, directory: Path) -> list[str]:
        """Where our files are not what HammerDB printed; they tell nothing twice."""
        return output.contradictions(directory, interval_s=int(self.parameters.interval))
