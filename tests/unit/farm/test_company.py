"""Ray's processes are kept on some processors of a node; trials are not, whichever worker runs them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# Ray's daemon: starts a worker, and later another one.
DAEMON = """
import subprocess, sys
for _ in range(2):
    subprocess.run([sys.executable, "-c", sys.argv[1]], check=True)
"""
WORKER = """
import os
from fairtrial.farm.company import Company
Company()
print(os.sched_getaffinity(os.getppid()), os.sched_getaffinity(0))
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor is all there is")
def test_the_daemon_is_kept_on_its_processors_and_trials_have_all() -> None:
    own = os.sched_getaffinity(0)
    kept = min(own)
    environment = {**os.environ, "FAIRTRIAL_FARM_PROCESSORS": str(kept)}
    argv = [sys.executable, "-c", DAEMON, WORKER]
    said = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.partition(" {")[0] for line in said] == [f"{{{kept}}}"] * 2
    assert all(own <= set(map(int, line.rpartition("{")[2].rstrip("}").split(","))) for line in said)
