"""A regular expression that would take years ends, and the timer of somebody else goes on."""

from __future__ import annotations

import signal

import pytest

from fairtrial.workloads.command import matching

SLOW = r"(a|a)+$"


def test_the_last_match_counts() -> None:
    assert matching.last(r"^rate: (\d+)", "rate: 1\nrate: 2\n") == "2"
    with pytest.raises(IndexError):
        matching.last("rate: (1)", "")


def test_an_expression_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MATCH_S", 0.1)
    handler, before = signal.getsignal(signal.SIGALRM), signal.setitimer(signal.ITIMER_REAL, 500)
    try:
        with pytest.raises(ValueError, match=r"takes longer than 0\.1 s"):
            matching.last(SLOW, "a" * 40 + "b")
        assert 400 < signal.getitimer(signal.ITIMER_REAL)[0] < 500
        assert signal.getsignal(signal.SIGALRM) is handler
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)
