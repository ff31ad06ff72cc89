"""Real runs that are watched and steered while they go on, by the installed command and by the page."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import PATIENCE_S, Desk, desk, eventually
from support.machines.holding import Held

from fairtrial.cli.running.plan import text
from fairtrial.record import live
from fairtrial.record.live import controller
from fairtrial.run.steering import Request, ask
from fairtrial.serve import steering
from fairtrial.serve.steering import Control, digest_of

STUDY = """\
    study: steered
    workload: {command: {run: PROGRAM}}
    factors: {version: {old: {}, new: {workload: {command: {run: PROGRAM new}}}}}
    arm: version
    trials: {blocks: 3, stop: anytime, equivalence: false, margin: 90%, seed: 3}
    metrics: {primary: elapsed_s}
"""


@pytest.fixture
def here() -> Iterator[Desk]:
    with desk() as found:
        yield found
        eventually(lambda: found.processes() == {}, "processes were left behind")


@pytest.fixture
def held(here: Desk) -> Held:
    """The program of the study: the first trial lasts until it is released, so no run ends before it is steered."""
    program = Held(here)
    program.hold()
    return program


def events(run: Path, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line)["entry"] for line in (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    return [entry for entry in lines if entry["event"] == name]


def paused(run: Path) -> bool:
    seen = live.read(run)
    return seen is not None and seen.paused


def test_a_run_is_paused_extended_stopped_and_resumed_and_its_watcher_ends_as_it_does(here: Desk, held: Held) -> None:
    study = here.study(STUDY.replace("PROGRAM", held.run))
    running = here.start("run", study)
    eventually(lambda: here.runs and controller(here.run) is not None, "the run did not begin")
    ask(here.run, Request(act="pause"))
    watching = here.start("watch", here.run)
    held.release()
    eventually(lambda: paused(here.run), "the run did not pause")
    assert watching.stdout is not None
    assert "steered in" in watching.stdout.readline()
    done = len(events(here.run, "trial_finished"))
    ask(here.run, Request(act="extend", blocks=1))
    ask(here.run, Request(act="stop_after_trial"))  # of the one that ran before the pause
    running.communicate(timeout=PATIENCE_S)
    seen, _ = watching.communicate(timeout=PATIENCE_S)
    assert (running.returncode, watching.returncode) == (130, 130)
    assert "run interrupted: stopped by the user" in seen
    assert len(events(here.run, "trial_finished")) == done
    assert events(here.run, "run_interrupted") == [
        {"event": "run_interrupted", "reason": "stopped by the user", "exit_code": 130}
    ]
    here.fairtrial("run", study, "--resume")
    assert [(each["act"], each["obeyed"]) for each in events(here.run, "steered")] == [
        ("pause", True),
        ("extend", True),
        ("stop_after_trial", True),
    ]
    assert len(events(here.run, "trial_finished")) == 8  # no always-valid interval is finite yet
    assert "every reported number recomputed" in here.fairtrial("verify", here.run).stdout
    assert "steered in" in here.fairtrial("watch", here.run).stdout


def test_a_fixed_design_refuses_more_blocks_and_a_killed_run_leaves_its_watcher_without_a_code(
    here: Desk, held: Held
) -> None:
    fixed = STUDY.replace("stop: anytime, equivalence: false, ", "").replace("PROGRAM", held.run)
    running = here.start("run", here.study(fixed))
    eventually(lambda: here.runs and controller(here.run) is not None, "the run did not begin")
    ask(here.run, Request(act="extend", blocks=1))
    ask(here.run, Request(act="pause"))
    held.release()
    eventually(lambda: paused(here.run), "the run did not pause")
    (refused, _pause) = events(here.run, "steered")
    assert (refused["obeyed"], "raises the error rate" in refused["reason"]) == (False, True)
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=PATIENCE_S)
    found = here.fairtrial("watch", here.run, code=3)
    assert "its exit code is unknown" in found.stderr
    assert f"fairtrial run {here.run} --resume" in found.stderr


def test_a_page_starts_a_study_that_outlives_it(here: Desk, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steering, "STARTED_S", PATIENCE_S)
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(here.state))
    study = here.study(STUDY.replace("PROGRAM", held.run))
    runs = here.directory / "runs"
    runs.mkdir()
    control = Control(studies=here.directory)
    _plan, merged = text(study)
    name = asyncio.run(control.start(study, runs=runs, digest=digest_of(merged.encode())))
    assert here.run.name == name
    eventually(lambda: controller(here.run) is not None, "the run has a record, but nobody says that he runs it")
    process = controller(here.run)
    assert process is not None
    assert Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[3] == str(process)  # its own session
    ask(here.run, Request(act="stop_now"))
    (child,) = control.children
    assert child.wait(PATIENCE_S) == 130
    assert [each["act"] for each in events(here.run, "steered")] == ["stop_now"]
