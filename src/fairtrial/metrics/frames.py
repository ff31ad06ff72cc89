"""A whole record as Polars frames: trials, timelines, telemetry, latency. What notebooks and figures read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from fairtrial.metrics import telemetry as telemetry_files
from fairtrial.metrics.latency import Distribution, merged_latency
from fairtrial.metrics.series import timeline
from fairtrial.record import Record
from fairtrial.record.models import LookTaken, PlannedTrial, TrialRecord, Window

IDENTITY: Final = {
    "id": pl.String,
    "cell": pl.String,
    "arm": pl.String,
    "block": pl.Int64,
    "round": pl.Int64,
    "position": pl.Int64,
    "seed": pl.UInt64,
    "valid": pl.Boolean,
    "used": pl.Boolean,
    "invalid_reason": pl.String,
    "started": pl.String,
    "host": pl.String,
    "layout": pl.String,
}

# Columns that say how much there is now, not how often something happened; proc_stat(5), iostats.rst, mm/vmstat.c.
LEVELS: Final = {
    "cpu": re.compile(r"running|blocked"),
    "disks": re.compile(r".*\.in_flight"),
    "vmstat": re.compile(
        r"workingset_nodes|nr_(?!(dirtied|written|throttled_written|vmscan_.*|foll_pin_.*|tlb_.*)$).*"
    ),
    "memory": re.compile(r".*"),
    "server": re.compile(
        r"threads_.*|autovacuum_workers|history_list_length|checkpoint_age_.*|buffer_pool_pages_(dirty|data|free|total)"
        r"|row_lock_current_waits|waiting_.*|answer_ns"
    ),
    "governor": re.compile(r"threads|batch_size|history_list_length|checkpoint_age_.*|answer_ns"),
    **dict.fromkeys(("lock_waits", "prometheus", "command"), re.compile(r".*")),  # rows, not columns, say what counts
    "process": re.compile(r"threads|processes|resident_bytes|swapped_bytes"),
}


def used_trials(record: Record) -> tuple[TrialRecord, ...]:
    """Trials that estimates use: valid ones of blocks that lost no trial, up to the round that stopped their cell."""
    lost = {(trial.trial.cell, trial.trial.block) for trial in record.trials if not trial.valid} | record.voided_blocks
    ends = last_rounds(record.events)
    return tuple(
        trial
        for trial in record.trials
        if (trial.trial.cell, trial.trial.block) not in lost and in_time(trial.trial, ends)
    )


def last_rounds(events: Iterable[object]) -> dict[str, int]:
    """The round that stopped each cell which a look among the events of a journal stopped."""
    looks = [event for event in events if isinstance(event, LookTaken)]
    return {cell.cell: look.round for look in looks for cell in look.cells if cell.decision == "stop"}


def in_time(trial: PlannedTrial, ends: Mapping[str, int]) -> bool:
    """Whether a trial is of its cell's last round or one before."""
    return trial.round <= ends.get(trial.cell, trial.round)


def factor_column(factor: str) -> str:
    """A factor's column: its name, or `factor_<name>` where that is a column of every frame already."""
    return f"factor_{factor}" if factor in IDENTITY else factor


def metric_columns(record: Record) -> dict[str, str]:
    """Each metric's column: its name, or `metric_<name>` where that is a factor's or a column of every frame already.

    Studies with such names are refused (`study.checking`); records of before are read all the same.
    """
    names = dict.fromkeys(name for trial in record.trials for name in trial.scalars)
    taken = {*IDENTITY, *(factor_column(factor) for factor in record.plan.factors)}
    columns = {name: name for name in names if name not in taken}
    for name in names:
        column = name
        while name not in columns and (column in taken or column in columns.values()):
            column = f"metric_{column}"
        columns.setdefault(name, column)
    return {name: columns[name] for name in names}


def trials(record: Record) -> pl.DataFrame:
    """One row per committed trial, in the order they were run.

    Returns:
        `IDENTITY`'s columns, one column per factor with the level's name, one column per scalar (null where a trial
        does not have it).
    """
    used = {trial.trial.id for trial in used_trials(record)}
    metrics = metric_columns(record)
    factors = {factor: factor_column(factor) for factor in record.plan.factors}
    schema = IDENTITY | dict.fromkeys(factors.values(), pl.String) | dict.fromkeys(metrics.values(), pl.Float64)
    rows = [
        {
            **trial.trial.model_dump(),
            "valid": trial.valid,
            "used": trial.trial.id in used,
            "invalid_reason": trial.invalid_reason,
            "started": trial.started,
            "host": trial.host,
            "layout": trial.layout,
            **{factors[factor]: level for factor, level in trial.levels.items()},
            **{metrics[name]: value for name, value in trial.scalars.items()},
        }
        for trial in record.trials
    ]
    return pl.DataFrame(rows, schema=schema)


def timelines(record: Record, *, measured_only: bool = True) -> pl.DataFrame:
    """Every trial's timeline, one below the other.

    Returns:
        `trial`, `cell`, `arm`, then the columns of `timeline.rates`; without rows if no trial has a timeline.
    """

    def rates(directory: Path, window: Window) -> pl.DataFrame:
        return timeline.rates(directory, window=window, measured_only=measured_only)

    return _stacked(record, rates)


def telemetry(record: Record, source: str) -> pl.DataFrame:
    """Every trial's samples of one source, ramp-up included, one below the other.

    Returns:
        `trial`, `cell`, `arm`, `second` (when it was read, since the measured window began), each raw column, and for
        each counter `<column>_per_s` over the time since the sample before (null in a trial's first row).
    """

    def rates(directory: Path, window: Window) -> pl.DataFrame:
        return telemetry_rates(telemetry_files.read(directory, source), source=source, window=window)

    return _stacked(record, rates)


def telemetry_rates(raw: pl.DataFrame, *, source: str, window: Window) -> pl.DataFrame:
    """One trial's samples as `telemetry` gives them, without the trial."""
    ordered = raw.sort("time_ns")
    columns = [name for name in ordered.columns if name != "time_ns"]
    elapsed_s = pl.col("time_ns").diff() / timeline.NANOSECONDS_PER_SECOND
    rates = {
        f"{name}_per_s": pl.col(name).cast(pl.Int64).diff() / elapsed_s for name in columns if counts(source, name)
    }
    second = (pl.col("time_ns") - window.start_ns) / timeline.NANOSECONDS_PER_SECOND
    return ordered.select(second.alias("second"), *columns, **rates)


def counts(source: str, column: str) -> bool:
    """Whether a column is a counter, whose rate means something, or a level."""
    level = LEVELS.get(source.partition("-")[0])
    return level is None or not level.fullmatch(column)


def distributions(record: Record) -> dict[str, dict[str, Distribution]]:
    """Latency distributions by trial id, then transaction type. Reads every trial's: call it once."""
    return {trial.trial.id: merged_latency.read(record.trial_directory(trial.trial.id)) for trial in record.trials}


def distribution_frame(distribution: Distribution) -> pl.DataFrame:
    """A distribution as rows: `lowest_ns`, `highest_ns`, `count`, `share_up_to` (of observations not above)."""
    frame = pl.DataFrame(
        {"lowest_ns": distribution.lowest_ns, "highest_ns": distribution.highest_ns, "count": distribution.counts}
    )
    return frame.with_columns(share_up_to=pl.col("count").cum_sum() / pl.col("count").sum())


def _stacked(record: Record, frame_of: Callable[[Path, Window], pl.DataFrame]) -> pl.DataFrame:
    """The frames of all trials that measured, each led by the trial's id, cell and arm."""
    frames = [
        frame.select(
            pl.lit(trial.trial.id).alias("trial"),
            pl.lit(trial.trial.cell).alias("cell"),
            pl.lit(trial.trial.arm).alias("arm"),
            pl.all(),
        )
        for trial, frame in _measured(record, frame_of)
        if frame.height
    ]
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()


def _measured(record: Record, frame_of: Callable[[Path, Window], pl.DataFrame]) -> Iterator[tuple[Any, pl.DataFrame]]:
    for trial in record.trials:
        if trial.window is not None:
            yield trial, frame_of(record.trial_directory(trial.trial.id), trial.window)
