"""A signal that ends a run is heard wherever it finds the process."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.command_line import PATIENCE_S

WAITING = """
import os, signal, threading, time
from fairtrial.run.interrupting import heed
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()  # may take the signal
heed()
waiting = threading.Lock()
waiting.acquire()
try:
    {come}
    waiting.acquire()
except KeyboardInterrupt:
    print("heard")
"""
ELSEWHERE = """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # so another thread takes it
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
"""
DROPPED = """
    class Dropping:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)
    Dropping()
"""


@pytest.mark.parametrize("come", [ELSEWHERE, DROPPED], ids=["in another thread", "in a destructor"])
def test_a_stop_ends_a_wait_without_a_limit(come: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WAITING.format(come=come.strip())],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stdout == "heard\n", done.stderr
