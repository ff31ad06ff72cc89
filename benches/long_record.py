"""A record of a long run, made up: raw files of the product's names, columns and sizes, by the record's own writer.

Half of the trials are 6 % faster, by the paging that they spare: so that a report has effects to explain. A fixed seed
per trial. Histograms are drawn from a few hundred that were encoded once; their counts are the timeline's all the same.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from hdrh.histogram import HdrHistogram

from fairtrial.metrics import latency
from fairtrial.metrics.fidelity.tpcc import DECK
from fairtrial.metrics.latency import merged_latency
from fairtrial.metrics.series.throughput import Values
from fairtrial.metrics.series.timeline import OUTCOMES
from fairtrial.metrics.telemetry import counters
from fairtrial.record import Record, create, read
from fairtrial.record.events import RunFinished
from fairtrial.record.models import (
    Cell,
    Clock,
    Design,
    Difference,
    PlaceOpened,
    Plan,
    PlannedMetrics,
    PlannedTrial,
    TrialRecord,
    TrialStarted,
    Window,
)
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.workloads.engine import tpcc_scalars
from fairtrial.workloads.engine.tpcc import TpccParameters

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.inference.drawn import faithful
from support.records import tpcc_scalars_of

ARMS: Final = ("baseline", "mglru")
MIX: Final = {"new_order": 0.45, "payment": 0.43, "order_status": 0.04, "delivery": 0.04, "stock_level": 0.04}
RATE_PER_S: Final = 300  # transactions
FASTER: Final = 1.06
RAMP_UP_S: Final = 60
POOL: Final = 6  # encoded histograms per type and number of values
MOST: Final = 450  # transactions of one type in a second: bounds the pool
SWAPPED: Final = {"baseline": 40.0, "mglru": 25.0}
VMSTAT: Final = 190  # columns of Linux 6.1, as of meminfo and diskstats below
MEMINFO: Final = 52
DISKS: Final = 10
DISK_FIELDS: Final = ("reads", "sectors_read", "read_ms", "writes", "sectors_written", "write_ms", "in_flight", "io_ms")
STEADY_SHARE: Final = 0.6  # of counters that hardly ever move
FACTS: Final = {"host": "made-up", "processors": [0, 1, 2, 3], "ticks_per_s": 100, "page_bytes": 4096}
METRICS: Final = ("throughput_tpm", "throughput_nopm", "latency_ns_p99")


@dataclass(frozen=True)
class Size:
    """Of the record: trials are `2 * cells * blocks`."""

    cells: int
    blocks: int
    seconds: int


def make(directory: Path, size: Size, *, workers: int = 2) -> Record:
    """Writes the record of a whole run into `directory`, which must not exist."""
    planned = [
        PlannedTrial(
            id=f"c{cell}.b{block:02d}.{arm}",
            cell=f"c{cell}",
            arm=arm,
            block=block,
            round=block,
            position=(block * size.cells + cell) * len(ARMS) + (index + block) % len(ARMS),
            seed=1000 * block + 10 * cell + index,
        )
        for block in range(size.blocks)
        for cell in range(size.cells)
        for index, arm in enumerate(ARMS)
    ]
    planned.sort(key=lambda trial: trial.position)
    writer = create(directory, plan=_plan(size, planned), sources={"study.yaml": "study: long\n"})
    clock = Clock(monotonic_ns=1, realtime_ns=2)
    writer.note_place(
        PlaceOpened(place={"local": {}}, facts=FACTS, agent_sha256="cd" * 32, clock=clock, server_user="nobody")
    )
    raw = [writer.begin(trial.id) for trial in planned]
    for trial in _made(raw, planned, seconds=size.seconds, workers=workers):
        writer.append(TrialStarted(trial=trial.trial))
        writer.commit(trial)
    writer.append(RunFinished())
    writer.close()
    return read(directory)


def _made(raw: Sequence[Path], planned: Sequence[PlannedTrial], *, seconds: int, workers: int) -> Iterator[TrialRecord]:
    """Trials in order; by processes of their own if there are several, never forked: Polars has threads."""
    if workers == 1:
        yield from map(trial_record, raw, planned, [seconds] * len(raw))
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(trial_record, raw, planned, [seconds] * len(raw))


def _plan(size: Size, planned: Sequence[PlannedTrial]) -> Plan:
    cells = [Cell(name=f"c{index}", levels={"users": f"c{index}"}) for index in range(size.cells)]
    definitions = {**tpcc_scalars.DEFINITIONS, **latency.definitions(tpcc_scalars.TYPES)}
    return Plan(
        fairtrial_version="0",
        study="long",
        question="How long does the report of a long run take?",
        size=None,
        factors={"kernel": list(ARMS), "users": [cell.name for cell in cells]},
        arm="kernel",
        also_compare=[],
        cells=cells,
        resolved={cell.name: {arm: _resolved(arm, seconds=size.seconds) for arm in ARMS} for cell in cells},
        differences=[Difference(path="settings.lru_gen", values={"baseline": False, "mglru": True})],
        expectations=[],
        metrics=PlannedMetrics(
            primary=["throughput_tpm"],
            secondary=["throughput_nopm"],
            guardrails=["latency_ns_p99"],
            definitions={name: definitions[name] for name in METRICS},
        ),
        design=Design(blocks=size.blocks, order="randomised_blocks", seed=7, stop="fixed", margin=0.02, voided_limit=2),
        telemetry_interval_ms=1000,
        trials=list(planned),
        duration_s=float(len(planned) * (size.seconds + RAMP_UP_S)),
        disk_bytes=1 << 30,
    )


def _resolved(arm: str, *, seconds: int) -> ResolvedTrial:
    parameters = TpccParameters(virtual_users=26, ramp_up=RAMP_UP_S, duration=seconds).model_dump()
    return ResolvedTrial(
        place={"local": {}},
        system={"mariadb": {}},
        workload={"tpcc": parameters},
        settings={"lru_gen": arm == "mglru"},
    )


def trial_record(directory: Path, trial: PlannedTrial, seconds: int) -> TrialRecord:
    """Writes a trial's raw files and what the run derives from them."""
    start_ns = 10**14 + trial.position * (seconds + 2 * RAMP_UP_S) * 10**9
    window = Window(start_ns=start_ns, end_ns=start_ns + seconds * 10**9)
    random = np.random.default_rng(trial.seed)
    starts = start_ns + np.arange(-RAMP_UP_S, seconds, dtype=np.int64) * 10**9
    counts = _counts(random, trial, n=len(starts))
    _write_drive(directory, counts, starts=starts, window=window)
    _write_latencies(directory, random, counts={kind: each[RAMP_UP_S:] for kind, each in counts.items()})
    merged_latency.write(directory)
    telemetry = _write_telemetry(directory, random, starts, arm=trial.arm)
    counters.write(directory, window=window, sources=telemetry)
    return TrialRecord(
        trial=trial,
        levels={"kernel": trial.arm, "users": trial.cell},
        resolved=_resolved(trial.arm, seconds=seconds),
        valid=True,
        started="2026-11-20T22:00:00Z",
        finished="2026-11-20T22:45:00Z",
        clock=Clock(monotonic_ns=start_ns, realtime_ns=start_ns),
        window=window,
        scalars=tpcc_scalars_of(directory, window=window, ticks_per_s=FACTS["ticks_per_s"]),
        options={"innodb_buffer_pool_size": "1073741824"},
        system_facts={"version": "10.11"},
        phases_s={"ramp_up": float(RAMP_UP_S), "measured": float(seconds)},
        telemetry=telemetry,
    )


def _counts(random: np.random.Generator, trial: PlannedTrial, *, n: int) -> dict[str, np.ndarray]:
    """Transactions per second and type, with noise of trials, of minutes, and a stall now and then."""
    mean = RATE_PER_S * (FASTER if trial.arm == "mglru" else 1.0) * np.exp(0.02 * random.standard_normal())
    wander = np.repeat(0.03 * random.standard_normal(n // RAMP_UP_S + 1), RAMP_UP_S)[:n]
    stalled = np.where(random.random(n) < 1 / 600, 0.2, 1.0)  # every ten minutes or so
    per_second = random.poisson(mean * np.exp(wander) * stalled)
    return {kind: np.minimum(random.binomial(per_second, share), MOST) for kind, share in MIX.items()}


def _write_drive(directory: Path, counts: dict[str, np.ndarray], *, starts: Values, window: Window) -> None:
    columns: dict[str, Any] = {"time_ns": starts, "measured": starts >= window.start_ns}
    for kind, count in counts.items():
        columns |= {f"{kind}_committed": count.astype(np.uint64)}
        columns |= {f"{kind}_{other}": np.zeros(len(count), np.uint64) for other in OUTCOMES[1:]}
    frame = pl.DataFrame(columns)
    frame.write_parquet(directory / "timeline.parquet")
    measured = frame.filter("measured")
    transactions = {kind: {o: int(measured[f"{kind}_{o}"].sum()) for o in OUTCOMES} for kind in MIX}
    decks = max(int(sum(each.values()) / (DECK * MIX[kind])) + 1 for kind, each in transactions.items())
    result = {
        "window": window.model_dump(),
        "transactions": transactions,
        "errors": [],
        "drawn": faithful(decks, warehouses=1),
        "effective": {},
        "client": {},
    }
    (directory / "result.json").write_text(json.dumps(result), encoding="utf-8")


@cache
def _encoded(kind: str, values: int) -> list[str]:
    """Histograms of so many latencies."""
    random = np.random.default_rng(values)
    found = []
    for _ in range(POOL):
        histogram = HdrHistogram(1, 3_600_000_000_000, 3)
        for value in random.lognormal(18 if kind == "delivery" else 17, 0.6, values):
            histogram.record_value(int(value))
        found.append(f"{histogram.get_max_value()},{histogram.encode().decode()}")
    return found


def _write_latencies(directory: Path, random: np.random.Generator, *, counts: dict[str, np.ndarray]) -> None:
    lines = ["#[Histogram log format version 1.3]\n"]
    for second in range(len(counts["payment"])):
        for kind, each in counts.items():
            pool = _encoded(kind, int(each[second]))
            lines.append(f"Tag={kind},{second}.000,1.000,{pool[int(random.integers(len(pool)))]}\n")
    (directory / "latency.hlog").write_text("".join(lines), encoding="utf-8")


def _write_telemetry(directory: Path, random: np.random.Generator, starts: Values, *, arm: str) -> list[str]:
    n = len(starts)

    def grows(per_s: float) -> np.ndarray:
        return np.cumsum(random.poisson(per_s, n)).astype(np.uint64)

    def level(mean: float) -> np.ndarray:
        return (mean * (1 + 0.01 * random.standard_normal(n))).astype(np.uint64)

    def several(count: int, name: str) -> dict[str, np.ndarray]:
        rates = np.where(random.random(count) < STEADY_SHARE, 0.01, 500.0)
        return {f"{name}{index}": grows(rate) for index, rate in enumerate(rates)}

    ticks = {"user": 240.0, "nice": 0.0, "system": 90.0, "irq": 1.0, "softirq": 2.0, "iowait": SWAPPED[arm]}
    sources = {
        "cpu": {name: grows(rate) for name, rate in ticks.items()} | {"idle": grows(30), "running": level(3)},
        "memory": {"MemAvailable": level(5 << 30)} | {f"meminfo{index}": level(1 << 28) for index in range(MEMINFO)},
        "vmstat": {"pswpin": grows(SWAPPED[arm]), "pgmajfault": grows(SWAPPED[arm])} | several(VMSTAT, "pgcounter"),
        "disks": {
            f"{device}.{field}": level(2) if field == "in_flight" else grows(700 if device == "vda" else 0.01)
            for device in ("vda", *(f"loop{index}" for index in range(DISKS)))
            for field in DISK_FIELDS
        },
        "pressure": {
            f"{name}.{which}.total_us": grows(1000 * SWAPPED[arm])
            for name in ("cpu", "memory", "io")
            for which in ("some", "full")
        },
        "process-server": {"resident_bytes": level(1 << 30)} | several(12, "process"),
        "server": {
            "history_list_length": level(1000),
            "buffer_pool_pages_dirty": level(2000),
            "buffer_pool_pages_total": np.full(n, 65536, np.uint64),
            "buffer_pool_reads": grows(100),
            "buffer_pool_read_requests": grows(40_000),
            "log_written_bytes": grows(2_000_000),
        }
        | several(30, "server"),
    }
    for source, columns in sources.items():
        frame = pl.DataFrame({"time_ns": starts + 3_000_000, **columns})
        frame.write_parquet(directory / f"telemetry-{source}.parquet")
    return list(sources)
