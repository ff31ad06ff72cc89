"""What a server's own counters can measure: each metric's definition beside its computation.

The columns are the sampler's (`crates/sample/src/server/counters.json`): one name for every server that has such a
counter, and null where a server has none. A metric without its column is None, never zero.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from fairtrial.metrics.telemetry.definition import Family, answer_s, count, mean
from fairtrial.metrics.telemetry.window import END, TIME, Series, WindowSamples

SOURCE: Final = "server"
MILLISECONDS_PER_SECOND: Final = 1000.0
SECONDS_PER_MINUTE: Final = 60.0
# HammerDB's TPM: what the server ended, whoever asked it to. A server has one pair or the other.
ENDED: Final = ("com_commit", "com_rollback", "transactions_committed", "transactions_rolled_back")
OF_POSTGRES: Final = "transactions_committed"  # which no other server has
OWN: Final = "of PostgreSQL without the sampler's own"
EXACT: Final = (
    TIME,
    END,
    "missed_samples",
    "connections_made",
    "lock_waits_missed",
    "uptime_s",
    "lsn_current",
    "lsn_flushed",
)
CHECKPOINT_SHARE: Final = "checkpoint_age_bytes / checkpoint_age_max_bytes"


def _checkpoint_age(samples: WindowSamples) -> Series | None:
    """The server's own figure, or the distance between its log's two positions."""
    age = samples.gauge("checkpoint_age_bytes")
    if age is not None:
        return age
    end, checkpoint = samples.gauge("lsn_current"), samples.gauge("lsn_checkpoint")
    return None if end is None or checkpoint is None else end - checkpoint


def _checkpoint_share(samples: WindowSamples) -> Series | None:
    age, most = _checkpoint_age(samples), samples.gauge("checkpoint_age_max_bytes")
    return None if age is None or most is None or not most.all() else age / most


def _checkpoint_full_share(samples: WindowSamples) -> float | None:
    """Share of time at the largest age: from there InnoDB flushes furiously, and who writes waits for it.

    MariaDB from 10.5 on: a commit that leaves a greater age than `max_checkpoint_age` asks for all to be flushed now
    (`log_close`, `buf_flush_ahead`); from 7/8 of it on, pages were flushed ahead within `innodb_io_capacity` only. What
    MySQL says as the largest age is its own mark for the same, `log_max_modified_age_sync`. In servers before, the mark
    is 15/16 of `max_checkpoint_age`: where they say the latter (MariaDB 10.1), this is a lower bound.
    """
    share = _checkpoint_share(samples)
    return None if share is None else samples.mean((share >= 1).astype(np.float64))


def _dirty_share(samples: WindowSamples) -> float | None:
    dirty, total = samples.gauge("buffer_pool_pages_dirty"), samples.gauge("buffer_pool_pages_total")
    return None if dirty is None or total is None or not total.all() else samples.mean(dirty / total)


def _miss_share(samples: WindowSamples) -> float | None:
    missed, requests = samples.grown("buffer_pool_reads"), samples.grown("buffer_pool_read_requests")
    return missed / requests if missed is not None and requests else None


def _ended(samples: WindowSamples) -> float | None:
    """PostgreSQL counts the sampler's statements, too: one for each sample, and one where lock waits are sampled."""
    ended = samples.grown(*ENDED)
    if ended is None or not _is_postgres(samples):
        return ended
    return max(ended - samples.taken * (2 if samples.has("lock_waits_missed") else 1), 0.0)


def _ended_per_minute(samples: WindowSamples) -> float | None:
    ended = _ended(samples)
    return None if ended is None else ended / samples.length_s * SECONDS_PER_MINUTE


def _log_written(samples: WindowSamples) -> float | None:
    """PostgreSQL's processes tell late what they wrote, and the log's end is known at once."""
    return samples.grown("lsn_current" if _is_postgres(samples) else "log_written_bytes")


def _is_postgres(samples: WindowSamples) -> bool:
    return samples.has(OF_POSTGRES) and not samples.is_of_before


def _row_lock_time_s(samples: WindowSamples) -> float | None:
    waited_ms = samples.grown("row_lock_time_ms")
    return None if waited_ms is None else waited_ms / MILLISECONDS_PER_SECOND


def told_late(frame: pl.DataFrame) -> list[str]:
    """Columns that PostgreSQL's processes report late, at a transaction's end at most once a second; none of others."""
    if OF_POSTGRES not in frame.columns or not frame[OF_POSTGRES].count():
        return []
    return [name for name in frame.columns if name not in EXACT]


_UNDO = Family(SOURCE, "undo logs", "count")
_BYTES = Family(SOURCE, "B", "count")
_SHARE = Family(SOURCE, "share", "count")
_FULL = Family(SOURCE, "share of time", "wall_clock")
_PAGES = Family(SOURCE, "pages", "count")
_WAITS = Family(SOURCE, "waits", "count")
_TIME = Family(SOURCE, "s", "wall_clock")

METRICS: Final = (
    _UNDO.metric(
        "history_list_length_max",
        lambda samples: samples.largest(samples.gauge("history_list_length")),
        of="history_list_length, largest in the window",
        label="longest history list",
    ),
    _UNDO.metric(
        "history_list_length_mean",
        mean("history_list_length"),
        of="history_list_length, mean over the window",
        label="history list",
    ),
    _UNDO.metric(
        "history_list_length_end",
        lambda samples: samples.at_end(samples.gauge("history_list_length")),
        of="history_list_length at the end of the window: what purge still has to do",
        label="purge lag at the end",
    ),
    _SHARE.metric(
        "checkpoint_age_share_max",
        lambda samples: samples.largest(_checkpoint_share(samples)),
        of=f"{CHECKPOINT_SHARE}, largest in the window",
        label="largest checkpoint age",
    ),
    _SHARE.metric(
        "checkpoint_age_share_mean",
        lambda samples: samples.mean(_checkpoint_share(samples)),
        of=f"{CHECKPOINT_SHARE}, mean over the window",
        label="checkpoint age",
    ),
    _FULL.metric(
        "checkpoint_age_full_share",
        _checkpoint_full_share,
        of="checkpoint_age_bytes ≥ checkpoint_age_max_bytes: InnoDB flushes furiously, and who writes waits",
        label="time at the largest checkpoint age",
    ),
    _BYTES.metric(
        "checkpoint_age_bytes_max",
        lambda samples: samples.largest(_checkpoint_age(samples)),
        of="checkpoint_age_bytes, else lsn_current − lsn_checkpoint; largest in the window",
        label="largest checkpoint age",
    ),
    _SHARE.metric(
        "dirty_pages_share",
        _dirty_share,
        of="buffer_pool_pages_dirty / buffer_pool_pages_total, mean over the window",
        label="dirty pages of the buffer pool",
    ),
    _SHARE.metric(
        "buffer_pool_miss_share",
        _miss_share,
        of="buffer_pool_reads / buffer_pool_read_requests",
        label="buffer pool misses",
    ),
    _PAGES.metric("buffer_pool_reads", count("buffer_pool_reads"), of="buffer_pool_reads", label="buffer pool reads"),
    _PAGES.metric(
        "buffer_pool_pages_flushed",
        count("buffer_pool_pages_flushed"),
        of="buffer_pool_pages_flushed",
        label="pages flushed",
    ),
    _BYTES.metric(
        "server_data_read_bytes",
        count("data_read_bytes"),
        of="data_read_bytes: what the server asked for, wherever it came from",
        label="server's data reads",
    ),
    _BYTES.metric(
        "server_data_written_bytes",
        count("data_written_bytes"),
        of="data_written_bytes: what InnoDB wrote, whatever device it reached; of MySQL and MariaDB up to 10.4 with "
        "the redo log",
        label="server's data writes",
    ),
    _BYTES.metric(
        "log_written_bytes",
        _log_written,
        of="log_written_bytes; of PostgreSQL lsn_current",
        label="written to the log",
    ),
    _WAITS.metric("log_waits", count("log_waits"), of="log_waits", label="waits for the log's buffer"),
    _WAITS.metric("row_lock_waits", count("row_lock_waits"), of="row_lock_waits", label="row-lock waits"),
    _TIME.metric(
        "row_lock_time_s", _row_lock_time_s, of="row_lock_time_ms / 1000, of all users", label="time in row-lock waits"
    ),
    Family(SOURCE, "deadlocks", "count").metric(
        "server_deadlocks", count("deadlocks"), of="deadlocks, as the server counts them", label="server's deadlocks"
    ),
    Family(SOURCE, "transactions", "count").metric(
        "server_transactions",
        _ended,
        of=f"{' + '.join(ENDED)}, {OWN}",
        label="transactions the server ended",
        better="higher",
    ),
    Family(SOURCE, "transactions/min", "wall_clock").metric(
        "server_tpm",
        _ended_per_minute,
        of=f"{' + '.join(ENDED)}, {OWN}, per minute: HammerDB's TPM",
        label="commits and rollbacks",
        better="higher",
    ),
    Family(SOURCE, "statements", "count").metric(
        "server_statements",
        count("questions"),
        of="questions, the sampler's own among them",
        label="statements the server got",
    ),
    Family(SOURCE, "threads", "count").metric(
        "threads_running_mean",
        mean("threads_running"),
        of="threads_running, mean over the window; the sampler's connection is one of them",
        label="server's running threads",
    ),
    Family(SOURCE, "samples", "count").metric(
        "server_samples_missed",
        count("missed_samples"),
        of="missed_samples: ticks at which the server did not answer",
        label="missed samples of the server",
    ),
    Family(SOURCE, "samples", "count").metric(
        "lock_wait_samples_missed",
        count("lock_waits_missed"),
        of="lock_waits_missed: ticks at which the server gave its counters and did not say who waits for whose lock",
        label="missed samples of lock waits",
    ),
    _TIME.metric(
        "server_answer_s_mean",
        answer_s,
        of="answer_ns / 10⁹, mean over the window",
        label="server's answer to a sample",
    ),
)
