"""The bad neighbour stops what it runs and never leaves it stopped."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from companion import spans
from support.command_line import eventually

SCRIPT = Path(__file__).parents[3] / "benches" / "companion.py"
TICKS = "import sys, time\nfor _ in range(100_000):\n    print('tick', flush=True); time.sleep(0.01)"


def start(*words: str) -> subprocess.Popen[bytes]:
    """Hears SIGHUP even where this process was started to ignore it, as `nohup` does."""
    heard = ("env", "--default-signal=HUP")
    return subprocess.Popen([*heard, sys.executable, SCRIPT, *words], stdout=subprocess.PIPE)


def test_spans_are_the_same_for_a_seed_and_within_their_limits() -> None:
    first, again, other = (list(itertools.islice(spans(seed, pause_s=9, length_s=2), 40)) for seed in ("1", "1", "2"))
    assert first == again != other
    assert all(0 <= pause <= 9 for pause in first[::2])
    assert all(0 <= length <= 2 for length in first[1::2])
    assert max(first[::2]) > 2


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -s KILL $$", 128 + 9)])
def test_the_exit_code_is_the_commands(script: str, code: int) -> None:
    companion = start("--", "sh", "-c", script)
    companion.communicate()
    assert companion.returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_reaches_a_command_that_is_stopped_and_ends_it(number: signal.Signals) -> None:
    companion = start("--between", "1e6", "--", sys.executable, "-c", TICKS)  # else it may let it go on again
    assert companion.stdout is not None
    assert companion.stdout.readline() == b"tick\n"
    child = ticking(companion)
    os.kill(child, signal.SIGSTOP)  # as it does itself
    eventually(lambda: state(child) == "T", "it was not stopped")
    companion.send_signal(number)
    companion.communicate()
    assert companion.returncode == 128 + number, "as a shell says it"
    assert not Path(f"/proc/{child}").exists()


def test_a_group_is_stopped_and_goes_on_and_processors_are_taken() -> None:
    seen: set[str] = set()
    companion = start("--busy", "0.2", "--stop", "0.2", "--between", "0.2", "--", sys.executable, "-c", TICKS)
    assert companion.stdout is not None
    assert companion.stdout.readline() == b"tick\n"
    child = ticking(companion)

    def look() -> bool:
        seen.add("stopped" if state(child) == "T" else "goes on")
        seen.update("spins" for pid in children(companion.pid) if b"parent" in command(pid))
        return seen >= {"stopped", "goes on", "spins"}

    eventually(look, f"only {seen}")
    companion.send_signal(signal.SIGTERM)
    companion.communicate()
    assert not children(companion.pid)


def ticking(companion: subprocess.Popen[bytes]) -> int:
    """The command, told apart from what takes the processors beside it.

    By all its words: a child that has not become its program yet still bears its parent's, which name the command too.
    """
    whole = b"\0".join(os.fsencode(word) for word in (sys.executable, "-c", TICKS, ""))
    (found,) = (pid for pid in children(companion.pid) if command(pid) == whole)
    return found


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
