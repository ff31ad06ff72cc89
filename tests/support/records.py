"""A tiny plan and its trials."""

import json
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fairtrial.metrics import latency, per_transaction, telemetry
from fairtrial.record.models import Cell, Clock, Design, Plan, PlannedMetrics, PlannedTrial, TrialRecord, Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.workloads.engine import tpcc_scalars

RESOLVED = ResolvedTrial.model_validate(
    {"place": {"local": {}}, "system": {"command": {"run": None}}, "workload": {"command": {"run": "true"}}}
)


def section(kinds: Mapping[str, Any], name: str, **given: Any) -> Section:
    """A system or workload with its parameters, as a resolved trial holds them."""
    return Section({name: kinds[name].model.model_validate(given).model_dump(mode="json")})


def planned(block: int, arm: str, *, round_: int | None = None, cell: str = "all") -> PlannedTrial:
    position = 2 * (block - 1) + (arm == "b")
    return PlannedTrial(
        id=f"{cell}.b{block:02d}.{arm}",
        cell=cell,
        arm=arm,
        block=block,
        round=round_ or block,
        position=position,
        seed=block,
    )


def tiny_plan(*, blocks: int = 2) -> Plan:
    more = [planned(block, arm) for block in range(3, 1 + blocks) for arm in "ab"]
    return Plan(
        fairtrial_version="0",
        study="tiny",
        question="",
        size=None,
        factors={"arm": ["a", "b"]},
        arm="arm",
        also_compare=[],
        cells=[Cell(name="all", levels={})],
        resolved={"all": {"a": RESOLVED, "b": RESOLVED}},
        differences=[],
        expectations=[],
        metrics=PlannedMetrics(
            primary=["elapsed_s"],
            definitions={
                "elapsed_s": MetricDefinition(
                    name="elapsed_s", label="wall time", unit="s", better="lower", kind="wall_clock"
                )
            },
        ),
        design=Design(blocks=blocks, order="randomised_blocks", seed=1, stop="fixed", margin=0.02, voided_limit=1),
        telemetry_interval_ms=1000,
        trials=[planned(1, "a"), planned(1, "b"), planned(2, "b"), planned(2, "a"), *more],
        duration_s=4.0,
        disk_bytes=0,
    )


def trial_record(trial: PlannedTrial, *, valid: bool = True) -> TrialRecord:
    return TrialRecord(
        trial=trial,
        levels={"arm": trial.arm},
        resolved=RESOLVED,
        valid=valid,
        invalid_reason="" if valid else "broken on purpose",
        started="2026-01-01T00:00:00.000Z",
        finished="2026-01-01T00:00:01.000Z",
        clock=Clock(monotonic_ns=1, realtime_ns=2),
        window=Window(start_ns=1, end_ns=2),
        scalars={"elapsed_s": 1.0},
    )


def just_ended(trial: TrialRecord, *, ago_s: float = 0.0) -> TrialRecord:
    """As if it had run for a second, so long ago: a block does not go on after hours."""
    ended = datetime.now(UTC) - timedelta(seconds=ago_s)
    began = ended - timedelta(seconds=1)
    return trial.model_copy(update={"started": began.isoformat(), "finished": ended.isoformat()})


def tpcc_scalars_of(directory: Path, *, window: Window, ticks_per_s: float | None = None) -> dict[str, float]:
    """Every scalar that the raw files of a TPC-C trial give, telemetry included, as the run puts them together."""
    own = {**tpcc_scalars.compute(directory, window=window), **latency.compute(directory)}
    return per_transaction.joined(telemetry.compute(directory, window=window, ticks_per_s=ticks_per_s), own)


def change_workload(directory: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Alters the workload of a record's plan and of each of its trials alike."""
    plan = json.loads((directory / "plan.json").read_bytes())
    for arms in plan["resolved"].values():
        for resolved in arms.values():
            resolved["workload"] = change(resolved["workload"])
    (directory / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    for path in directory.glob("trials/*/trial.json"):
        trial = json.loads(path.read_bytes())
        trial["resolved"]["workload"] = change(trial["resolved"]["workload"])
        path.write_text(json.dumps(trial), encoding="utf-8")


def kept_unfaithful(directory: Path) -> Path:
    """A copy of the newest kept record whose drives never paid by last name."""
    newest = max((Path(__file__).parents[1] / "records").glob("[0-9]*"), key=lambda path: int(path.name))
    shutil.copytree(newest, directory)
    for path in directory.glob("trials/*/result.json"):
        result = json.loads(path.read_bytes())
        result["drawn"] |= {"payment": 1000, "payment_by_last_name": 0}
        path.write_text(json.dumps(result), encoding="utf-8")
    return directory
