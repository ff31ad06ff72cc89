"""Where a window lies: pgbench's own time, at its first transaction, or before its process's end."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pgbench import BOOTED_NS, kept

from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.workloads.pgbench import measuring, output


def test_a_closed_loops_window_begins_with_its_first_transaction(tmp_path: Path) -> None:
    run = kept("plain", tmp_path)
    window = run.measured(ended_after_ns=10**9).window
    assert window is not None
    assert window.end_ns - window.start_ns == output.report(run.text).whole_us * 1000
    began = [
        end_ns - int(line.split()[2]) * 1000
        for log in run.logs
        for line, end_ns in zip(log.read_text().splitlines(), run.ends_ns(), strict=False)
        if log == run.logs[0]
    ]
    last_ns = max(run.ends_ns())
    assert window.start_ns <= min(began)
    assert window.end_ns >= last_ns
    assert window.end_ns - last_ns < 1_000_000  # pgbench ends as soon as the last transaction has


def test_an_open_loops_window_ends_no_later_than_its_process(tmp_path: Path) -> None:
    run = kept("rated", tmp_path)
    ran = run.ran(ended_after_ns=500_000)
    window = run.measured(ended_after_ns=500_000).window
    assert window is not None
    assert window.end_ns <= ran.life.end_ns
    assert window.end_ns >= max(run.ends_ns())


@pytest.mark.parametrize("step_ns", [-60_000_000_000, 60_000_000_000])
def test_a_clock_that_was_set_meanwhile_is_noticed(tmp_path: Path, step_ns: int) -> None:
    run = kept("plain", tmp_path)
    clock = wire.Reading(monotonic_ns=0, realtime_ns=BOOTED_NS + step_ns)
    with pytest.raises(PlaceError, match="clock was set during the trial"):
        measuring.measured(run.ran(), run.logs, parameters=run.parameters, clock=clock)


def test_nothing_processed_has_no_window(tmp_path: Path) -> None:
    run = kept("rated", tmp_path)
    ran = run.ran()
    nothing = run.text.replace("processed: 151", "processed: 0").replace("tps = 149.119455", "tps = 0.000000")
    clock = wire.Reading(monotonic_ns=0, realtime_ns=BOOTED_NS)
    object.__setattr__(ran, "lines", nothing.splitlines())
    found = measuring.measured(ran, run.logs, parameters=run.parameters, clock=clock)
    assert (found.window, found.done, found.files) == (None, 0, {})
