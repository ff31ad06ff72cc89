"""A realistic record, written by the record's own writer: 2 cells × 2 arms × 6 blocks, one voided and replaced.

Raw files hold what a real drive would give: every transaction's latency goes into the histogram log, counts into the
timeline, counters into telemetry; scalars are computed from them by `fairtrial.metrics`. Deterministic.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hdrh.histogram import HdrHistogram
from scipy import stats
from statsmodels.stats.multitest import multipletests
from support.inference.drawn import faithful
from support.inference.scipy_comparison import compared
from support.real_record import made_once
from support.records import tpcc_scalars_of

from fairtrial.analyse.models import (
    Analysis,
    ArmMean,
    CellResult,
    Counts,
    Doubt,
    ExpectationResult,
    Role,
    Steadiness,
    SteadinessVerdict,
    Summary,
)
from fairtrial.metrics import latency
from fairtrial.metrics.fidelity.tpcc import DECK
from fairtrial.record import Record, create, read
from fairtrial.record.events import RunFinished
from fairtrial.record.models import (
    BlockAdded,
    BlockVoided,
    Cell,
    Check,
    Clock,
    Design,
    Difference,
    EffectiveSetting,
    PlaceOpened,
    Plan,
    PlannedMetrics,
    PlannedTrial,
    RangeExpectation,
    TrialRecord,
    TrialStarted,
    Window,
)
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.workloads.engine import tpcc_scalars
from fairtrial.workloads.engine.tpcc import TpccParameters

SECONDS = 30
RAMP_UP_SECONDS = 5
BLOCKS = 6
BOOT_NS = 86_400_000_000_000
TRIAL_NS = 60_000_000_000
STUDY = "sqlite-journal"
ARMS = ("delete", "wal")
USERS = {"low": 2, "high": 8}
RATE_PER_S = {("low", "delete"): 310.0, ("low", "wal"): 402.0, ("high", "delete"): 285.0, ("high", "wal"): 283.0}
MIX = {"new_order": 0.45, "payment": 0.43, "order_status": 0.04, "delivery": 0.04, "stock_level": 0.04}
LATENCY_FACTOR = {"new_order": 1.2, "payment": 0.6, "order_status": 0.4, "delivery": 2.5, "stock_level": 0.9}
LOST = ("high", 3)  # the cell and block whose `wal` trial is invalid
FACTS = {
    "host": "bench-1",
    "kernel": "6.1.0-18-amd64",
    "kernel_version": "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1",
    "kernel_command_line": "BOOT_IMAGE=/boot/vmlinuz root=UUID=0 ro quiet",
    "machine": "x86_64",
    "distribution": "Debian GNU/Linux 12 (bookworm)",
    "processors": [0, 1, 2, 3],
    "processor_model": "An <Example> Processor & Co",
    "memory_bytes": 8 << 30,
    "swap_bytes": 0,
    "virtualisation": "kvm",
    "clock_source": "tsc",
    "file_system": "ext4",
    "free_bytes": 100 << 30,
    "user_id": 0,
    "ticks_per_s": 100,
    "page_bytes": 4096,
}


def plan() -> Plan:
    cells = [Cell(name=level, levels={"users": level}) for level in USERS]
    return Plan(
        fairtrial_version="0.1.0",
        study=STUDY,
        question="Is WAL faster than a rollback journal for TPC-C on SQLite, with few and with many users?",
        size=None,
        factors={"journal": list(ARMS), "users": list(USERS)},
        arm="journal",
        also_compare=["users"],
        cells=cells,
        resolved={cell.name: {arm: _resolved(cell.name, arm) for arm in ARMS} for cell in cells},
        differences=[
            Difference(path="system.sqlite.pragmas.journal_mode", values={"delete": "DELETE", "wal": "WAL"}),
            Difference(path="system.sqlite.pragmas.wal_autocheckpoint", values={"wal": 1000}),
        ],
        expectations=[
            RangeExpectation(factor="users", level="high", metric="failed_share", low=None, high=0.01, text="<= 1 %")
        ],
        metrics=PlannedMetrics(
            primary=["throughput_tpm"],
            secondary=["throughput_nopm"],
            guardrails=["latency_ns_p99"],
            definitions={
                name: {**tpcc_scalars.DEFINITIONS, **latency.definitions(tpcc_scalars.TYPES)}[name]
                for name in ("throughput_tpm", "throughput_nopm", "latency_ns_p99", "failed_share")
            },
        ),
        design=Design(
            blocks=BLOCKS, order="randomised_blocks", seed=7, stop="fixed", margin=0.02, confidence=0.95, voided_limit=2
        ),
        telemetry_interval_ms=1000,
        trials=_planned(),
        duration_s=1200.0,
        disk_bytes=1 << 30,
    )


def _resolved(cell: str, arm: str) -> ResolvedTrial:
    parameters = TpccParameters(virtual_users=USERS[cell], ramp_up=RAMP_UP_SECONDS, duration=SECONDS).model_dump()
    return ResolvedTrial(
        place={"local": {}},
        system={"sqlite": {"pragmas": {"journal_mode": arm.upper()}}},
        workload={"tpcc": parameters},
        settings={"sysctl": {"vm.swappiness": 10}},
    )


def _planned() -> list[PlannedTrial]:
    random = np.random.default_rng(7)
    trials: list[PlannedTrial] = []
    for block in range(BLOCKS):
        for cell in random.permutation(list(USERS)):
            for arm in random.permutation(list(ARMS)):
                trials.append(_trial(str(cell), str(arm), block=block, round_=block, position=len(trials)))
    return trials


def _trial(cell: str, arm: str, *, block: int, round_: int, position: int) -> PlannedTrial:
    return PlannedTrial(
        id=f"{position:04d}-{cell}-{arm}-b{block}",
        cell=cell,
        arm=arm,
        block=block,
        round=round_,
        position=position,
        seed=1000 + position,
    )


def build(directory: Path) -> Record:
    """Writes the record of a whole run into `directory`, which must not exist."""
    writer = create(directory, plan=plan(), sources={"study.yaml": f"study: {STUDY}\n"})
    clock = Clock(monotonic_ns=1, realtime_ns=2)
    writer.note_place(
        PlaceOpened(place={"local": {}}, facts=FACTS, agent_sha256="cd" * 32, clock=clock, server_user="nobody")
    )
    trials = list(writer.plan.trials)
    for trial in trials:  # grows by the replacement
        writer.append(TrialStarted(trial=trial))
        lost = (trial.cell, trial.block) == LOST and trial.arm == "wal"
        raw = writer.begin(trial.id)
        window = write_raw_files(raw, trial)
        writer.commit(_trial_record(trial, raw, window=window, lost=lost))
        if lost:
            writer.append(BlockVoided(cell=trial.cell, block=trial.block, reason=f"{trial.id}: the server restarted"))
            added = [
                _trial(trial.cell, arm, block=BLOCKS, round_=BLOCKS, position=len(trials) + index)
                for index, arm in enumerate(ARMS)
            ]
            writer.append(BlockAdded(cell=trial.cell, block=BLOCKS, round=BLOCKS, replaces=trial.block, trials=added))
            trials += added
    writer.append(RunFinished())
    writer.close()
    return read(directory)


def _trial_record(trial: PlannedTrial, raw: Path, *, window: Window, lost: bool) -> TrialRecord:
    minute = trial.position
    return TrialRecord(
        trial=trial,
        levels={"journal": trial.arm, "users": trial.cell},
        resolved=_resolved(trial.cell, trial.arm),
        valid=not lost,
        invalid_reason="the server restarted" if lost else "",
        started=f"2026-11-20T22:{minute:02d}:00Z",
        finished=f"2026-11-20T22:{minute:02d}:50Z",
        clock=Clock(monotonic_ns=window.start_ns, realtime_ns=1_795_000_000_000_000_000 + window.start_ns),
        window=window,
        scalars=tpcc_scalars_of(raw, window=window, ticks_per_s=FACTS["ticks_per_s"]),
        effective=[EffectiveSetting(name="sysctl vm.swappiness", asked="10", before="60", read_back="10")],
        options={"journal_mode": trial.arm, "synchronous": "2", "cache_size": "-2000"},
        system_facts={"version": "3.46.0", "source_id": "<b>2024-05-23</b>"},
        data={"key": "tpcc-1", "content_sha256": "ab" * 32},
        checks=[Check(name="3.3.2.1", statement="W_YTD = sum(D_YTD)", violations=0)],
        phases_s={"ramp_up": float(RAMP_UP_SECONDS), "measured": float(SECONDS)},
        telemetry=["cpu", "memory", "disks", "pressure"],
    )


def write_raw_files(directory: Path, trial: PlannedTrial, *, seconds: int = SECONDS) -> Window:
    """One drive's `result.json`, `latency.hlog`, `timeline.parquet` and telemetry; returns its window."""
    random = np.random.default_rng(trial.seed)
    window = Window(
        start_ns=BOOT_NS + trial.position * TRIAL_NS, end_ns=BOOT_NS + trial.position * TRIAL_NS + seconds * 10**9
    )
    noise = 0.03 * random.standard_normal() + 0.01 * np.random.default_rng(trial.round).standard_normal()
    rate = RATE_PER_S[trial.cell, trial.arm] * np.exp(noise)
    wander = np.cumsum(0.02 * random.standard_normal(seconds + RAMP_UP_SECONDS))
    per_second = random.poisson(rate * np.exp(wander - wander.mean()))
    per_second[:RAMP_UP_SECONDS] = per_second[:RAMP_UP_SECONDS] * np.linspace(0.3, 0.9, RAMP_UP_SECONDS)
    counts = {kind: random.binomial(per_second, share) for kind, share in MIX.items()}
    rolled_back = random.binomial(counts["new_order"], 0.01)
    starts = window.start_ns + (np.arange(seconds + RAMP_UP_SECONDS) - RAMP_UP_SECONDS) * 10**9
    timeline = {"time_ns": starts.astype(np.int64), "measured": starts >= window.start_ns}
    for kind, count in counts.items():
        back = rolled_back if kind == "new_order" else np.zeros_like(count)
        timeline |= {
            f"{kind}_committed": (count - back).astype(np.uint64),
            f"{kind}_rolled_back": back.astype(np.uint64),
            f"{kind}_failed": np.zeros(len(count), np.uint64),
            f"{kind}_retried": random.binomial(count, 0.02).astype(np.uint64),
        }
    frame = pl.DataFrame(timeline)
    frame.write_parquet(directory / "timeline.parquet")
    _write_result(directory, frame.filter("measured"), window)
    measured = {kind: count[RAMP_UP_SECONDS:] for kind, count in counts.items()}
    mean_ns = 1e9 * USERS[trial.cell] / rate  # a closed loop: users / rate
    _write_latencies(directory, random, mean_ns=mean_ns, counts=measured, window=window)
    _write_telemetry(directory, random, starts, busy=rate / 450)
    return window


def _write_result(directory: Path, measured: pl.DataFrame, window: Window) -> None:
    outcomes = ("committed", "rolled_back", "failed", "retried")
    transactions = {kind: {o: int(measured[f"{kind}_{o}"].sum()) for o in outcomes} for kind in MIX}
    result = {
        "window": window.model_dump(),
        "transactions": transactions,
        "errors": [{"transaction": "payment", "code": "SQLITE_BUSY", "kind": "busy", "message": "locked", "count": 3}],
        "drawn": faithful(_decks(transactions), warehouses=1),
        "effective": {},
        "client": {},
    }
    (directory / "result.json").write_text(json.dumps(result), encoding="utf-8")


def _decks(transactions: dict[str, dict[str, int]]) -> int:
    """As many as hold every transaction that ended: the drive drew some before its window."""
    ended = {kind: sum(outcomes.values()) for kind, outcomes in transactions.items()}
    return max(math.ceil(count / (DECK * MIX[kind])) for kind, count in ended.items())


def _write_latencies(directory: Path, random: Any, *, mean_ns: float, counts: dict[str, Any], window: Window) -> None:
    lines = ["#[Histogram log format version 1.3]\n"]
    for second in range(len(counts["payment"])):
        for kind, count in counts.items():
            histogram = HdrHistogram(1, 3_600_000_000_000, 3)
            median_ns = 0.8 * mean_ns * LATENCY_FACTOR[kind]
            for value in random.lognormal(np.log(median_ns), 0.6, count[second]):
                histogram.record_value(int(value))
            start = window.start_ns / 1e9 + second
            lines.append(f"Tag={kind},{start:.3f},1.000,{histogram.get_max_value()},{histogram.encode().decode()}\n")
    (directory / "latency.hlog").write_text("".join(lines), encoding="utf-8")


def _write_telemetry(directory: Path, random: Any, starts: Any, *, busy: float) -> None:
    n = len(starts)
    time = {"time_ns": starts.astype(np.int64) + 3_000_000}

    def grows(per_s: float) -> Any:
        return np.cumsum(random.poisson(per_s, n)).astype(np.uint64)

    def write(source: str, columns: dict[str, Any]) -> None:
        pl.DataFrame(time | columns).write_parquet(directory / f"telemetry-{source}.parquet")

    ticks = {"user": 240 * busy, "system": 90 * busy, "iowait": 60.0, "steal": 1.0}
    ticks["idle"] = 400 - sum(ticks.values())
    write("cpu", {name: grows(per_s) for name, per_s in ticks.items()})
    available = (5 << 30) - (np.arange(n) << 20) + random.integers(0, 1 << 22, n)
    write("memory", {"MemTotal": np.full(n, 8 << 30, np.uint64), "MemAvailable": available.astype(np.uint64)})
    write("disks", {f"vda.{name}": grows(per_s) for name, per_s in (("sectors_read", 900), ("sectors_written", 9000))})
    write("pressure", {f"{name}.some.total_us": grows(per_s) for name, per_s in (("io", 90_000), ("cpu", 30_000))})


def analysed(record: Record) -> Analysis:
    """What an analysis of the record says, from SciPy alone: the report's tests stand apart from `analyse`."""
    plan = record.plan
    roles: dict[str, Role] = {
        "throughput_tpm": "primary",
        "throughput_nopm": "secondary",
        "latency_ns_p99": "guardrail",
    }
    cells = _adjusted(tuple(_cell(record, cell, roles=roles) for cell in plan.cells))
    voided = Doubt(code="voided", message="1 of 12 blocks was voided.", advice="Read why in its log.", cell=LOST[0])
    few = Doubt(
        code="few_exceedances",
        message="a trial has only 80 observations beyond this percentile: expected at least 100",
        advice="measure longer, or judge a percentile closer to the median",
        metric="latency_ns_p99",
    )
    return Analysis(
        study=plan.study,
        question=plan.question,
        contrast=plan.arm,
        levels=ARMS,
        finished=record.finished,
        paired=True,
        margin=plan.design.margin,
        confidence=0.95,
        metrics={name: plan.metrics.definitions[name] for name in roles},
        roles=roles,
        cells=cells,
        counts=Counts(planned=24, finished=26, valid=25, invalid=1, used=24, blocks_voided=1, blocks_replaced=1),
        steadiness=_steadiness(record),
        doubts=(voided, few),
    )


def _steadiness(record: Record) -> tuple[Steadiness, ...]:
    """Three trials of each arm of one cell, one of them with a verdict of its own."""
    trials = [trial for trial in record.trials if trial.trial.cell == "low"][:6]
    verdicts: list[SteadinessVerdict] = ["steady", "drifting", "unsteady", "steady", "steady", "steady"]
    return tuple(
        Steadiness(
            trial=trial.trial.id,
            cell="low",
            arm=trial.trial.arm,
            verdict=verdict,
            drift=0.01 * index,
            drift_p=0.5,
            levels=1,
            settled_from_s=30.0 if verdict == "drifting" else 0.0,
            autocorrelation=0.3,
            effective_n=12.0,
        )
        for index, (trial, verdict) in enumerate(zip(trials, verdicts, strict=True))
    )


def _adjusted(cells: tuple[CellResult, ...]) -> tuple[CellResult, ...]:
    """Holm's adjustment over the primary comparisons, by statsmodels."""
    primary = [cell.comparisons["throughput_tpm"][0] for cell in cells]
    holm = multipletests([comparison.p for comparison in primary], method="holm")[1]
    return tuple(
        cell.model_copy(
            update={
                "comparisons": cell.comparisons
                | {"throughput_tpm": (comparison.model_copy(update={"p_adjusted": float(p)}),)}
            }
        )
        for cell, comparison, p in zip(cells, primary, holm, strict=True)
    )


def _cell(record: Record, cell: Cell, *, roles: dict[str, Role]) -> CellResult:
    used = [
        trial
        for trial in record.trials
        if trial.trial.cell == cell.name and (trial.trial.cell, trial.trial.block) != LOST
    ]
    summaries = {
        metric: tuple(
            _summary(metric, arm, sorted((t for t in used if t.trial.arm == arm), key=lambda t: t.trial.position))
            for arm in ARMS
        )
        for metric in roles
    }
    arms = tuple(ArmMean(arm=arm, mean=0.0, n=6, inside=True) for arm in ARMS)
    met = ExpectationResult(cell=cell.name, metric="failed_share", text="<= 1 %", mean=0.0, n=6, met=True, by_arm=arms)
    return CellResult(
        cell=cell.name,
        levels=cell.levels,
        summaries=summaries,
        comparisons={
            metric: (compared(*pair, metric=metric, cell=cell.name, role=roles[metric]),)
            for metric, pair in summaries.items()
        },
        expectations=(met,) if cell.name == "high" else (),
    )


def _summary(metric: str, arm: str, trials: list[TrialRecord]) -> Summary:
    values = [trial.scalars[metric] for trial in trials]
    low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
    return Summary(
        arm=arm,
        n=len(values),
        mean=float(np.mean(values)),
        sd=float(np.std(values, ddof=1)),
        low=low,
        high=high,
        median=float(np.median(values)),
        confidence=0.95,
        values=tuple(values),
        blocks=tuple(trial.trial.block for trial in trials),
    )


@pytest.fixture(scope="session")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Read it; change a copy."""

    def make(directory: Path) -> None:
        (directory / "runs").mkdir()
        build(directory / "runs" / f"{STUDY}-20261120T2200Z")

    return read(made_once(tmp_path_factory, "made-record", make))


@pytest.fixture(scope="session")
def analysis(record: Record) -> Analysis:
    return analysed(record)
