"""`sysbench`: the real sysbench 1.0, with its scripts or anyone's, its own `prepare`, its histogram and its intervals.

A trial's window is the life of one process. Ramp-up is another over the same data, because sysbench 1.0 cannot begin
to count later; what it leaves warm stays in the server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from pydantic import TypeAdapter

from fairtrial.errors import PlaceError
from fairtrial.metrics import consistency
from fairtrial.record.models import Check, Window
from fairtrial.study.catalogue import Kind, MetricDefinition
from fairtrial.study.tree.nodes import Branch
from fairtrial.study.tree.problems import Problems
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import contents
from fairtrial.workloads.engine import oltp
from fairtrial.workloads.program import Ran
from fairtrial.workloads.sysbench import scalars as sysbench_scalars
from fairtrial.workloads.sysbench.arguments import BULK_INSERT, Life, preparing_threads, seed_of
from fairtrial.workloads.sysbench.parameters import NATIVE, SysbenchParameters, reserved
from fairtrial.workloads.sysbench.running import Bench, identify
from fairtrial.workloads.text_files import refuse_kept
from fairtrial.workloads.workload import Drive, Driven, Loaded, OnProgress

LOADER_VERSION: Final = 1  # part of the key of prepared data: raise it when loading changes
GUESSED_PER_S: Final = 500.0  # to estimate a window by count before anything was measured


def _definitions(_parameters: SysbenchParameters) -> Mapping[str, MetricDefinition]:
    from fairtrial.workloads.sysbench import output  # noqa: PLC0415 - a command's help needs no polars

    return sysbench_scalars.definitions(resolution=output.RESOLUTION)


def _check(parameters: SysbenchParameters, branch: Branch, problems: Problems) -> None:
    """Notes every option that the run sets itself."""
    for part in ("data", "options"):
        refuse_kept(getattr(parameters, part), branch.below(part), problems, program="sysbench", kept=reserved)


def _disk_bytes(parameters: Mapping[str, Any]) -> int:
    """As our own loader fills tables; what other scripts do nobody knows."""
    asked = SysbenchParameters.model_validate(parameters)
    return oltp.KIND.disk_bytes(_tables(asked)) if asked.is_native else 0


KIND = Kind(
    name="sysbench",
    summary="The real sysbench, with its own scripts or anyone's: see [sysbench](../guides/workloads.md#sysbench).",
    parameters=TypeAdapter(SysbenchParameters),
    metrics=_definitions,
    throughput="throughput_tps",
    example={"script": "oltp_point_select", "duration": "60s"},
    duration_s=lambda given: float(given["ramp_up"] + (given["duration"] or given["events"] / GUESSED_PER_S)),
    disk_bytes=_disk_bytes,
    systems=frozenset({"mariadb", "mysql", "postgres"}),
    check=_check,
)


def data(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same as of `oltp`, which may share them; else whatever `prepare` is told, and what it runs."""
    asked = SysbenchParameters.model_validate(parameters)
    if asked.is_native:
        return oltp.data(_tables(asked))
    return {
        "workload": "sysbench",
        "script": asked.file.sha256 if asked.file else asked.script,
        "modules": [each.sha256 for each in asked.modules],
        "threads": preparing_threads(parameters) if asked.script == BULK_INSERT else None,  # a table for each
        "options": asked.data,
        "loader_version": LOADER_VERSION,
    }


def _tables(asked: SysbenchParameters) -> dict[str, Any]:
    """Parameters of `oltp` with the same tables."""
    told = NATIVE | {name.replace("_", "-"): int(value) for name, value in asked.data.items()}
    given = {"tables": told["tables"], "table_size": told["table-size"]}
    own = {"duration": 1, "data_seed": asked.data_seed, "load_threads": asked.load_threads}
    return oltp.OltpParameters.model_validate({**given, **own}).model_dump(mode="json")


def load(
    place: OpenPlace, parameters: Mapping[str, Any], endpoint: Mapping[str, Any], *, on_progress: OnProgress
) -> Loaded:
    """Fills an empty database: by our own loader, or by `prepare`, after which all that it made is read.

    Raises:
        PlaceError: there is no sysbench, or it fails; its own words say why.
    """
    asked = SysbenchParameters.model_validate(parameters)
    if asked.is_native:
        return oltp.load(place, _tables(asked), endpoint, on_progress=on_progress)
    identify(place)

    def prepare(directory: PurePosixPath) -> str:
        return Bench.set_up(place, parameters, endpoint=endpoint, directory=directory).prepare().failure

    found = contents.fill(place, endpoint, program="sysbench", by=prepare, on_progress=on_progress)
    if not found.rows:
        raise PlaceError("sysbench's `prepare` left no table", hint="mend workload.sysbench.data, or the script")
    return found


def drive(place: OpenPlace, parameters: Mapping[str, Any], drive: Drive) -> Driven:
    """Ramps up, then measures one life of sysbench; leaves its output, and our files made from it.

    Raises:
        PlaceError: there is no sysbench, or what it printed is not sysbench's.
    """
    if drive.endpoint is None:
        raise PlaceError("sysbench needs a database", hint="name one under `system`")
    effective = identify(place)
    bench = Bench.set_up(place, parameters, endpoint=drive.endpoint, directory=drive.work_directory)
    window = Life(parameters["duration"], parameters["events"], seed=seed_of(drive.seed, "window"))
    effective["seed"] = str(window.seed)
    if parameters["ramp_up"]:
        warm = Life(parameters["ramp_up"], None, seed=seed_of(drive.seed, "ramp-up"))
        effective["ramp_up_seed"] = str(warm.seed)
        ran = bench.run(warm, drive, name="ramp-up")
        if ran.failure:
            return Driven(window=ran.life, effective=effective, invalid_reason=f"ramping up: {ran.failure}")
    drive.on_progress({"progress": "measuring", "time_ns": place.agent.clock().monotonic_ns})
    ran = bench.run(window, drive, name="load")
    if ran.failure:
        return Driven(window=ran.life, effective=effective, invalid_reason=ran.failure)
    files, measured = _files(ran)
    for name, content in files.items():
        place.agent.put(str(drive.directory / name), content, mode=0o644)
    reason = _why_invalid(json.loads(files["result.json"]), parameters)
    return Driven(window=measured, effective=effective, invalid_reason=reason)


def _files(ran: Ran) -> tuple[dict[str, bytes], Window]:
    """Ours, made of sysbench's output, and the measured window."""
    from fairtrial.workloads.sysbench import output  # noqa: PLC0415 - a command's help needs no polars

    start_ns, end_ns = edges = output.window_ns(ran.text, ended_ns=ran.life.end_ns)
    window = Window(start_ns=start_ns, end_ns=end_ns)
    own = {"window": window.model_dump(), "client": ran.usage.model_dump(), "effective": {}}
    files = {
        "result.json": json.dumps({**output.result(ran.text), **own}).encode(),
        "latency.hlog": output.latency_log(ran.text, window=edges).encode(),
        "timeline.parquet": output.timeline(ran.text, window=edges),
    }
    return files, window


def _why_invalid(result: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """Why a trial is invalid by the study's rule; empty if it is valid."""
    lost = sum(error["count"] for error in result["errors"] if error["kind"] == "connection")
    limit = parameters["lost_connections_limit"]
    if lost > limit:
        return f"sysbench reconnected {lost} times" + (f", {limit} are allowed" if limit else "")
    done = sum(outcome["committed"] for outcome in result["transactions"].values())
    return "" if done else "sysbench ended no event inside the measured window"


def checks_after(_parameters: Mapping[str, Any]) -> str:
    """Never: what a script should leave behind only its author knows."""
    return "never"


def check(_place: OpenPlace, _parameters: Mapping[str, Any], _endpoint: Mapping[str, Any]) -> list[Check]:
    """Nothing to check."""
    return []


def scalars(directory: Path, _parameters: Mapping[str, Any], window: Window) -> dict[str, float]:
    """Throughput, errors and latency from the files made of sysbench's output."""
    return sysbench_scalars.compute(directory, window=window)


def contradictions(directory: Path, _parameters: Mapping[str, Any]) -> list[str]:
    """Where our files disagree, or are not what sysbench printed."""
    from fairtrial.workloads.sysbench import agreeing  # noqa: PLC0415 - a command's help needs no polars

    return [*agreeing.contradictions(directory), *consistency.contradictions(directory)]
