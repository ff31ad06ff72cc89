"""A signal that ends a run is heard wherever it finds the process."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.command_line import PATIENCE_S

WAITING = """
import os, signal, threading, time
from pydantic import BaseModel, model_serializer
from fairtrial.run.interrupting import goes_first, heed
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
REPLACED = """
    class Written(BaseModel):
        @model_serializer
        def write(self):
            signal.raise_signal(signal.SIGTERM)
    with goes_first():
        Written().model_dump_json()
"""


@pytest.mark.parametrize(
    "come", [ELSEWHERE, DROPPED, REPLACED], ids=["in another thread", "in a destructor", "in a function of a library"]
)
def test_a_stop_ends_a_wait_without_a_limit(come: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WAITING.format(come=come.strip())],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stdout == "heard\n", done.stderr
