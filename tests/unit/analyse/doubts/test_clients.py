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
    assert found.message.startswith(
        "in 2 of 4 used trials more transactions are slower than the p99 and were unfinished"
    )
    assert found.message.endswith("in b a share of at least 0.13 of those that were due")
    assert list(clients.about(plan("latency_ns_p50"), used)) == [], "the median is known"
    (without,) = clients.about(plan("latency_ns_p99"), [trial("none", number=0, unfinished_share=1.0)])
    assert "in none a share of at least 1 " in without.message, "nothing at all completed"


def test_transactions_in_progress_as_always_leave_a_tail_measured() -> None:
    # 10,000 a second of 20 ms each: 200 in progress at any time, and 100 of the window's beyond its p99.9
    known = {"offered_per_s": 10_000.0, "queue_length_end": 0.0}
    tail = {"latency_ns_p999": 60e6, "unfinished_share": 200 / 100_000, **known}
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


def test_a_queue_that_grows_all_the_time_leaves_a_tail_unmeasured_that_grows_with_it() -> None:
    """Of 80,898 a second 56 % wait in the end: no latency is as long as theirs, and the first is not yet late."""
    overload = {"offered_per_s": 80_898.0, "unfinished_share": 0.556, "queue_length_end": 0.555 * 808_980}
    known = {
        "latency_ns_p50": 2.8e9,
        "latency_ns_p99": 5.5e9,
        "latency_ns_max": 5.56e9,
        "new_order_latency_ns_p99": 5.4e9,
    }
    used = [trial("a", number=0, **overload, **known)]
    for metric in ("latency_ns_p99", "latency_ns_max", "new_order_latency_ns_p99", "latency_ns_p50"):
        (found,) = clients.about(plan(metric), used)
        assert (found.code, found.metric) == ("tail_unmeasured", metric)
        assert "in a a share of at least 0.56 " in found.message or "at least 0.55 " in found.message
    assert (
        "slower than the new_order's p99" in next(iter(clients.about(plan("new_order_latency_ns_p99"), used))).message
    )


def test_a_queue_that_is_older_than_the_window_is_no_more_than_all_that_was_due() -> None:
    queue = {"offered_per_s": 100.0, "unfinished_share": 1.0, "queue_length_end": 1800.0, "latency_ns_p99": 12e9}
    (found,) = clients.about(plan("latency_ns_p99"), [trial("a", number=0, **queue)])
    assert "in a a share of at least 1 of those that were due" in found.message


def test_a_stall_at_the_end_leaves_a_types_tail_a_maximum_and_a_mean_unmeasured() -> None:
    known = {"offered_per_s": 1000.0, "queue_length_end": 0.0, "unfinished_share": 0.167}
    stalled = trial("a", number=0, new_order_latency_ns_p99=5e6, latency_ns_max=9e6, latency_ns_mean=2e6, **known)
    for metric in ("new_order_latency_ns_p99", "latency_ns_max", "latency_ns_mean"):
        assert [found.metric for found in clients.about(plan(metric), [stalled])] == [metric]
    healthy = trial("a", number=0, latency_ns_max=200e6, latency_ns_mean=20e6, **{**known, "unfinished_share": 0.002})
    assert list(clients.about(plan("latency_ns_max", "latency_ns_mean", "share_of_latency_ns_other"), [healthy])) == []


def test_latency_that_is_mostly_a_wait_for_the_only_user_is_told() -> None:
    late = {"latency_ns_p50": 522e3, "lateness_ns_p50": 466e3, "latency_ns_p99": 1e6}
    (found,) = clients.about(plan("latency_ns_p99"), [trial("a", number=0, **late), trial("b", number=0)])
    assert found.message.endswith("passed before transactions began, in a 89 %")
    stalls = {"latency_ns_p50": 522e3, "lateness_ns_p50": 46e3, "latency_ns_p99": 1e9, "lateness_ns_p99": 1e9}
    assert list(clients.about(plan("latency_ns_p99"), [trial("a", number=0, **stalls)])) == [], "a server's stall"
    assert list(clients.about(plan("throughput_tps"), [trial("a", number=0, **late)])) == []
