"""What a person sees of a run that goes on elsewhere, and how watching it ends."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
import typer
from rich.console import Console
from support.records import planned, tiny_plan, trial_record

from fairtrial import record
from fairtrial.cli.running import watch as command
from fairtrial.cli.running.watch import picture, watch
from fairtrial.errors import PlaceError
from fairtrial.live.doubts import Doubts
from fairtrial.live.followed import FollowedRun
from fairtrial.record import Writer, live
from fairtrial.record.events import RunFinished, RunInterrupted
from fairtrial.record.live import Live, Note
from fairtrial.record.models import TrialStarted
from fairtrial.report.concerns import Concern

ESCAPE = "\x1b]0;owned\x07"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PATIENCE_S", 0.0)
    monkeypatch.setattr(command, "TICK_S", 0.01)
    monkeypatch.setattr(command.os, "nice", lambda _more: 0)


def begun(directory: Path, *, blocks: int = 2) -> Writer:
    plan = tiny_plan().model_copy(update={"study": f"tiny{ESCAPE}"})
    writer = record.create(directory, plan=plan, sources={"study.yaml": "study: tiny\n"})
    for number, trial in enumerate(plan.trials[: 2 * blocks]):
        writer.append(TrialStarted(trial=trial))
        writer.begin(trial.id)
        value = 1.0 if trial.arm == "a" else 0.8 + 0.1 * number
        writer.commit(trial_record(trial).model_copy(update={"scalars": {"elapsed_s": value}}))
    return writer


def drawn(directory: Path) -> str:
    run = FollowedRun(directory)
    run.refresh()
    console = Console(file=io.StringIO(), width=140, color_system=None)
    doubts = Doubts(run, run.analysis)
    doubts.look()
    console.print(picture(run, run.looks(), doubts.found or ()))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def code_of(directory: Path) -> int:
    with pytest.raises(typer.Exit) as ended:
        watch(directory)
    return ended.value.exit_code


def test_a_terminal_shows_state_looks_blocks_and_events_and_obeys_nothing(tmp_path: Path) -> None:
    writer = begun(tmp_path / "one", blocks=1)
    writer.append(TrialStarted(trial=planned(2, "b")))
    live.write(writer.directory, Live(process=os.getpid(), notes=(Note(time="2026-01-01T00:00:00.000Z", text=ESCAPE),)))
    seen = drawn(writer.directory)
    writer.close()
    assert "running  2 of 4 trials" in seen
    assert "looks (no verdict before the end)" in seen
    assert "b / a" in seen
    assert "not a verdict" in seen
    marks = [line.split()[-2:] for line in seen.splitlines() if "●" in line and "planned" not in line]
    assert marks == [["●", "·"], ["●", "◐"]]
    assert "run started" in seen
    assert "\x1b" not in seen
    assert "p =" not in seen


def test_doubts_and_the_ends_of_logs_are_shown_while_the_run_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = begun(tmp_path / "one", blocks=1)
    lost = planned(2, "b")
    writer.append(TrialStarted(trial=lost))
    writer.begin(lost.id)
    writer.commit(trial_record(lost, valid=False))
    (tmp_path / "server.log").write_text("".join(f"{ESCAPE}line {number}\n" for number in range(9)), encoding="utf-8")
    live.write(writer.directory, Live(process=os.getpid(), logs=str(tmp_path)))
    seen = drawn(writer.directory)
    assert "1 block voided" in seen
    assert "The run ended" not in seen
    assert [line[-1] for line in seen.splitlines() if "owned" in line and "line" in line] == ["5", "6", "7", "8"]
    assert "\x1b" not in seen
    writer.close()
    with pytest.raises(PlaceError, match="without saying why"):
        watch(writer.directory)
    assert "\ndoubt: 1 block voided" in capsys.readouterr().out


def test_doubts_of_one_kind_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = begun(tmp_path / "one", blocks=1)
    run = FollowedRun(writer.directory)
    run.refresh()
    found = Concern(code="outlier", message="One is far off.", advice="Look.", spots=(), alike=2)
    console = Console(file=io.StringIO(), width=140, color_system=None)
    console.print(picture(run, [], [found]))
    assert isinstance(console.file, io.StringIO)
    assert "One is far off. (2 more like this in the report) Look." in console.file.getvalue()
    command._Lines(run, Console()).doubt([found])
    assert "doubt: One is far off. (2 more like this in the report) Look." in capsys.readouterr().out
    writer.close()


def test_a_finished_run_ends_with_0_and_sends_to_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = begun(tmp_path / "one")
    writer.append(RunFinished())
    writer.close()
    assert code_of(tmp_path / "one") == 0
    assert "finished, 4/4 trials" in capsys.readouterr().out
    assert f"fairtrial report {tmp_path / 'one'}" in drawn(tmp_path / "one").replace("\n", "")


@pytest.mark.parametrize("code", [130, 2, 3])
def test_an_interrupted_run_ends_with_its_own_code(tmp_path: Path, code: int) -> None:
    writer = begun(tmp_path / "one", blocks=1)
    writer.append(RunInterrupted(reason="so it was", exit_code=code))
    writer.close()
    assert code_of(tmp_path / "one") == code
    resumed = record.resume(tmp_path / "one")
    resumed.close()  # killed: it says nothing
    with pytest.raises(PlaceError, match="its exit code is unknown"):
        watch(tmp_path / "one")


def test_a_ratio_has_as_many_decimals_as_its_interval(tmp_path: Path) -> None:
    writer = begun(tmp_path / "one", blocks=0)
    for trial in writer.plan.trials:
        writer.append(TrialStarted(trial=trial))
        writer.begin(trial.id)
        value = 1.00009 + trial.block / 1e7 if trial.arm == "b" else 1.0
        writer.commit(trial_record(trial).model_copy(update={"scalars": {"elapsed_s": value}}))
    seen = drawn(writer.directory)
    writer.close()
    assert "1.000090  1.000090 – 1.000091" in seen
