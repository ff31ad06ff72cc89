"""How long a slow shutdown took, from the file that the run leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairtrial.errors import RecordError
from fairtrial.metrics.telemetry import shutdown

OLDER = {"began_ns": 5_000_000_000, "ended_ns": 12_500_000_000, "limit_s": 60.0, "complete": True}
FOUND = {**OLDER, "load_ended_ns": 4_750_000_000}


def test_it_is_the_time_from_the_loads_end_to_the_servers(tmp_path: Path) -> None:
    (tmp_path / shutdown.FILE).write_text(json.dumps(FOUND))
    assert shutdown.compute(tmp_path) == {
        "slow_shutdown_s": 7.75,
        "slow_shutdown_gap_s": 0.25,
        "slow_shutdown_censored": 0.0,
    }


def test_two_servers_with_the_same_debt_differ_by_nothing_but_when_they_were_told(tmp_path: Path) -> None:
    """Purge goes on while a governor ends: what it does then is not to be had for nothing."""
    times = []
    for told_late_ns in (16_000_000, 104_000_000):
        began_ns = FOUND["load_ended_ns"] + told_late_ns
        (tmp_path / shutdown.FILE).write_text(json.dumps({**FOUND, "began_ns": began_ns}))
        times.append(shutdown.compute(tmp_path)["slow_shutdown_s"])
    assert times[0] == times[1]


def test_a_record_that_does_not_say_when_the_load_ended_counts_from_the_telling_as_it_did(tmp_path: Path) -> None:
    (tmp_path / shutdown.FILE).write_text(json.dumps(OLDER))
    assert shutdown.compute(tmp_path) == {"slow_shutdown_s": 7.5, "slow_shutdown_censored": 0.0}


def test_one_that_was_cut_off_says_so(tmp_path: Path) -> None:
    (tmp_path / shutdown.FILE).write_text(json.dumps({**FOUND, "complete": False}))
    assert shutdown.compute(tmp_path)["slow_shutdown_censored"] == 1.0


def test_a_trial_that_was_not_to_shut_down_slowly_has_no_such_metric(tmp_path: Path) -> None:
    assert shutdown.compute(tmp_path) == {}


@pytest.mark.parametrize("text", ["", "{}", json.dumps({**FOUND, "began_ns": "soon"})])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / shutdown.FILE).write_text(text)
    with pytest.raises(RecordError, match=shutdown.FILE):
        shutdown.compute(tmp_path)


def test_every_metric_is_defined_and_time_is_a_clocks() -> None:
    (directory,) = ({**FOUND},)
    assert directory["complete"]
    assert {name: each.kind for name, each in shutdown.DEFINITIONS.items()} == {
        "slow_shutdown_s": "wall_clock",
        "slow_shutdown_gap_s": "wall_clock",
        "slow_shutdown_censored": "count",
    }
