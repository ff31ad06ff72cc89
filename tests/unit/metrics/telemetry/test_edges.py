"""What may lie on the other side of the window's edges, and by how much figures may be off for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from fairtrial.metrics import telemetry
from fairtrial.metrics.telemetry import counters
from fairtrial.record.models import Window

Values = npt.NDArray[np.floating[Any]]
SECOND = 10**9
WINDOW = Window(start_ns=100 * SECOND, end_ns=110 * SECOND)


def write(directory: Path, source: str, times_s: Values, **columns: Values | None) -> None:
    """Samples of a source, seconds since the window began; None is a column that the server does not have."""
    times = pl.Series("time_ns", (times_s * SECOND).astype(np.int64) + WINDOW.start_ns)
    values = [
        pl.Series(name, [None] * len(times) if each is None else each.astype(np.uint64), dtype=pl.UInt64)
        for name, each in columns.items()
    ]
    pl.DataFrame([times, *values]).write_parquet(directory / f"telemetry-{source}.parquet")


def compute(directory: Path, window: Window = WINDOW) -> dict[str, float]:
    return telemetry.compute(directory, window=window, ticks_per_s=None)


@pytest.mark.parametrize("at_s", [-0.1, 0.1, 9.9, 10.1], ids=["before", "early", "late", "after"])
def test_a_burst_beside_an_edge_is_within_the_error(tmp_path: Path, at_s: float) -> None:
    times_s = np.arange(-3, 14) + 0.5
    write(tmp_path, "server", times_s, buffer_pool_pages_flushed=100 * (times_s + 3) + 10_000 * (times_s > at_s))
    values, truth = compute(tmp_path), 1000 + 10_000 * (0 < at_s < 10)
    error = values["buffer_pool_pages_flushed_error"]
    assert abs(values["buffer_pool_pages_flushed"] - truth) <= error + 1e-6
    assert error == pytest.approx(5000)


def test_an_edge_between_samples_is_no_error_of_what_grows_evenly(tmp_path: Path) -> None:
    """Else every counter would have one: of a minute with samples a second apart, some 2 %."""
    times_s = np.arange(-3, 14) + 0.5
    write(tmp_path, "server", times_s, questions=100 * (times_s + 3))
    assert compute(tmp_path) == {"server_statements": pytest.approx(1000)}


def test_between_two_samples_nothing_is_known_of_bursts(tmp_path: Path) -> None:
    write(tmp_path, "server", np.array([-5.0, 15.0]), questions=np.array([0.0, 2000.0]))
    values = compute(tmp_path)
    assert values["server_statements"] == pytest.approx(1000)
    assert values["server_statements_error"] == pytest.approx(2 * 0.75 * 2000)


def reported(times_s: Values, *, per_s: float) -> Values:
    """What two sessions that commit evenly have reported: each once a second, 0.9 s and 0.7 s past it."""
    behind = [np.floor(times_s - phase) + phase for phase in (0.9, 0.7)]
    sessions: Values = per_s / 2 * (behind[0] + behind[1] + 10)
    return sessions


def test_what_postgres_tells_late_is_within_the_error(tmp_path: Path) -> None:
    times_s = np.arange(-3, 14, 0.1)
    told = reported(times_s, per_s=1000) + np.arange(len(times_s))  # and the sampler's own
    write(tmp_path, "server", times_s, transactions_committed=told, lsn_current=1000 * (times_s + 5))
    off = []
    for start_s in np.arange(0, 6, 0.23):
        start_ns = WINDOW.start_ns + int(start_s * SECOND)
        values = compute(tmp_path, Window(start_ns=start_ns, end_ns=start_ns + 35 * SECOND // 10))
        off.append(abs(values["server_transactions"] - 3500))
        assert off[-1] <= values["server_transactions_error"] <= 3000
        assert values["server_tpm_error"] == pytest.approx(values["server_transactions_error"] / 3.5 * 60)
        assert "log_written_bytes" in values
        assert "log_written_bytes_error" not in values, "the log's end is known at once"
    assert max(off) > 0.1 * 3500


def test_what_is_told_late_marks_reasons_and_other_servers_tell_at_once(tmp_path: Path) -> None:
    times_s = np.arange(-3, 14) * 1.0
    grown = 100 * (times_s + 3)
    columns = {"deadlocks": grown, "uptime_s": grown, "lsn_current": grown, "missed_samples": grown}
    for committed, late in ((grown, {"server:deadlocks": 100, "server:transactions_committed": 100}), (None, {})):
        (tmp_path / counters.FILE).unlink(missing_ok=True)
        write(tmp_path, "server", times_s, transactions_committed=committed, **columns)
        counters.write(tmp_path, window=WINDOW, sources=["server"])
        stored = json.loads((tmp_path / counters.FILE).read_bytes())
        assert stored["errors"] == pytest.approx(late)
        assert ("server_deadlocks_error" in compute(tmp_path)) == bool(late)


def test_figures_of_an_older_record_are_recomputed_as_they_were(tmp_path: Path) -> None:
    times_s = np.arange(-3, 14) + 0.5
    burst = 10 * (times_s + 3) + 1000 * (times_s > 0)
    write(tmp_path, "server", times_s, transactions_committed=burst, log_written_bytes=burst, lsn_current=2 * burst)
    now = compute(tmp_path)
    assert now["log_written_bytes"] == pytest.approx(2 * now["server_transactions"] + 20)
    assert {"server_transactions_error", "server_tpm_error", "log_written_bytes_error"} <= set(now)
    counters.write(tmp_path, window=WINDOW, sources=["server"])
    assert compute(tmp_path) == now
    stored = json.loads((tmp_path / counters.FILE).read_bytes())
    del stored[telemetry.VERSION], stored["errors"]
    (tmp_path / counters.FILE).write_text(json.dumps(stored), encoding="utf-8")
    older = compute(tmp_path)
    assert older == {
        "server_transactions": pytest.approx(600),
        "server_tpm": pytest.approx(3600),
        "log_written_bytes": pytest.approx(600),
    }
    assert counters.contradictions(tmp_path, window=WINDOW, sources=["server"]) == []
