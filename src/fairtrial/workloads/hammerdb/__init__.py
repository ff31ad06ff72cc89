"""`hammerdb`: HammerDB's TPROC-C by its own CLI, with its own schema, users, counts and time profile.

A trial's window lies between HammerDB's two counts of what the server ended. Its users see the end later, each for
itself: that time is in no figure but the client's processor time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Final

from fairtrial.errors import PlaceError
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.tree.nodes import Branch
from fairtrial.study.tree.problems import Problems
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import contents
from fairtrial.workloads.engine import tpcc
from fairtrial.workloads.hammerdb import agreeing, output
from fairtrial.workloads.hammerdb import scalars as hammerdb_scalars
from fairtrial.workloads.hammerdb.parameters import HammerdbParameters, reserved
from fairtrial.workloads.hammerdb.running import Bench, find, identify
from fairtrial.workloads.text_files import refuse_kept
from fairtrial.workloads.tool import keep
from fairtrial.workloads.workload import Drive, Driven, Loaded, OnProgress, Workload

LOADER_VERSION: Final = 1  # part of the key of prepared data: raise it when loading changes
# Beyond it the window's place on the monotonic clock is a guess; slewing moves a clock by 500 millionths at most.
CLOCK_MOVES_NS: Final = 20_000_000
SLEWED: Final = 5e-4
WINDOW_DEVIATION: Final = 0.01  # of the length it divides by; what lies between its counts is 0.1 % longer


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
        for part, given in (("data", parameters.data), ("options", parameters.options)):
            refuse_kept(given, branch.below(part), problems, program="HammerDB", kept=reserved)

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
        """Looks for HammerDB where the study or the PATH says, and asks which it is.

        Raises:
            PlaceError: there is none, or one of an older generation.
        """
        identify(place, find(place, self.parameters))

    def data(self) -> Mapping[str, Any]:
        """What the build is told."""
        return {
            "workload": "hammerdb",
            "db": self.parameters.db,
            "warehouses": self.parameters.warehouses,
            "procedures": self.parameters.procedures,
            "options": self.parameters.data,
            "loader_version": LOADER_VERSION,
        }

    def load(self, place: OpenPlace, endpoint: Mapping[str, Any], *, on_progress: OnProgress) -> Loaded:
        """Fills an empty database by `buildschema`, after which all that it made is read.

        Raises:
            PlaceError: there is no HammerDB, or it fails; its own words say why.
        """
        self.require(place)

        def build(directory: PurePosixPath) -> str:
            return Bench.set_up(place, self.parameters, endpoint=endpoint, directory=directory).build().failure

        found = contents.fill(place, endpoint, program="hammerdb", by=build, on_progress=on_progress)
        if found.rows.get("warehouse") != self.parameters.warehouses:
            said = f"HammerDB's build left {found.rows.get('warehouse', 0)} of {self.parameters.warehouses} warehouses"
            raise PlaceError(said, hint="fix workload.hammerdb, or see the server's log")
        return found

    def drive(self, place: OpenPlace, drive: Drive) -> Driven:
        """Ramps up and measures by one process; leaves its output, and our files made from it.

        Raises:
            PlaceError: there is no HammerDB.
        """
        if drive.endpoint is None:
            raise PlaceError("HammerDB needs a database", hint="name one under `system`")
        bench = Bench.set_up(place, self.parameters, endpoint=drive.endpoint, directory=drive.work_directory)
        effective = identify(place, bench.home)
        drive.on_progress({"progress": "ramping up", "time_ns": place.agent.clock().monotonic_ns})
        ran, clock = bench.run(drive)
        reason = ran.failure
        life_ns = ran.life.end_ns - ran.life.start_ns
        if not reason and clock.moved_ns > CLOCK_MOVES_NS + SLEWED * life_ns:
            reason = f"the place's clock, which HammerDB's window depends on, was set by {clock.moved_ns / 1e9:.2f} s"
        if reason:
            return Driven(window=ran.life, effective=effective, invalid_reason=reason)
        try:
            told = output.result(ran.text, clock)
        except PlaceError as error:
            return Driven(window=ran.life, effective=effective, invalid_reason=str(error))
        files = {
            "result.json": json.dumps({**told, "client": ran.usage.model_dump(), "effective": {}}).encode(),
            "timeline.parquet": output.timeline(ran.text, clock, interval_s=int(self.parameters.interval)),
        }
        keep(place, drive, files)
        window = Window.model_validate(told["window"])
        return Driven(window=window, effective=effective, invalid_reason=self._why_invalid(told))

    def _why_invalid(self, told: output.Result) -> str:
        """Why a trial is invalid; empty if it is valid."""
        if told["nopm"] <= 0:
            return "HammerDB counted no new order inside its window"
        window_s = (told["window"]["end_ns"] - told["window"]["start_ns"]) / 1e9
        asked_s = 60.0 * told["minutes"]
        if abs(window_s / asked_s - 1) > WINDOW_DEVIATION:
            return f"HammerDB divides its counts by {asked_s:.0f} s, and {window_s:.1f} s lay between them"
        if self.parameters.time_profile and not told["latency_ms"]:
            return "HammerDB printed no time profile"
        return ""

    def scalars(self, directory: Path, window: Window) -> dict[str, float]:
        """Throughput, evenness, errors and latency from the files made of HammerDB's output."""
        return hammerdb_scalars.compute(directory, window=window)

    def contradictions(self, directory: Path) -> list[str]:
        """Where our files are not what HammerDB printed; they tell nothing twice."""
        return agreeing.contradictions(directory, interval_s=int(self.parameters.interval))
