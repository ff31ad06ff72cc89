"""Doubts about several clients: who was busy, and who could not measure a percentile of the study."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from fairtrial.analyse.doubts import clients
from fairtrial.analyse.models import DOUBT_CODES
from fairtrial.record.models import Plan, TrialRecord, Window


def plan(*metrics: str) -> Plan:
    named = SimpleNamespace(primary=metrics[:1], secondary=metrics[1:], guardrails=())
    return cast("Plan", SimpleNamespace(metrics=named))


def trial(name: str, *, number: int = 2, **scalars: float) -> TrialRecord:
    """Of a window of ten seconds."""
    identity, window = SimpleNamespace(id=name), Window(start_ns=5_000_000_000, end_ns=15_000_000_000)
    made: Any = SimpleNamespace(trial=identity, clients=[None] * number, scalars=scalars, window=window)
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


def test_more_that_waited_for_longer_than_a_percentile_than_lie_beyond_it_leave_it_unmeasured() -> None:
    shares = {"a": 0.01, "b": 0.13, "c": 0.02}
    used = [trial(name, number=0, latency_ns_p99=5e6, unfinished_share=share) for name, share in shares.items()]
    (found,) = clients.about(plan("throughput_tps", "latency_ns_p99"), [*used, trial("old", number=0)])
    assert (found.code, found.metric) == ("tail_unmeasured", "latency_ns_p99")
    assert found.message.startswith("in 2 of 4 used trials more transactions had been waiting for longer than the p99")
    assert found.message.endswith("in b a share of at least 0.13 of those that were due")
    assert list(clients.about(plan("latency_ns_p50"), used)) == [], "the median is known"
    (without,) = clients.about(plan("latency_ns_p99"), [trial("none", number=0, unfinished_share=1.0)])
    assert "in none a share of at least 1 " in without.message, "nothing at all completed"


def test_transactions_in_progress_as_always_leave_a_tail_measured() -> None:
    # 10,000 a second of 20 ms each: 200 in progress at any time, and 100 of the window's beyond its p99.9
    tail = {"latency_ns_p999": 60e6, "unfinished_share": 200 / 100_000}
    healthy = trial("healthy", number=0, **tail)
    assert list(clients.about(plan("latency_ns_p999"), [healthy])) == []
    stalled = trial("stalled", number=0, **{**tail, "unfinished_share": 1_000 / 100_000})  # for the last 100 ms
    (found,) = clients.about(plan("latency_ns_p999"), [healthy, stalled])
    assert "in stalled a share of at least 0.004 " in found.message


def test_a_client_whose_transactions_began_late_is_named() -> None:
    late = {"client_1_latency_ns_p99": 4e6, "client_1_lateness_ns_p99": 1.9e6}
    late |= {"client_2_latency_ns_p99": 4e6, "client_2_lateness_ns_p99": 3e6}
    (found,) = clients.about(plan("latency_ns_p99"), [measured("a", 2000, 2000, **late)])
    assert found.message.endswith("before its transactions began: client 2 with 75 % in a")
