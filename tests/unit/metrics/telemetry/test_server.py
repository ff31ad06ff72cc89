"""Metrics of a server's own counters against frames small enough to compute by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
import pytest

from fairtrial.catalogue import catalogue
from fairtrial.metrics import per_transaction, telemetry
from fairtrial.metrics.telemetry import counters
from fairtrial.record.models import Window

SECOND = 1_000_000_000
START = 5_000_000 * SECOND
WINDOW = Window(start_ns=START + SECOND, end_ns=START + 3 * SECOND)


def computed(directory: Path, columns: Mapping[str, Sequence[int | None]]) -> dict[str, float]:
    """Metrics of samples a second apart, the window from the second to the fourth."""
    times = pl.Series("time_ns", [START + second * SECOND for second in range(5)], dtype=pl.Int64)
    counters = [pl.Series(name, values, dtype=pl.UInt64) for name, values in columns.items()]
    pl.DataFrame([times, *counters]).write_parquet(directory / "telemetry-server.parquet")
    return telemetry.compute(directory, window=WINDOW, ticks_per_s=None)


def test_a_history_list_has_a_peak_a_mean_and_what_is_left_at_the_end(tmp_path: Path) -> None:
    values = computed(tmp_path, {"history_list_length": [9000, 10, 40, 20, 9000]})
    assert values["history_list_length_max"] == 40, "what lies outside the window does not count"
    assert values["history_list_length_mean"] == pytest.approx((10 + 40) / 2 / 2 + (40 + 20) / 2 / 2)
    assert values["history_list_length_end"] == 20


def test_a_checkpoint_s_age_is_a_share_of_what_the_log_allows(tmp_path: Path) -> None:
    columns = {"checkpoint_age_bytes": [999, 100, 300, 200, 999], "checkpoint_age_max_bytes": [400] * 5}
    values = computed(tmp_path, columns)
    assert values["checkpoint_age_share_max"] == pytest.approx(0.75)
    assert values["checkpoint_age_share_mean"] == pytest.approx(((100 + 300) / 2 + (300 + 200) / 2) / 2 / 400)
    assert values["checkpoint_age_bytes_max"] == 300


def test_the_time_at_the_largest_age_tells_apart_what_the_largest_of_all_samples_does_not(tmp_path: Path) -> None:
    """Every arm that is short of log meets its limit once; how long it stays there is what differs."""
    most = {"checkpoint_age_max_bytes": [400] * 5}
    once = computed(tmp_path, {"checkpoint_age_bytes": [400, 399, 401, 375, 400], **most})
    ever = computed(tmp_path, {"checkpoint_age_bytes": [0, 400, 401, 400, 0], **most})
    assert once["checkpoint_age_share_max"] == ever["checkpoint_age_share_max"] == 401 / 400
    assert once["checkpoint_age_full_share"] == pytest.approx(0.5), "between samples it changes evenly, as gauges do"
    assert ever["checkpoint_age_full_share"] == 1
    nearly = computed(tmp_path, {"checkpoint_age_bytes": [400, 399, 399, 399, 400], **most})
    assert nearly["checkpoint_age_full_share"] == 0


def test_a_sample_that_is_missing_does_not_shorten_a_stall(tmp_path: Path) -> None:
    """A server that stalls answers late: time counts, and not how often it answered."""
    times = [START + SECOND * tenth // 10 for tenth in (0, 10, 11, 12, 13, 14, 15, 25, 30, 40)]
    ages = [0, 0, 0, 0, 0, 0, 400, 400, 400, 0]
    columns = {"time_ns": times, "checkpoint_age_bytes": ages, "checkpoint_age_max_bytes": [400] * len(times)}
    pl.DataFrame(columns).write_parquet(tmp_path / "telemetry-server.parquet")
    values = telemetry.compute(tmp_path, window=WINDOW, ticks_per_s=None)
    assert values["checkpoint_age_full_share"] == pytest.approx((1.5 + 0.05) / 2)


@pytest.mark.parametrize("missing", ["checkpoint_age_bytes", "checkpoint_age_max_bytes"])
def test_a_server_that_does_not_say_its_age_or_its_largest_has_no_time_there(tmp_path: Path, missing: str) -> None:
    columns = {"checkpoint_age_bytes": [400] * 5, "checkpoint_age_max_bytes": [400] * 5}
    del columns[missing]
    assert "checkpoint_age_full_share" not in computed(tmp_path, columns)


def test_where_a_server_does_not_say_the_age_it_is_the_distance_of_two_positions(tmp_path: Path) -> None:
    columns = {
        "checkpoint_age_bytes": [None] * 5,
        "lsn_current": [2**40, 2**40 + 10, 2**40 + 90, 2**40 + 100, 2**40 + 200],
        "lsn_checkpoint": [2**40, 2**40, 2**40, 2**40 + 95, 2**40 + 95],
    }
    values = computed(tmp_path, columns)
    assert values["checkpoint_age_bytes_max"] == 90
    assert "checkpoint_age_share_max" not in values, "of what maximum, the server does not say"


def test_shares_of_the_buffer_pool(tmp_path: Path) -> None:
    columns = {
        "buffer_pool_pages_dirty": [0, 10, 10, 10, 0],
        "buffer_pool_pages_total": [100] * 5,
        "buffer_pool_reads": [0, 1000, 1010, 1030, 5000],
        "buffer_pool_read_requests": [0, 7000, 8000, 9000, 90_000],
    }
    values = computed(tmp_path, columns)
    assert values["dirty_pages_share"] == pytest.approx(0.1)
    assert values["buffer_pool_miss_share"] == pytest.approx(30 / 2000)
    assert values["buffer_pool_reads"] == 30


def test_a_pool_nobody_asked_has_no_share_of_misses(tmp_path: Path) -> None:
    columns = {"buffer_pool_reads": [1] * 5, "buffer_pool_read_requests": [7] * 5}
    assert "buffer_pool_miss_share" not in computed(tmp_path, columns)


def test_waits_deadlocks_and_gaps_are_counted_inside_the_window(tmp_path: Path) -> None:
    columns = {
        "row_lock_waits": [0, 100, 104, 110, 999],
        "row_lock_time_ms": [0, 5000, 5500, 6500, 9999],
        "deadlocks": [3, 3, 4, 4, 9],
        "questions": [0, 10, 15, 30, 99],
        "missed_samples": [0, 2, 2, 3, 3],
        "lock_waits_missed": [0, 1, 1, 3, 4],
        "answer_ns": [10**6] * 5,
    }
    values = computed(tmp_path, columns)
    assert values["row_lock_waits"] == 10
    assert values["row_lock_time_s"] == pytest.approx(1.5)
    assert values["server_deadlocks"] == 1
    assert values["server_statements"] == 20
    assert values["server_samples_missed"] == 1
    assert values["lock_wait_samples_missed"] == 2
    assert values["server_answer_s_mean"] == pytest.approx(1e-3)
    counted = per_transaction.joined(values, {"transactions": 40})
    assert counted["row_lock_waits_per_transaction"] == pytest.approx(10 / 40)


def test_a_counter_that_the_server_does_not_have_gives_no_metric_and_never_zero(tmp_path: Path) -> None:
    nothing = dict.fromkeys(("deadlocks", "history_list_length", "row_lock_waits"), [None] * 5)
    assert computed(tmp_path, {**nothing, "questions": [1, 2, 3, 4, 5]}) == {"server_statements": 2}


def test_counters_that_began_anew_inside_the_window_give_no_metric_and_never_zero(tmp_path: Path) -> None:
    restarted = {
        "com_commit": [900, 1000, 40, 80, 120],
        "com_rollback": [0, 0, 0, 0, 0],
        "log_waits": [9, 9, 9, 0, 0],  # from 9 to 0 and on to more than 9
        "lsn_current": [10, 20, 30, 40, 50],  # goes on where it was
        "history_list_length": [5, 4, 3, 4, 5],  # a level may fall
    }
    values = computed(tmp_path, restarted)
    assert not {"server_transactions", "server_tpm", "log_waits"} & set(values)
    assert values["history_list_length_max"] == 4
    sources = ["server"]
    counters.write(tmp_path, window=WINDOW, sources=sources)
    stored = json.loads((tmp_path / counters.FILE).read_text(encoding="utf-8"))
    assert set(stored["grown"]) == {"server:com_rollback", "server:lsn_current"}
    assert computed(tmp_path, {"com_commit": [900, 1, 2, 3, 0], "com_rollback": [0] * 5})["server_transactions"] == 2


def test_a_study_can_name_every_one_of_them() -> None:
    known = catalogue()
    assert {"history_list_length_max", "checkpoint_age_share_max", "dirty_pages_share"} <= set(known.telemetry_metrics)
    tpcc = known.workloads["tpcc"]
    assert "row_lock_waits_per_transaction" in tpcc.metrics(tpcc.parameters.validate_python(tpcc.example))


def test_what_the_server_moved_is_counted_by_itself_and_per_transaction(tmp_path: Path) -> None:
    """The block layer does not see what DAX moves; the server does."""
    columns = {"data_read_bytes": [0, 4096, 8192, 20480, 99999], "data_written_bytes": [7, 7, 1031, 2055, 9999]}
    values = computed(tmp_path, columns)
    assert values["server_data_read_bytes"] == 20480 - 4096
    assert values["server_data_written_bytes"] == 2048
    found = per_transaction.joined(values, {"transactions": 4})
    assert found["server_data_written_bytes_per_transaction"] == 512


@pytest.mark.parametrize(
    ("columns", "ended"),
    [
        ({"com_commit": [0, 100, 150, 180, 900], "com_rollback": [0, 10, 12, 14, 99]}, 84),
        ({"transactions_committed": [0, 100, 150, 182, 900], "transactions_rolled_back": [0, 10, 12, 14, 99]}, 84),
        ({"transactions_committed": [4, 5, 6, 7, 8], "transactions_rolled_back": [0] * 5}, 0),
        ({"transactions_committed": [4, 6, 8, 10, 12], "lock_waits_missed": [0] * 5}, 0),
        ({"transactions_committed": [4, 6, 8, 10, 12], "lock_waits_missed": [None] * 5}, 2),
    ],
    ids=["com", "with the sampler's", "idle", "idle, lock waits sampled", "not sampled"],
)
def test_commits_and_rollbacks_without_the_sampler_s_own_are_hammerdb_s_tpm(
    tmp_path: Path, columns: Mapping[str, Sequence[int | None]], ended: int
) -> None:
    """PostgreSQL counts each statement of the sampler: one for every sample, and one more of those of lock waits."""
    values = computed(tmp_path, columns)
    assert values["server_transactions"] == ended
    assert values["server_tpm"] == pytest.approx(ended / 2 * 60)
    assert telemetry.DEFINITIONS["server_tpm"].better == "higher"
