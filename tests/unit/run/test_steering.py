"""A run that somebody steers: paused and resumed, stopped after a trial, extended where its design allows that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import eventually
from support.progress import Told
from support.records import planned, tiny_plan
from support.trials import Quick

from fairtrial import record
from fairtrial.analyse.sequential import follow
from fairtrial.cli.running.stopping import stopping_rule
from fairtrial.errors import PlaceError
from fairtrial.record import live
from fairtrial.record.events import RunFinished, RunInterrupted, Steered
from fairtrial.record.models import Extended, LookTaken, Plan, PlannedTrial, TrialRecord
from fairtrial.report.analysing import analysed
from fairtrial.run import Run, loop, steering
from fairtrial.run.progress import LiveProgress
from fairtrial.run.steering import Request, ask

RATIOS = (1.3, 0.8, 1.1, 0.7, 1.25, 0.9, 1.2, 0.75)  # of arm b by block: nothing is decided by them


def plan(stop: str, *, blocks: int = 3) -> Plan:
    """With noise that decides nothing."""
    base = tiny_plan()
    trials = [planned(block, arm) for block in range(1, blocks + 1) for arm in "ab"]
    design = {"blocks": blocks, "stop": stop}
    if stop != "fixed":
        design |= {"min_blocks": 3, "futility": False, "equivalence": True, "precision": 0.01}
    return base.model_copy(update={"design": base.design.model_copy(update=design), "trials": trials})


class Asking(Quick):
    """After each trial, what a test asks for then."""

    def __init__(self, **requests: Request) -> None:
        super().__init__()
        self.requests = requests

    def run(self, trial: PlannedTrial, *, has_started: bool) -> TrialRecord:
        found = super().run(trial, has_started=has_started)
        if (request := self.requests.get(trial.id.removeprefix("all.").replace(".", "_"))) is not None:
            ask(self.writer.directory, request)
            if request.act == "stop_now":
                eventually(lambda: False, "no signal came")  # another thread's turn to have it may come late
        return found

    def finished(self, found: TrialRecord) -> TrialRecord:
        value = 1.0 if found.trial.arm == "a" else RATIOS[found.trial.block % len(RATIOS)]
        return found.model_copy(update={"scalars": {"elapsed_s": value}})


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setattr(live, "MEMORY", tmp_path)
    yield tmp_path / "run"
    assert not list(tmp_path.glob("fairtrial-*/*")), "a request outlived its run"


def go(directory: Path, asking: Asking, monkeypatch: pytest.MonkeyPatch, *, like: Plan | None = None) -> Told:
    """Starts a run of a plan, or resumes the one that is there."""
    monkeypatch.setattr(loop, "TrialRunner", asking)
    told = Told()
    if like is not None:
        record.create(directory, plan=like, sources={"study.yaml": "study: tiny\n"}).close()
    writer = record.resume(directory)
    try:
        Run(writer=writer, progress=told, stopping=stopping_rule(writer.plan)).execute()
    finally:
        writer.close()
    return told


def steered(directory: Path) -> list[Steered]:
    return [event for event in record.read(directory).events if isinstance(event, Steered)]


def test_a_run_that_was_stopped_after_a_trial_is_an_interrupted_one_that_resumes(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = Asking(b01_a=Request(act="stop_after_trial"))
    with pytest.raises(KeyboardInterrupt):
        go(directory, asking, monkeypatch, like=plan("fixed"))
    assert asking.ran == ["all.b01.a"]
    act, last = record.read(directory).events[-2:]
    assert act == Steered(act="stop_after_trial", obeyed=True)
    assert last == RunInterrupted(reason="stopped by the user", exit_code=130)
    rest = Asking()
    go(directory, rest, monkeypatch)
    assert len(rest.ran) == 5
    assert isinstance(record.read(directory).events[-1], RunFinished)


def test_a_paused_run_waits_between_trials_and_says_so_until_it_is_resumed(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = Asking(b01_b=Request(act="pause"))
    seen: list[list[str]] = []

    def resume() -> None:
        eventually(lambda: (found := live.read(directory)) is not None and found.paused, "the run never paused")
        seen.append(list(asking.ran))
        ask(directory, Request(act="pause"))
        time.sleep(2 * steering.POLL_S)
        seen.append(list(asking.ran))
        ask(directory, Request(act="resume"))

    thread = threading.Thread(target=resume)
    thread.start()
    told = go(directory, asking, monkeypatch, like=plan("fixed"))
    thread.join()
    assert seen == [["all.b01.a", "all.b01.b"]] * 2
    assert told.pauses == [True, False]
    assert [(each.act, each.reason) for each in steered(directory)] == [
        ("pause", ""),
        ("pause", "the run is paused already"),
        ("resume", ""),
    ]
    assert len(asking.ran) == 6


@pytest.mark.parametrize(
    ("stop", "reason"),
    [("fixed", "raises the error rate"), ("sequential", "already spent"), ("precision", "coverage")],
)
def test_a_design_whose_error_is_planned_for_its_blocks_refuses_more_of_them(
    directory: Path, monkeypatch: pytest.MonkeyPatch, *, stop: str, reason: str
) -> None:
    asking = Asking(b01_a=Request(act="extend", blocks=2))
    go(directory, asking, monkeypatch, like=plan(stop))
    (act,) = steered(directory)
    assert not act.obeyed
    assert reason in act.reason
    assert len(asking.ran) == 6


def test_an_always_valid_design_goes_on_with_more_blocks_and_everybody_computes_the_same(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last_arm = Asking(b03_b=Request(act="extend", blocks=2), b04_a=Request(act="stop_after_trial"))
    with pytest.raises(KeyboardInterrupt):
        go(directory, last_arm, monkeypatch, like=plan("anytime"))
    assert record.read(directory).plan.design.blocks == 5
    go(directory, rest := Asking(b05_b=Request(act="extend", blocks=1)), monkeypatch)
    assert sorted({*last_arm.ran, *rest.ran}) == [f"all.b{block:02}.{arm}" for block in range(1, 7) for arm in "ab"]
    found = record.read(directory)
    extended = [event for event in found.events if isinstance(event, Extended)]
    assert [(event.round, event.blocks, len(event.trials)) for event in extended] == [(2, 2, 4), (4, 1, 2)]
    taken = [event for event in found.events if isinstance(event, LookTaken)]
    run = follow(found.plan, found.trials)
    assert run is not None
    assert [tuple(look.cells) for look in taken] == list(run.looks)
    looks = [look.cells[0] for look in taken]
    assert [look.information for look in looks] == [1 / 3, 2 / 3, 3 / 5, 4 / 5, 5 / 6, 1]
    assert [look.decision for look in looks] == ["continue"] * 5 + ["stop"]
    assert looks[-1].reason == "blocks"
    analysis = analysed(found)
    assert analysis.counts.planned == 12
    assert analysis.counts.blocks_replaced == 0


def test_only_whole_requests_to_this_process_are_read_and_an_ended_run_refuses_all(
    directory: Path, tmp_path: Path
) -> None:
    writer = record.create(directory, plan=plan("fixed"), sources={"study.yaml": "study: tiny\n"})
    with LiveProgress(directory, Told()).shown():
        ask(directory, Request(act="pause"))
    (path,) = tmp_path.glob("fairtrial-*/*.requests")
    assert path.stat().st_mode & 0o077 == 0
    mailbox = steering.Mailbox(directory)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"act": "rm -rf"}\nnot JSON\n{"act": "resume"')
    assert mailbox.requests() == [Request(act="pause")]
    mailbox.clear()
    writer.close()
    with pytest.raises(PlaceError, match="no process runs"):
        ask(directory, Request(act="pause"))


def test_stopping_now_interrupts_the_process_that_holds_the_record(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = Asking(b01_b=Request(act="stop_now"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # as if the tests were run by hand
    with pytest.raises(KeyboardInterrupt):  # in the main thread of this very process
        go(directory, asking, monkeypatch, like=plan("fixed"))
    signal.signal(signal.SIGINT, before)
    assert [(each.act, each.obeyed) for each in steered(directory)] == [("stop_now", True)]
    assert asking.ran == ["all.b01.a", "all.b01.b"]
    assert os.getpid() == record.read(directory).events[0].process  # type: ignore[union-attr]


def test_a_run_that_is_stopped_the_moment_it_says_that_it_runs_has_it_in_its_journal(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = live.write

    def said(directory: Path, live_: live.Live) -> None:
        write(directory, live_)
        monkeypatch.setattr(live, "write", write)
        ask(directory, Request(act="stop_now"))
        eventually(lambda: False, "no signal came")

    monkeypatch.setattr(live, "write", said)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            go(directory, asking := Asking(), monkeypatch, like=plan("fixed"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not (directory / live.NAME).exists()
    assert (steered(directory), asking.ran) == ([Steered(act="stop_now", obeyed=True)], [])


IN_THE_BACKGROUND = """\
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
import os, polars
from fairtrial.run import steering
from fairtrial.run.interrupting import heed
heed()
print(steering._ignores_ctrl_c(os.getpid()))
"""


def test_a_run_in_the_background_of_a_script_is_stopped_by_the_signal_that_it_heeds() -> None:
    """There Ctrl-C is ignored, which Polars' own handler of it would hide."""
    done = subprocess.run([sys.executable, "-c", IN_THE_BACKGROUND], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
