"""Duets of real commands: at the same time, on processors of their own, and resumed after a kill."""

from __future__ import annotations

import os
import re
import signal

import pytest
from support.command_line import desk, eventually
from support.machines.holding import Held

from fairtrial import record
from fairtrial.record import Record
from fairtrial.record.models import TrialRecord

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a duet needs two processors")

STUDY = """\
study: duet
workload: {{command: {{run: {program} a}}}}
factors: {{arm: {{a: {{}}, b: {{workload: {{command: {{run: {program} b}}}}}}}}}}
arm: arm
trials: {{order: duet, blocks: 4, seed: 4}}
metrics: {{primary: elapsed_s}}
telemetry: {{interval: 50ms}}
"""
# Each arm's program goes on only once the other's is there: two that do not run at the same time never end.
PROGRAM = """\
#!/bin/sh
grep Cpus_allowed_list /proc/$$/status
if [ "$1" = a ]; then echo here >{meeting}; else read -r word <{meeting}; fi
{rest}
"""


def processors(found: Record, trial: TrialRecord) -> str:
    """As the program under test read its own."""
    texts = [path.read_text(encoding="utf-8") for path in (found.trial_directory(trial.trial.id) / "log").iterdir()]
    ((words),) = re.findall(r"Cpus_allowed_list:\s*(\S+)", "".join(texts))
    return str(words)


def test_both_arms_run_at_the_same_time_on_processors_of_their_own_and_a_kill_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "lock_s=60")  # the killed run's agent may still hold the machine
    with desk() as here:
        program, meeting = here.directory / "program.sh", here.directory / "meeting"
        os.mkfifo(meeting)
        held = Held(here)
        program.write_text(PROGRAM.format(meeting=meeting, rest=held.run), encoding="ascii")
        program.chmod(0o755)
        study = here.study(STUDY.format(program=program))
        held.hold(after=2)
        run = here.start("run", study)
        eventually(lambda: here.runs and len(list(here.run.glob("trials/*.*"))) >= 2, "a block is committed")
        os.kill(run.pid, signal.SIGKILL)
        run.communicate(timeout=60)
        held.release()
        done = here.fairtrial("run", here.run, "--resume")
        found = record.read(here.run)
        assert found.finished
        lost = {(event.cell, event.block) for event in found.voided}
        blocks = [
            [trial for trial in found.trials if (trial.trial.cell, trial.trial.block) == block]
            for block in sorted({(trial.trial.cell, trial.trial.block) for trial in found.trials} - lost)
        ]
        assert len(blocks) == 4
        for block in blocks:
            first, second = sorted(block, key=lambda trial: trial.trial.half or 0)
            assert (first.trial.half, second.trial.half) == (1, 2)
            assert {first.trial.arm, second.trial.arm} == {"a", "b"}
            assert processors(found, first) != processors(found, second)
            assert first.window is not None
            assert second.window is not None
            assert max(first.window.start_ns, second.window.start_ns) < min(first.window.end_ns, second.window.end_ns)
            assert {first.host, second.host} == {""}
        with_first_half = [next(trial.trial.arm for trial in block if trial.trial.half == 1) for block in blocks]
        assert set(with_first_half) == {"a", "b"}
        assert "at the same time on halves of one machine (processors" in done.stdout
        here.fairtrial("verify", found.directory)
        assert here.processes() == {}
