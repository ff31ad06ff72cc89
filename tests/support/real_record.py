"""One record of the real thing: the SQLite study, run once by the installed command, read by many tests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fairtrial.record.files import sha256
from fairtrial.study.service_counters import ERROR_SUFFIX
from support.command_line import FAIRTRIAL
from support.shared import alone_in

STUDY = Path(__file__).parents[2] / "studies" / "sqlite-wal.yaml"
SIZE = "ci"
OVERRIDES = (
    "workload.tpcc.duration=2500ms",  # long enough for a delivery, one transaction in 25, on a busy disk
    "workload.tpcc.think_time=5ms",  # leaves the processors to others
    "system.sqlite.busy_timeout=50s",  # nobody gives up on a slow disk: there are no failures
    "telemetry.interval=500ms",  # a look that is due at a window's edge may come late by twice this
    "trials.blocks=3",  # three pairs per cell: the fewest with a spread that is not one number
    "metrics={primary: throughput_tpm, secondary: [latency_ns_p99], guardrails: [failed_share]}",  # one all zero
)
COLUMNS = 100
DONE = "done"
# Readers know the window's length, so it ends by its time: a record in which the machine stood still is made anew.
ATTEMPTS = 4
STOOD_STILL = "no transaction committed inside the measurement window"


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The one directory below `runs` that `make` leaves in a new directory; all processes of a test run share it."""
    with alone_in(factory, name) as directory:
        if not (directory / DONE).exists():
            shutil.rmtree(directory / "runs", ignore_errors=True)
            make(directory)
            (directory / DONE).touch()
    (found,) = (directory / "runs").iterdir()
    return found


def run_study(directory: Path) -> None:
    """Makes the record below `directory`, anew if the machine stood still meanwhile."""
    state = directory / "state"
    state.mkdir(exist_ok=True)
    for _ in range(ATTEMPTS):
        shutil.rmtree(directory / "runs", ignore_errors=True)
        _run_once(directory, state)
        if not stood_still(directory):
            break
    shutil.rmtree(state)


def stood_still(directory: Path) -> bool:
    """Whether a window was without a transaction or without one of its kinds, or a source without a sample at its edge.

    All else that is wrong with a record is for its readers to find. That counters were read slowly is nothing wrong.
    """
    trials = [json.loads(path.read_bytes()) for path in directory.glob("runs/*/trials/*/trial.json")]
    names = {frozenset(name for name in trial["scalars"] if not name.endswith(ERROR_SUFFIX)) for trial in trials}
    return any(trial["invalid_reason"].startswith(STOOD_STILL) for trial in trials) or len(names) > 1


def _run_once(directory: Path, state: Path) -> None:
    overrides = [word for override in OVERRIDES for word in ("--set", override)]
    done = subprocess.run(
        [FAIRTRIAL, "run", STUDY, "--size", SIZE, *overrides],
        cwd=directory,
        env={**os.environ, "FAIRTRIAL_STATE_DIRECTORY": str(state), "COLUMNS": str(COLUMNS), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    (directory / "terminal.txt").write_text(done.stdout, encoding="utf-8")


def terminal(run: Path) -> str:
    """What the command printed while it made this record."""
    return (run.parents[1] / "terminal.txt").read_text(encoding="utf-8")


def adjust_hash(run: Path, trial: str, name: str) -> None:
    """Makes the journal believe what a raw file says now: only recomputation can still see the change."""
    journal = run / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["entry"].get("trial") == trial and line["entry"]["event"] == "trial_finished":
            line["entry"]["files"][name] = sha256(run / "trials" / trial / name)
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
