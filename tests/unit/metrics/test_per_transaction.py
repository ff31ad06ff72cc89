"""What a transaction cost does not depend on how many there were; totals of a timed window do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.metrics import per_transaction
from fairtrial.study.resolved import Section
from fairtrial.workloads import WORKLOADS, workload_of
from fairtrial.workloads.hammerdb import scalars as hammerdb

STUDIES = Path(__file__).parents[3] / "studies"
TELL_RETRIES = {"tpcc", "oltp", "script", "sysbench", "pgbench"}
SERVER = {"server_cpu_s": 6.0}
OWN = {"transactions": 3000.0, "retries": 12.0, "throughput_tps": 100.0}


def test_processor_time_and_retries_are_over_the_transactions() -> None:
    found = per_transaction.joined(SERVER, OWN)
    assert found == {
        **SERVER,
        **OWN,
        "server_cpu_ms_per_transaction": 2.0,
        "retries_per_transaction": pytest.approx(0.004),
    }


def test_errors_are_over_the_transactions_too() -> None:
    found = per_transaction.joined({"refaults": 9.0, "refaults_error": 3.0, "server_cpu_s_error": 0.3}, OWN)
    assert found["refaults_per_transaction_error"] == 0.001
    assert found["server_cpu_ms_per_transaction_error"] == pytest.approx(0.1)


@given(st.integers(1, 50))
def test_an_arm_that_does_more_of_the_same_is_not_blamed_for_it(times: int) -> None:
    """Its totals are larger, and lower is better for them: this is what the metrics are for."""
    more = per_transaction.joined(
        {name: value * times for name, value in SERVER.items()}, {name: value * times for name, value in OWN.items()}
    )
    for name in (per_transaction.PROCESSOR_TIME, per_transaction.RETRIES):
        assert more[name] == pytest.approx(per_transaction.joined(SERVER, OWN)[name])


@pytest.mark.parametrize(
    ("common", "own"),
    [
        (SERVER, {"transactions": 0.0, "retries": 0.0}),
        (SERVER, {"accesses": 5.0}),
        ({}, {"transactions": 10.0}),
    ],
)
def test_without_transactions_or_what_they_took_there_is_neither(
    common: dict[str, float], own: dict[str, float]
) -> None:
    assert per_transaction.joined(common, own) == {**common, **own}


def test_time_is_a_clock_s_and_retries_are_counted() -> None:
    kinds = {name: each.kind for name, each in per_transaction.DEFINITIONS.items() if each.kind != "count"}
    assert kinds == {"server_cpu_ms_per_transaction": "wall_clock"}
    assert all(each.unit.endswith("/transaction") for each in per_transaction.DEFINITIONS.values())


def test_every_workload_of_transactions_has_them_but_for_what_it_does_not_tell() -> None:
    has: dict[str, set[str]] = {}
    for name, kind in WORKLOADS.items():
        found = workload_of(Section({name: dict(kind.example)})).metrics()
        has[name] = {per_transaction.PROCESSOR_TIME, per_transaction.RETRIES} & found.keys()
    assert {name for name, found in has.items() if per_transaction.PROCESSOR_TIME in found} == {
        *TELL_RETRIES,
        "hammerdb",
    }
    assert {name for name, found in has.items() if per_transaction.RETRIES in found} == TELL_RETRIES
    assert per_transaction.RETRIES in hammerdb.UNKNOWN


TOTALS = {"server_cpu_s", "retries", *per_transaction.COUNTS}


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.yaml")), ids=lambda path: path.stem)
def test_no_ready_study_judges_totals_of_a_window_of_fixed_length(path: Path) -> None:
    sizes = YAML(typ="safe").load(path.read_text(encoding="utf-8")).get("sizes", {})
    for size in (None, *sizes):
        found = study.load(path, catalogue=catalogue(), size=size)
        resolved = found.resolve({factor.name: factor.level_names[0] for factor in found.factors})
        workload = resolved.workload.parameters
        assert isinstance(workload, dict)
        if workload.get("duration") is not None:
            metrics = found.file.metrics
            judged = {*metrics.primary, *metrics.secondary, *metrics.guardrails}
            assert not judged & TOTALS, f"size {size}: give them per transaction"
