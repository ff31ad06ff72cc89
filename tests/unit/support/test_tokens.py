"""Tokens: as many tests compute as there are tokens, one may have all, and a dead worker keeps none."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from support.command_line import eventually
from support.tokens import held

WAIT_S = 60.0
TESTS = Path(__file__).parents[2]
FEW = """\
from support import tokens

tokens.TOKENS_A_PROCESSOR = 1

def pytest_configure(config):
    tokens.register(config)
"""
INI = "[pytest]\nmarkers =\n    alone\n    waits\n"
pytest_plugins = ["pytester"]

SUITE = """
    import os, time
    from pathlib import Path
    import pytest

    LOG = Path({log!r})

    def note(what):
        with LOG.open("a") as log:
            log.write(what + "\\n")

    @pytest.fixture
    def server():
        note("begin")
        yield
        note("end")

    @pytest.mark.parametrize("number", range(6))
    def test_that_computes(server, number):
        time.sleep(0.02)

    @pytest.mark.alone
    @pytest.mark.timeout(60)
    def test_that_is_alone(server):
        note("alone")
        time.sleep(0.1)
        note("no longer alone")
"""

LOOKING_CONFTEST = """
    import fcntl
    from pathlib import Path
    from support.tokens import Worker

    DIRECTORY = Path({directory!r})

    def pytest_configure(config):
        config.pluginmanager.register(Worker(DIRECTORY, tokens=1), "tokens")

    def pytest_timeout_set_timer(item, settings):
        with (DIRECTORY / "0").open("a") as token:
            try:
                fcntl.flock(token, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                token.write("held")
"""


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


class Holder:
    """A thread that holds tokens until it is told."""

    def __init__(self, directory: Path, count: int) -> None:
        self.holds, self._enough = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold, args=(directory, count), daemon=True)
        self._thread.start()

    def _hold(self, directory: Path, count: int) -> None:
        with held(directory, count=count, of=2):
            self.holds.set()
            self._enough.wait(WAIT_S)

    def end(self) -> None:
        self._enough.set()
        self._thread.join(WAIT_S)


def test_as_many_hold_one_as_there_are(tmp_path: Path) -> None:
    first, second = Holder(tmp_path, 1), Holder(tmp_path, 1)
    assert first.holds.wait(WAIT_S)
    assert second.holds.wait(WAIT_S)
    third = Holder(tmp_path, 1)
    assert not third.holds.wait(0.1)
    first.end()
    assert third.holds.wait(WAIT_S)
    second.end()
    third.end()


def test_who_wants_all_is_not_passed_by_and_who_wants_none_never_waits(tmp_path: Path) -> None:
    first = Holder(tmp_path, 1)
    assert first.holds.wait(WAIT_S)
    everything = Holder(tmp_path, 2)
    eventually(lambda: is_locked(tmp_path / "1"), "the free one was not kept for it")
    assert is_locked(tmp_path / "turn"), "two that gather would wait for each other"
    late, waiting = Holder(tmp_path, 1), Holder(tmp_path, 0)
    assert waiting.holds.wait(WAIT_S)
    assert not late.holds.wait(0.1)
    first.end()
    assert everything.holds.wait(WAIT_S)
    assert not late.holds.wait(0.1)
    everything.end()
    assert late.holds.wait(WAIT_S)
    late.end()
    waiting.end()


def is_locked(path: Path) -> bool:
    """Whether some process has a lock on a file (proc(5), `/proc/locks`)."""
    inode = f":{path.stat().st_ino} " if path.exists() else "?"
    return inode in Path("/proc/locks").read_text(encoding="ascii")


def test_a_killed_holder_holds_no_longer(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    holder = os.fork()
    if holder == 0:
        with held(tmp_path, count=2, of=2):
            os.write(writer, b"x")
            signal.pause()
        os._exit(0)
    assert os.read(reader, 1) == b"x"
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    with held(tmp_path, count=2, of=2):
        pass
    os.close(reader)
    os.close(writer)


def test_a_suite_on_many_workers_computes_on_its_tokens(pytester: pytest.Pytester, tmp_path: Path) -> None:
    log = tmp_path / "log"
    pytester.makeconftest(FEW)
    pytester.makeini(INI)
    pytester.makepyfile(SUITE.format(log=str(log)))
    pytester.runpytest_subprocess("-n", "4", "-p", "no:cacheprovider").assert_outcomes(passed=7)
    running, most = 0, 0
    lines = log.read_text(encoding="utf-8").splitlines()
    for line in lines:
        running += {"begin": 1, "end": -1}.get(line, 0)
        most = max(most, running)
    assert most <= len(os.sched_getaffinity(0)), "fixtures included"
    alone = lines.index("alone")
    assert lines[alone - 1 : alone + 3] == ["begin", "alone", "no longer alone", "end"]


def test_the_time_limit_of_a_test_begins_when_it_has_its_token(pytester: pytest.Pytester, tmp_path: Path) -> None:
    pytester.makeconftest(LOOKING_CONFTEST.format(directory=str(tmp_path)))
    pytester.makeini(INI)
    pytester.makepyfile("import pytest\n@pytest.mark.timeout(600)\ndef test_it():\n    pass\n")
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
    assert (tmp_path / "0").read_text(encoding="utf-8") == "held"
