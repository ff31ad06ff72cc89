"""pgbench's report and transactions against the files made from them: each changed figure is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.pgbench import Kept, kept

from fairtrial.workloads.pgbench import agreeing
from fairtrial.workloads.pgbench.transactions import FILE


@pytest.fixture
def run(tmp_path: Path) -> Kept:
    return kept("rated", tmp_path)


def changed(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


@pytest.mark.parametrize("with_log", [True, False])
@pytest.mark.parametrize(
    ("said", "change"),
    [
        ("152 committed of all", lambda found: found["transactions"]["pay"].update(committed=152)),
        ("1 failed of all", lambda found: found["transactions"]["pay"].update(failed=1)),
        ("146 skipped of all", lambda found: found["transactions"]["pay"].update(skipped=146)),
        ("66 above the latency limit", lambda found: found.update(late=66)),
        ("mean latency of all is 7.1", lambda found: found["latency_us"].update(sum=151 * 7100)),
        ("deviation of latency of all", lambda found: found["latency_us"].update(squares=1e12)),
        ("mean schedule lag is 2.0", lambda found: found["lag_us"].update(sum=302_000)),
        ("largest schedule lag is 9.0", lambda found: found["lag_us"].update(max=9_000)),
        ("connecting_ms is 1", lambda found: found.update(connecting_ms=1)),
        ("window of ", lambda found: found["window"].update(end_ns=found["window"]["end_ns"] + 5000)),
    ],
)
def test_a_figure_that_pgbench_did_not_print_is_found_with_and_without_its_transactions(
    run: Kept, *, with_log: bool, said: str, change: Callable[[dict[str, Any]], Any]
) -> None:
    trial = run.trial()
    if not with_log:
        (trial / FILE).unlink()
    changed(trial / "result.json", change)
    assert said in "\n".join(agreeing.contradictions(trial, run.parameters))


def test_without_its_transactions_a_trial_agrees_with_the_report(run: Kept) -> None:
    trial = run.trial()
    (trial / FILE).unlink()
    assert agreeing.contradictions(trial, run.parameters) == []


def test_a_transaction_that_was_changed_is_found_in_every_file(run: Kept) -> None:
    trial = run.trial()
    table = pl.read_parquet(trial / FILE)
    table.with_columns(latency_us=pl.col("latency_us") + 1000).write_parquet(trial / FILE)
    found = agreeing.contradictions(trial, run.parameters)
    assert [text.split(":")[0] for text in found] == ["result.json"] * 3 + ["latency.hlog"]


def test_lateness_in_other_classes_is_found(run: Kept) -> None:
    trial = run.trial()
    table = pl.read_parquet(trial / FILE)
    table.with_columns(lag_us=pl.col("lag_us") + 1000).write_parquet(trial / FILE)
    found = agreeing.contradictions(trial, run.parameters)
    assert [text.split(":")[0] for text in found] == ["result.json", "lateness.hlog"]


def test_other_intervals_are_found(run: Kept) -> None:
    trial = run.trial()
    path = trial / "timeline.parquet"
    frame = pl.read_parquet(path)
    frame.with_columns(pay_committed=pl.col("pay_committed").reverse()).write_parquet(path)
    assert agreeing.contradictions(trial, run.parameters) == [
        "timeline.parquet: other intervals than transactions.parquet gives"
    ]


def test_scripts_are_compared_one_by_one_where_one_thread_added_them_up(tmp_path: Path) -> None:
    run = kept("mixed", tmp_path)
    trial = run.trial()
    (trial / FILE).unlink()

    def swapped(found: dict[str, Any]) -> None:
        found["transactions"]["pay"]["retried"] -= 1
        found["transactions"]["dead"]["retried"] += 1

    changed(trial / "result.json", swapped)
    assert agreeing.contradictions(trial, run.parameters) == [], "two threads add without a lock, and may lose some"
    printed = trial / "log" / "load.log"
    printed.write_text(run.text.replace("number of threads: 2", "number of threads: 1"))
    assert agreeing.contradictions(trial, run.parameters) == [
        "result.json: 29 retried of pay, but log/load.log gives 30",
        "result.json: 17 retried of dead, but log/load.log gives 16",
    ]
