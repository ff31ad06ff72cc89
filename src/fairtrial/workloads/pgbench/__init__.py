"""`pgbench`: the real pgbench 15 or newer, with its scripts or anyone's, every transaction of which it logs.

A trial's window is the life of one process. Ramp-up is another over the same data, because pgbench cannot begin to
count later; what it leaves warm stays in the server.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pydantic import TypeAdapter

from fairtrial.errors import PlaceError
from fairtrial.metrics import consistency
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import Kind, MetricDefinition
from fairtrial.study.tree.nodes import Branch, Position
from fairtrial.study.tree.problems import Problems
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import contents
from fairtrial.workloads.pgbench import scalars as pgbench_scalars
from fairtrial.workloads.pgbench.arguments import Life
from fairtrial.workloads.pgbench.parameters import PgbenchParameters, reserved
from fairtrial.workloads.pgbench.running import Bench, identify
from fairtrial.workloads.pgbench.scripts import faults
from fairtrial.workloads.program import seed_of
from fairtrial.workloads.text_files import refuse_kept
from fairtrial.workloads.workload import Drive, Driven, Loaded, OnProgress

LOADER_VERSION: Final = 1  # part of the key of prepared data: raise it when loading changes
GUESSED_PER_S: Final = 500.0  # to estimate a window by count before anything was measured
BYTES_PER_SCALE: Final = 16 << 20  # 100,000 accounts with their index, and what little the other tables have
BYTES_LOGGED: Final = 45  # a transaction with its lag and tries, as text
LOGGED_PER_S: Final = 20_000  # without a rate: select-only on two processors
FULL: Final = 100  # percent: a page's fill factor if none is asked for


def _definitions(parameters: PgbenchParameters) -> Mapping[str, MetricDefinition]:
    return pgbench_scalars.definitions(
        parameters.types,
        is_open=parameters.rate is not None,
        has_limit=parameters.latency_limit is not None,
    )


def _check(parameters: PgbenchParameters, branch: Branch, problems: Problems) -> None:
    """Notes every option that the run sets itself, and what pgbench will not take of a script, with its line."""
    refuse_kept(parameters.options, branch.below("options"), problems, program="pgbench", kept=reserved)
    for name, _weight, file in parameters.scripts:
        if file is None:
            continue
        field = branch.field("mix", name) if parameters.mix else branch.field("file")
        for fault in faults(file.text):
            at = Position(name if parameters.mix else file.name, fault.line, 1)
            problems.add(fault.message, at, field=field, suggestion=fault.suggestion)


def _disk_bytes(parameters: Mapping[str, Any]) -> int:
    """Of pgbench's own tables, and of its log; what `init` makes nobody knows."""
    asked = PgbenchParameters.model_validate(parameters)
    tables = (asked.tables_scale or 0) * BYTES_PER_SCALE * FULL // int(asked.data.get("fillfactor", FULL))
    logged = asked.transactions or (asked.duration or 0) * (asked.rate or LOGGED_PER_S)
    return tables + round(logged * BYTES_LOGGED)


KIND = Kind(
    name="pgbench",
    summary="The real pgbench, with its own scripts or anyone's: see [pgbench](../guides/workloads.md#pgbench).",
    parameters=TypeAdapter(PgbenchParameters),
    metrics=_definitions,
    throughput="throughput_tps",
    example={"script": "tpcb-like", "scale": 10, "clients": 8, "duration": "60s"},
    duration_s=lambda given: float(given["ramp_up"] + (given["duration"] or given["transactions"] / GUESSED_PER_S)),
    disk_bytes=_disk_bytes,
    systems=frozenset({"postgres"}),
    check=_check,
)


def data(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Pgbench's own tables and whatever `init` makes, whichever script runs."""
    asked = PgbenchParameters.model_validate(parameters)
    return {
        "workload": "pgbench",
        "scale": asked.tables_scale,
        "data": asked.data,
        "init": asked.init.sha256 if asked.init else None,
        "loader_version": LOADER_VERSION,
    }


def load(
    place: OpenPlace, parameters: Mapping[str, Any], endpoint: Mapping[str, Any], *, on_progress: OnProgress
) -> Loaded:
    """Fills an empty database by pgbench and by the SQL of `init`, after which all that they made is read.

    Raises:
        PlaceError: there is no pgbench, or it fails; its own words say why.
    """
    asked = PgbenchParameters.model_validate(parameters)
    found = identify(place)

    def prepare(directory: PurePosixPath) -> str:
        bench = Bench.set_up(place, asked, program=found["pgbench"], endpoint=endpoint, directory=directory)
        return bench.prepare()

    made = contents.fill(place, endpoint, program="pgbench", by=prepare, on_progress=on_progress)
    if not made.rows:
        raise PlaceError("`init` left no table", hint="mend the file of workload.pgbench.init")
    return made


def drive(place: OpenPlace, parameters: Mapping[str, Any], drive: Drive) -> Driven:
    """Ramps up, then measures one life of pgbench; leaves its output, and our files made from it and from its log.

    Raises:
        PlaceError: there is no pgbench, or what it printed or logged is not pgbench's.
    """
    if drive.endpoint is None:
        raise PlaceError("pgbench needs a database", hint="name one under `system`")
    asked = PgbenchParameters.model_validate(parameters)
    effective = identify(place)
    directory = drive.work_directory / "pgbench"
    bench = Bench.set_up(place, asked, program=effective["pgbench"], endpoint=drive.endpoint, directory=directory)
    if asked.ramp_up:
        warm = Life(asked.ramp_up, None, seed=seed_of(drive.seed, "ramp-up"))
        effective["ramp_up_seed"] = str(warm.seed)
        ran = bench.run(warm, drive, name="ramp-up")
        if ran.failure:
            return Driven(window=ran.life, effective=effective, invalid_reason=f"ramping up: {ran.failure}")
    each = None if asked.transactions is None else asked.transactions // asked.clients
    window = Life(asked.duration, each, seed=seed_of(drive.seed, "window"), log=bench.log_prefix())
    effective["seed"] = str(window.seed)
    clock = place.agent.clock()
    drive.on_progress({"progress": "measuring", "time_ns": clock.monotonic_ns})
    ran = bench.run(window, drive, name="load")
    if ran.failure:
        return Driven(window=ran.life, effective=effective, invalid_reason=ran.failure)
    with tempfile.TemporaryDirectory() as scratch:
        from fairtrial.workloads.pgbench import measuring, transactions  # noqa: PLC0415 - help needs no polars

        layout = transactions.Layout.of(parameters, asked.types)
        measured = measuring.measured(ran, bench.logs(Path(scratch)), layout=layout, clock=clock)
        for name, content in measured.files.items():
            if name != transactions.FILE or asked.keep_log:
                place.agent.put(str(drive.directory / name), content, mode=0o644)
    reason = "" if measured.done else "pgbench ended no transaction inside the measured window"
    return Driven(window=measured.window or ran.life, effective=effective, invalid_reason=reason)


def checks_after(_parameters: Mapping[str, Any]) -> str:
    """Never: what a script should leave behind only its author knows."""
    return "never"


def check(_place: OpenPlace, _parameters: Mapping[str, Any], _endpoint: Mapping[str, Any]) -> list[Check]:
    """Nothing to check."""
    return []


def scalars(directory: Path, parameters: Mapping[str, Any], window: Window) -> dict[str, float]:
    """Throughput, failures, latency and lateness from the files made of pgbench's output and log."""
    types = PgbenchParameters.model_validate(parameters).types
    return pgbench_scalars.compute(directory, window=window, types=types)


def contradictions(directory: Path, parameters: Mapping[str, Any]) -> list[str]:
    """Where our files disagree, or are not what pgbench reported and logged."""
    from fairtrial.workloads.pgbench import agreeing  # noqa: PLC0415 - a command's help needs no polars

    return [*agreeing.contradictions(directory, parameters), *consistency.contradictions(directory)]
