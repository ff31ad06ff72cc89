"""The forked command that most tests use is the installed one: the same output, exit code and end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import forking
from support.command_line import FAIRTRIAL, Desk, desk, eventually

SLEEPING = """\
study: sleeping
question: Does it end?
workload: {command: {run: sleep 600}}
factors: {sleep: {one: {}, two: {workload: {command: {run: sleep 601}}}}}
arm: sleep
trials: {blocks: 1}
metrics: {primary: elapsed_s}
"""


@pytest.fixture
def here() -> Iterator[Desk]:
    with desk() as made:
        yield made


@pytest.mark.parametrize("arguments", [["schema"], ["plan", "missing.yaml"], ["--nonsense"], []])
def test_it_says_and_returns_what_the_installed_command_does(arguments: list[str], here: Desk) -> None:
    started = subprocess.run(
        [FAIRTRIAL, *arguments], cwd=here.directory, env=here.environment, capture_output=True, text=True, check=False
    )
    done = here.fairtrial(*arguments, code=None)
    assert (done.returncode, done.stdout, done.stderr) == (started.returncode, started.stdout, started.stderr)


def test_it_ends_when_nobody_waits_for_it_any_more(here: Desk) -> None:
    study = here.study(SLEEPING)
    calling = (
        f"from support.command_line import Desk; from pathlib import Path; {here!r}.fairtrial('run', {str(study)!r})"
    )
    calling = calling.replace("PosixPath", "Path")
    environment = {**os.environ, "PYTHONPATH": str(Path(forking.__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", calling], env=environment) as caller:
        eventually(lambda: any("sleep 60" in line for line in here.processes().values()), "the command never slept")
        caller.kill()
    eventually(lambda: not here.processes(), "the command or its agent outlived its caller")


def test_one_that_runs_on_is_a_session_that_proc_tells_of_and_ends_as_it_is_told(here: Desk) -> None:
    started = here.start("run", here.study(SLEEPING))
    eventually(lambda: any("sleep 60" in line for line in here.processes().values()), "the command never slept")
    assert f"{FAIRTRIAL} run" in here.processes()[started.pid]
    assert os.getsid(started.pid) == started.pid
    assert started.poll() is None
    started.kill()
    eventually(
        lambda: f"{started.pid} (python) Z" in (Path("/proc") / str(started.pid) / "stat").read_text(), "its end"
    )
    started.communicate()
    assert started.returncode == -signal.SIGKILL
    eventually(lambda: not here.processes(), "its agent outlived the command")
    ended = here.start("plan", "missing.yaml")
    output, _ = ended.communicate(timeout=60)
    assert ended.returncode == 2
    assert "missing.yaml" in output
