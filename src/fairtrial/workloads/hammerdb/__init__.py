"""`hammerdb`: HammerDB's TPROC-C by its own CLI, with its own schema, users, counts and time profile.

A trial's window lies between HammerDB's two counts of what the server ended. Its users see the end later, each for
itself: that time is in no figure but the client's processor time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pydantic import TypeAdapter

from fairtrial.errors import PlaceError
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import Kind, MetricDefinition
from fairtrial.study.tree.nodes import Branch
from fairtrial.study.tree.problems import Problems
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import contents
from fairtrial.workloads.engine import tpcc
from fairtrial.workloads.hammerdb import scalars as hammerdb_scalars
from fairtrial.workloads.hammerdb.parameters import HammerdbParameters, reserved
from fairtrial.workloads.hammerdb.running import Bench, find, identify
from fairtrial.workloads.text_files import refuse_kept
from fairtrial.workloads.workload import Drive, Driven, Loaded, OnProgress

LOADER_VERSION: Final = 1  # part of the key of prepared data: raise it when loading changes
# Beyond it the window's place on the monotonic clock is a guess; slewing moves a clock by 500 millionths at most.
CLOCK_MOVES_NS: Final = 20_000_000
SLEWED: Final = 5e-4
WINDOW_DEVIATION: Final = 0.01  # of the length it divides by; what lies between its counts is 0.1 % longer


def _check(parameters: HammerdbParameters, branch: Branch, problems: Problems) -> None:
    """Notes every setting that the run sets itself."""
    for part in ("data", "options"):
        refuse_kept(getattr(parameters, part), branch.below(part), problems, program="HammerDB", kept=reserved)


def _definitions(parameters: HammerdbParameters) -> Mapping[str, MetricDefinition]:
    return hammerdb_scalars.definitions(profiled=parameters.time_profile)


KIND = Kind(
    name="hammerdb",
    summary="TPROC-C by HammerDB's own CLI: see [HammerDB](../guides/workloads.md#hammerdb).",
    parameters=TypeAdapter(HammerdbParameters),
    metrics=_definitions,
    throughput="throughput_nopm",
    example={"duration": "5min", "time_profile": True},
    duration_s=lambda given: float(given["ramp_up"] + given["duration"]),
    disk_bytes=lambda given: given["warehouses"] * tpcc.BYTES_PER_WAREHOUSE,
    systems=frozenset({"mariadb", "mysql", "postgres"}),
    check=_check,
)


def data(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the build is told."""
    return {
        "workload": "hammerdb",
        "db": parameters["db"],
        "warehouses": parameters["warehouses"],
        "procedures": parameters["procedures"],
        "options": parameters["data"],
        "loader_version": LOADER_VERSION,
    }


def load(
    place: OpenPlace, parameters: Mapping[str, Any], endpoint: Mapping[str, Any], *, on_progress: OnProgress
) -> Loaded:
    """Fills an empty database by `buildschema`, after which all that it made is read.

    Raises:
        PlaceError: there is no HammerDB, or it fails; its own words say why.
    """
    identify(place, find(place, parameters))

    def build(directory: PurePosixPath) -> str:
        return Bench.set_up(place, parameters, endpoint=endpoint, directory=directory).build().failure

    found = contents.fill(place, endpoint, program="hammerdb", by=build, on_progress=on_progress)
    if found.rows.get("warehouse") != parameters["warehouses"]:
        said = f"HammerDB's build left {found.rows.get('warehouse', 0)} of {parameters['warehouses']} warehouses"
        raise PlaceError(said, hint="mend workload.hammerdb, or see the server's own log")
    return found


def drive(place: OpenPlace, parameters: Mapping[str, Any], drive: Drive) -> Driven:
    """Ramps up and measures by one process; leaves its output, and our files made from it.

    Raises:
        PlaceError: there is no HammerDB.
    """
    if drive.endpoint is None:
        raise PlaceError("HammerDB needs a database", hint="name one under `system`")
    bench = Bench.set_up(place, parameters, endpoint=drive.endpoint, directory=drive.work_directory)
    effective = identify(place, bench.home)
    drive.on_progress({"progress": "ramping up", "time_ns": place.agent.clock().monotonic_ns})
    ran, clock = bench.run(drive)
    reason = ran.failure
    life_ns = ran.life.end_ns - ran.life.start_ns
    if not reason and clock.moved_ns > CLOCK_MOVES_NS + SLEWED * life_ns:
        reason = f"the place's clock was set by {clock.moved_ns / 1e9:.2f} s, by which HammerDB's window is placed"
    if reason:
        return Driven(window=ran.life, effective=effective, invalid_reason=reason)
    from fairtrial.workloads.hammerdb import output  # noqa: PLC0415 - a command's help needs no polars

    try:
        told = output.result(ran.text, clock)
    except PlaceError as error:
        return Driven(window=ran.life, effective=effective, invalid_reason=str(error))
    files = {
        "result.json": json.dumps({**told, "client": ran.usage.model_dump(), "effective": {}}).encode(),
        "timeline.parquet": output.timeline(ran.text, clock, interval_s=int(parameters["interval"])),
    }
    for name, content in files.items():
        place.agent.put(str(drive.directory / name), content, mode=0o644)
    return Driven(
        window=Window.model_validate(told["window"]), effective=effective, invalid_reason=_why_invalid(told, parameters)
    )


def _why_invalid(told: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """Why a trial is invalid; empty if it is valid."""
    if told["nopm"] <= 0:
        return "HammerDB counted no new order inside its window"
    window_s = (told["window"]["end_ns"] - told["window"]["start_ns"]) / 1e9
    asked_s = 60.0 * told["minutes"]
    if abs(window_s / asked_s - 1) > WINDOW_DEVIATION:
        return f"HammerDB divides its counts by {asked_s:.0f} s, and {window_s:.1f} s lay between them"
    if parameters["time_profile"] and not told["latency_ms"]:
        return "HammerDB printed no time profile"
    return ""


def checks_after(_parameters: Mapping[str, Any]) -> str:
    """Never: HammerDB's own check of its schema is for one that no transaction has changed."""
    return "never"


def check(_place: OpenPlace, _parameters: Mapping[str, Any], _endpoint: Mapping[str, Any]) -> list[Check]:
    """Nothing to check."""
    return []


def scalars(directory: Path, _parameters: Mapping[str, Any], window: Window) -> dict[str, float]:
    """Throughput, evenness, errors and latency from the files made of HammerDB's output."""
    return hammerdb_scalars.compute(directory, window=window)


def contradictions(directory: Path, parameters: Mapping[str, Any]) -> list[str]:
    """Where our files are not what HammerDB printed; they tell nothing twice."""
    from fairtrial.workloads.hammerdb import agreeing  # noqa: PLC0415 - a command's help needs no polars

    return agreeing.contradictions(directory, parameters)
