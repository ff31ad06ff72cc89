"""The one line of a comparison's progress: on a terminal what is known so far, elsewhere nothing but notes."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from support.records import planned, trial_record

from fairtrial.cli.running.one_line import OneLine
from fairtrial.protocol.generated import RateProgress
from fairtrial.record.models import TrialRecord


def console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    stream = io.StringIO()
    return Console(file=stream, force_terminal=terminal, width=120, color_system=None), stream


def measured(block: int, arm: str, value: float) -> TrialRecord:
    return trial_record(planned(block, arm)).model_copy(update={"scalars": {"elapsed_s": value}})


def told(line: OneLine, *values: float) -> None:
    for block, value in enumerate(values, start=1):
        line.trial_finished(measured(block, "a", value))
    line.trial_started(planned(3, "b"), number=5, total=8, left_s=90)


def test_a_terminal_shows_the_round_who_runs_what_is_known_and_what_is_left() -> None:
    shown, stream = console(terminal=True)
    line = OneLine(shown, metric="elapsed_s", unit="s")
    with line.shown():
        told(line, 0.010, 0.020)
    said = stream.getvalue()
    for part in ("round 3", "running b", "a 15.00 ms", "90 s left"):
        assert part in said


def test_before_the_first_trial_it_says_that_commands_are_tried_out() -> None:
    shown, stream = console(terminal=True)
    with OneLine(shown, metric="elapsed_s", unit="s").shown():
        pass
    assert "trying the commands" in stream.getvalue()


def test_elsewhere_it_is_silent() -> None:
    shown, stream = console(terminal=False)
    line = OneLine(shown, metric="elapsed_s", unit="s")
    with line.shown():
        line.phase("drive")
        line.load(RateProgress(per_s=1.0, errors=0))
        told(line, 0.010, 0.020)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_an_invalid_trial_is_noted_wherever_it_goes(terminal: bool) -> None:  # noqa: FBT001
    shown, stream = console(terminal=terminal)
    line = OneLine(shown, metric="elapsed_s", unit="s")
    with line.shown():
        line.trial_finished(trial_record(planned(2, "b"), valid=False))
        line.note("block 2 of all is void")
    assert "b in round 2 is invalid: broken on purpose" in stream.getvalue()
    assert "block 2 of all is void" in stream.getvalue()


def test_a_trial_without_the_figure_does_not_count_in_the_mean() -> None:
    shown, stream = console(terminal=True)
    line = OneLine(shown, metric="tps", unit="")
    with line.shown():
        line.trial_finished(measured(1, "a", 1.0))
        line.trial_started(planned(2, "b"), number=2, total=4, left_s=1)
    assert "a 1.0" not in stream.getvalue()
