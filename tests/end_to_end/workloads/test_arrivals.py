"""Rates that change, recorded arrivals, queues that are left and searches, as studies on SQLite."""

from __future__ import annotations

import json

import polars as pl
import pytest
from support.command_line import Desk

from fairtrial import record
from fairtrial.metrics import drive

STUDY = """\
study: arrivals
question: Do arrivals of every kind offer what they say?
system: {sqlite: {pragmas: {journal_mode: WAL, synchronous: OFF}}}
workload:
  oltp:
    profile: point_select
    table_size: 2000
    virtual_users: 3
    ramp_up: 0s
    duration: 1s
    interval: 100ms
    spacing: constant
    arrivals: {steps: [{rate: 100/s, length: 200ms}, {rate: 0, length: 300ms}]}
factors:
  arrivals:
    steps: {}
    ramp: {workload: {oltp: {arrivals: {ramp: {from: 0, to: 200/s, over: 1s}}}}}
    sine: {workload: {oltp: {arrivals: {sine: {mean: 150/s, amplitude: 150/s, period: 500ms}}}}}
    replay: {workload: {oltp: {duration: 1min, arrivals: {replay: {file: times.txt}}}}}
    overload:
      workload: {oltp: {arrivals: {steps: [{rate: 3000000/s, length: 1s}]}, spacing: exponential, queue_timeout: 50ms}}
arm: arrivals
trials: {blocks: 1, seed: 5}
metrics: {primary: lateness_ns_p50, secondary: [offered_per_s]}
telemetry: {interval: 100ms}
"""
OFFERED = {"steps": 40, "ramp": 100, "sine": 150, "replay": 60}

SEARCH = """\
study: search
system: {sqlite: {pragmas: {journal_mode: WAL, synchronous: OFF}}}
workload:
  oltp:
    profile: update_index
    table_size: 2000
    virtual_users: 2
    ramp_up: 0s
    interval: 100ms
    arrivals: {search: {objective: {p50: 50ms}, from: 500/s, to: 500000/s, precision: 100 %, window: 1s, settle: 0s}}
factors:
  users: {two: {}, four: {workload: {oltp: {virtual_users: 4}}}}
arm: users
trials: {blocks: 1, seed: 5, voided_limit: 0}
metrics: {primary: highest_rate_per_s, secondary: [throughput_tps, latency_ns_p50]}
telemetry: {interval: 100ms}
"""


def test_every_kind_of_arrivals_offers_what_it_says_and_an_overload_accounts_for_everyone(here: Desk) -> None:
    (here.directory / "times.txt").write_text("".join(f"{1000 + 0.01 * each:.2f}\n" for each in range(60)))
    here.fairtrial("run", here.study(STUDY))
    found = record.read(here.run)
    assert all(trial.valid for trial in found.trials), [trial.invalid_reason for trial in found.trials]
    for trial in found.trials:
        directory = found.trial_directory(trial.trial.id)
        arrived = drive.read(directory).arrivals
        assert arrived is not None
        level = trial.levels["arrivals"]
        if level == "overload":
            drawn = json.loads((directory / "result.json").read_text())["drawn"]["point_select"]
            assert arrived.offered == pytest.approx(3_000_000, rel=0.01)
            assert drawn + arrived.waiting + arrived.timed_out == arrived.offered
            assert trial.scalars["timed_out_share"] > 0
            timeline = pl.read_parquet(directory / "timeline.parquet").filter("measured")
            assert timeline["timed_out"].sum() == arrived.timed_out
        else:
            assert (arrived.offered, arrived.timed_out) == (OFFERED[level], None)
            assert "timed_out_share" not in trial.scalars
    here.fairtrial("verify", here.run)


def test_a_search_finds_its_bounds_and_every_number_follows_from_its_probes(here: Desk) -> None:
    here.fairtrial("run", here.study(SEARCH.replace("voided_limit: 0", "voided_limit: 2")))
    found = record.read(here.run)
    valid = [trial for trial in found.trials if trial.valid]
    reasons = [trial.invalid_reason for trial in found.trials if not trial.valid]
    assert all("not even the lowest rate of the search" in reason for reason in reasons), reasons
    assert {trial.trial.arm for trial in valid} == {"two", "four"}
    for trial in valid:  # a machine that stands still at a window's end may fail the search's lowest rate, twice
        driven = drive.read(found.trial_directory(trial.trial.id))
        assert driven.search is not None
        assert trial.scalars["highest_rate_per_s"] == driven.search.met_per_s
        assert trial.scalars["probes"] == len(driven.search.probes)
        (found_by,) = [probe for probe in driven.search.probes if probe.window == trial.window]
        assert found_by.met
        assert found_by.rate_per_s == trial.scalars["highest_rate_per_s"]
        window_s = (found_by.window.end_ns - found_by.window.start_ns) / 1e9
        assert found_by.offered == pytest.approx(found_by.rate_per_s * window_s, rel=0.25)
        assert trial.scalars["throughput_tps"] == pytest.approx(found_by.done / window_s)
        assert trial.scalars["latency_ns_p50"] <= 50e6
    here.fairtrial("verify", here.run)


def test_a_search_whose_range_ends_too_low_says_so_and_gives_no_number(here: Desk) -> None:
    # One that writes to no disk, which may stand still: the lowest rate has to meet the objective.
    text = SEARCH.replace("to: 500000/s", "to: 500/s").replace("update_index", "point_select")
    here.fairtrial("run", here.study(text), code=None)
    found = record.read(here.run)
    trial = found.trials[0]
    assert not trial.valid
    assert "even the highest rate of the search, 500/s, meets the objective (p50 within 50 ms)" in trial.invalid_reason
    assert "highest_rate_per_s" not in trial.scalars
    here.fairtrial("verify", here.run)
