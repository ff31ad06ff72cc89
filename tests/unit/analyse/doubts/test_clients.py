"""Doubts about several clients: who was busy, and who could not measure a percentile of the study."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from fairtrial.analyse.doubts import clients
from fairtrial.analyse.models import DOUBT_CODES
from fairtrial.record.models import Plan, TrialRecord


def plan(*metrics: str) -> Plan:
    named = SimpleNamespace(primary=metrics[:1], secondary=metrics[1:], guardrails=())
    return cast("Plan", SimpleNamespace(metrics=named))


def trial(name: str, *, number: int = 2, **scalars: float) -> TrialRecord:
    made: Any = SimpleNamespace(trial=SimpleNamespace(id=name), clients=[None] * number, scalars=scalars)
    return cast("TrialRecord", made)


def measured(name: str, *counts: int, **scalars: float) -> TrialRecord:
    own = {f"client_{number}_latency_count": float(count) for number, count in enumerate(counts, start=1)}
    return trial(name, number=len(counts), **own, **scalars)


def test_clients_that_were_busy_are_named_with_their_trials() -> None:
    used = [
        trial("a", client_1_busy_share=0.5, client_2_busy_share=0.95, client_busy_share=0.95),
        trial("b", client_1_busy_share=0.91, client_2_busy_share=0.99, client_busy_share=0.99),
    ]
    assert clients.saturated(used, limit=0.9) == "client 1 in 1, client 2 in 2"
    assert clients.saturated([trial("a", client_busy_share=0.99)], limit=0.9) == "", "one client needs no name"


def test_a_client_with_few_latencies_beyond_a_percentile_is_named() -> None:
    used = [measured("a", 2000, 2000), measured("b", 2000, 900), measured("c", 2000, 800)]
    (found,) = clients.about(plan("throughput_tps", "latency_ns_p99"), used)
    assert found.code == "tail_unmeasured"
    assert found.code in DOUBT_CODES
    assert found.metric == "latency_ns_p99"
    assert found.message == "fewer than 10 latencies of a client lie beyond its p99: client 2 has 9 in b"
    assert list(clients.about(plan("latency_ns_p95"), used)) == [], "a lower percentile has enough"
    assert list(clients.about(plan("throughput_tps"), used)) == [], "nobody asks for a tail"
    assert list(clients.about(plan("latency_ns_p99"), [trial("a", number=0)])) == [], "one client has other doubts"


def test_more_unfinished_transactions_than_lie_beyond_a_percentile_leave_it_unmeasured() -> None:
    used = [trial(name, number=0, unfinished_share=share) for name, share in {"a": 0.01, "b": 0.13, "c": 0.02}.items()]
    (found,) = clients.about(plan("throughput_tps", "latency_ns_p99"), [*used, trial("old", number=0)])
    assert (found.code, found.metric) == ("tail_unmeasured", "latency_ns_p99")
    assert found.message.startswith("in 2 of 4 used trials more transactions had not completed")
    assert found.message.endswith("beyond its p99, in b a share of 0.13 of those that were due")
    assert list(clients.about(plan("latency_ns_p50"), used)) == [], "the median is known"


def test_a_client_whose_transactions_began_late_is_named() -> None:
    late = {"client_1_latency_ns_p99": 4e6, "client_1_lateness_ns_p99": 1.9e6}
    late |= {"client_2_latency_ns_p99": 4e6, "client_2_lateness_ns_p99": 3e6}
    (found,) = clients.about(plan("latency_ns_p99"), [measured("a", 2000, 2000, **late)])
    assert found.message.endswith("before its transactions began: client 2 with 75 % in a")
