"""What tests of guests have in common: a study of one command in them, and the wait for its first trial."""

from __future__ import annotations

import time
from pathlib import Path

from support.command_line import Desk
from support.forking import Started

FIRST_TRIAL_S = 300.0  # two boots under emulation, on a busy machine

COMMAND = """\
study: command
place: {{vm: {{kernel: {kernel}, memory: 256MiB, cpus: 1, disk: 512MiB}}}}
workload: {{command: {{run: "{run}"}}}}
factors:
  pause:
    short: {{settings: {{environment: {{PAUSE: '0.1'}}}}}}
    long: {{settings: {{environment: {{PAUSE: '0.2'}}}}}}
arm: pause
trials: {{blocks: 1, voided_limit: 0}}
metrics: {{primary: minor_faults}}
"""


def command_study(kernel: Path, run: str) -> str:
    """A study that runs a command line in guests; its arms differ in `PAUSE`."""
    return COMMAND.format(kernel=kernel, run=run)


def await_first_trial(here: Desk, running: Started) -> None:
    """Returns as soon as a trial of a run has begun; fails if the run ends before, or takes too long."""
    deadline = time.monotonic() + FIRST_TRIAL_S
    while not list((here.directory / "runs").glob("*/trials/.*")):
        assert running.poll() is None, "the run ended before its first trial"
        assert time.monotonic() < deadline, "no trial began"
        time.sleep(0.05)
