"""A user's own transactions on real databases, driven as a user does."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.command_line import Desk

from fairtrial import record
from fairtrial.record.events import RunInterrupted

MARIADB = shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin")
POSTGRES = shutil.which("postgres") or next(
    (str(found) for found in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))), None
)
POSTGRES_BASE = Path(POSTGRES or "/none/bin/postgres").resolve().parents[1]
ORDERS = Path(__file__).parents[3] / "studies" / "scripts" / "orders.yaml"

STUDY = """\
study: shop
question: What do more orders cost those who look?
system: {system}
workload: {{script: {{file: shop/orders.yaml, virtual_users: 3, ramp_up: 200ms, transactions: 600, interval: 100ms}}}}
factors:
  orders:
    few: {{}}
    many: {{workload: {{script: {{content: {{transactions: {{order: {{weight: 200}}}}}}}}}}}}
arm: orders
trials: {{blocks: 1, seed: 5}}
metrics: {{primary: throughput_tps, secondary: [look_latency_ns_p95], guardrails: [failed_share]}}
telemetry: {{interval: 100ms}}
"""
SQLITE = "{sqlite: {pragmas: {journal_mode: WAL, synchronous: OFF}}}"


def shop(here: Desk, system: str, *, script: str | None = None) -> Path:
    """A study beside its script."""
    (here.directory / "shop").mkdir()
    text = ORDERS.read_text(encoding="utf-8") if script is None else script
    (here.directory / "shop" / "orders.yaml").write_text(text, encoding="utf-8")
    return here.study(STUDY.format(system=system))


def look_at(found: record.Record) -> None:
    """What must be true of every trial, whatever the system."""
    assert len(found.trials) == 2
    for trial in found.trials:
        assert trial.valid, trial.invalid_reason
        assert trial.scalars["transactions"] == 600
        assert trial.scalars["failed_share"] == 0, "every statement gave the rows the script expects"
        checked = [(check.name, check.violations) for check in trial.checks]
        assert checked == [("sold_for_its_price", 0), ("of_somebody", 0)]
        directory = found.trial_directory(trial.trial.id)
        result: dict[str, Any] = json.loads((directory / "result.json").read_text())
        weights = {"look": 70, "order": 25 if trial.levels["orders"] == "few" else 200, "pay": 5}
        drawn = {name: result["drawn"][name] for name in weights}
        for name, weight in weights.items():
            share = weight / sum(weights.values())
            deviation = (sum(drawn.values()) * share * (1 - share)) ** 0.5
            assert drawn[name] == pytest.approx(sum(drawn.values()) * share, abs=5 * deviation)
        timeline = pl.read_parquet(directory / "timeline.parquet").filter("measured")
        assert timeline["order_committed"].sum() == result["transactions"]["order"]["committed"]
        assert trial.scalars["look_latency_ns_p95"] > 0
        assert len(trial.options["script_sha256"]) == 64
    assert len({trial.data.content_sha256 for trial in found.trials}) == 1
    assert len({trial.options["script_sha256"] for trial in found.trials}) == 2, "the arms differ in a weight"


def test_a_script_is_driven_on_embedded_sqlite(here: Desk) -> None:
    here.fairtrial("run", shop(here, SQLITE))
    look_at(record.read(here.run))
    assert len(list((here.state / "prepared").iterdir())) == 1, "a weight is no part of the data"
    report = (here.run / "report" / "report.txt").read_text(encoding="utf-8")
    assert "Counts of a script's transactions cover whole trials" in report
    assert "order, rolled back" in report
    assert "unfaithful" not in report
    here.fairtrial("verify", here.run)


@pytest.mark.servers
@pytest.mark.skipif(MARIADB is None, reason="needs mariadbd: `make test` installs it when run as root")
def test_a_script_is_driven_on_a_private_mariadb(here: Desk) -> None:
    here.fairtrial("run", shop(here, "{mariadb: {options: {innodb_buffer_pool_size: 64M}}}"))
    look_at(record.read(here.run))
    here.fairtrial("verify", here.run)


@pytest.mark.servers
@pytest.mark.skipif(POSTGRES is None, reason="needs postgres: `make test` installs it when run as root")
def test_a_script_is_driven_on_a_private_postgres(here: Desk) -> None:
    system = f"{{postgres: {{base_directory: {POSTGRES_BASE}, options: {{shared_buffers: 64MB}}}}}}"
    here.fairtrial("run", shop(here, system))
    look_at(record.read(here.run))
    here.fairtrial("verify", here.run)


def test_a_mistake_in_the_script_is_said_before_anything_starts(here: Desk) -> None:
    wrong = ORDERS.read_text(encoding="utf-8").replace("stock - :quantity", "stock - :quanity")
    done = here.fairtrial("run", shop(here, SQLITE, script=wrong), code=2)
    assert "shop/orders.yaml:49:51: workload.script.content.transactions.order.statements.1: unknown" in done.stderr
    assert "did you mean `quantity`?" in done.stderr
    assert not here.runs


def refused_at(here: Desk, system: str) -> str:
    """What a run says to SQL misspelt in line 48 of the script and a table in line 49; the record has it."""
    wrong = ORDERS.read_text(encoding="utf-8").replace("UPDATE product SET stock", "UPDATE products SET stock")
    wrong = wrong.replace("sql: 'SELECT price FROM", "sql: 'SELEC price FROM")
    done = here.fairtrial("run", shop(here, system, script=wrong), code=2)
    said = " ".join(done.stderr.split())
    assert "shop/orders.yaml:49:16: workload.script.content.transactions.order.statements.1.sql: the system" in said
    assert "shop/orders.yaml:48:16: workload.script.content.transactions.order.statements.0.sql: the system" in said
    assert re.search("rejects statement 1 of `order`, `SELEC price .*syntax", said), "in the system's own words"
    assert "rejects statement 2 of `order`, `UPDATE products SET stock = stock - :quantity" in said
    interrupted = record.read(here.run).events[-1]
    assert isinstance(interrupted, RunInterrupted)
    assert "shop/orders.yaml:49:16" in interrupted.reason
    return said


def test_a_statement_that_the_system_refuses_ends_the_run_at_its_line_with_the_systems_words(here: Desk) -> None:
    assert "no such table: products" in refused_at(here, SQLITE)
    again = here.fairtrial("run", here.directory / "study.yaml", "--resume", code=2)
    assert "shop/orders.yaml:49:16" in again.stderr, "a resumed run reads the same file"
    script = here.directory / "shop" / "orders.yaml"
    script.write_text(ORDERS.read_text(encoding="utf-8"), encoding="utf-8")
    mended = here.fairtrial("run", here.run, "--resume", code=2)
    assert re.search(r"study\.merged\.yaml:\d+:\d+: ", mended.stderr), "a run goes on as it began"


@pytest.mark.servers
@pytest.mark.skipif(MARIADB is None, reason="needs mariadbd: `make test` installs it when run as root")
def test_mariadb_s_refusal_has_its_line(here: Desk) -> None:
    assert "products' doesn't exist (1146)" in refused_at(here, "{mariadb: {options: {innodb_buffer_pool_size: 64M}}}")


@pytest.mark.servers
@pytest.mark.skipif(POSTGRES is None, reason="needs postgres: `make test` installs it when run as root")
def test_postgres_refusal_has_its_line(here: Desk) -> None:
    system = f"{{postgres: {{base_directory: {POSTGRES_BASE}, options: {{shared_buffers: 64MB}}}}}}"
    assert 'relation "products" does not exist (42P01)' in refused_at(here, system)


def test_a_change_of_the_data_is_prepared_anew_and_a_change_of_a_transaction_is_not(here: Desk) -> None:
    study = shop(here, SQLITE)
    script = here.directory / "shop" / "orders.yaml"
    arguments = ("--set", "trials.blocks=1", "--set", "trials.margin=0.1")
    here.fairtrial("run", study, *arguments)
    text = script.read_text(encoding="utf-8")
    script.write_text(text.replace("LIMIT 10", "LIMIT 5"), encoding="utf-8")
    here.fairtrial("run", study, *arguments)
    assert len(list((here.state / "prepared").iterdir())) == 1
    script.write_text(text.replace("rows: 10000", "rows: 11000"), encoding="utf-8")
    here.fairtrial("run", study, *arguments)
    assert len(list((here.state / "prepared").iterdir())) == 2
