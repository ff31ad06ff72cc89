"""What a test does at its moment, also while it stands still itself: in a process with a session of its own.

A busy machine may stop the process group of the tests. What they started with `Desk.start` goes on meanwhile, and so
does what they started here.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from support.command_line import desk_in, eventually

PROGRAM = """
import importlib, json, sys
module, name, arguments = json.loads(sys.argv[1])
print("ready", flush=True)
getattr(importlib.import_module(module), name)(*arguments)
"""
TESTS = Path(__file__).parents[2]


@contextmanager
def apart(act: Callable[..., object], *arguments: str | int) -> Iterator[None]:
    """Runs a function of a module of `support` beside what is in the block; fails with its words if it failed."""
    said = [sys.executable, "-c", PROGRAM, json.dumps([act.__module__, act.__name__, arguments])]
    with subprocess.Popen(
        said, cwd=TESTS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield
            _, complaint = process.communicate()
            assert process.returncode == 0, complaint
        finally:
            if process.poll() is None:
                process.kill()


def kill_at_work(directory: str, begun: str, words: str) -> None:
    """Kills a desk's process of these words once a file says something that its state directory has by this pattern."""
    here = desk_in(directory)
    eventually(lambda: any(file.read_bytes() for file in here.state.glob(begun)), f"nothing at {begun}")
    (killed,) = (pid for pid, command in here.processes().items() if words in command)
    os.kill(killed, signal.SIGKILL)
