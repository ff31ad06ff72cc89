"""What a test costs is all that was computed for it, by whichever process."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
pytest_plugins = ["pytester"]

SPINNER = "import time\nwhile time.process_time() < 0.3: pass"
SUITE = f"""
    import subprocess, sys, time
    import pytest

    SPINNER = {SPINNER!r}

    def test_that_spins():
        began = time.process_time()
        while time.process_time() < began + 0.3:
            pass

    def test_of_what_has_ended():
        subprocess.run([sys.executable, "-c", SPINNER], check=True)

    @pytest.fixture(scope="module")
    def living():
        with subprocess.Popen(
            [sys.executable, "-c", SPINNER + "\\nprint('done', flush=True)\\nimport sys; sys.stdin.read()"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as found:
            yield found

    def test_of_what_lives_on(living):
        assert living.stdout.readline() == b"done\\n"

    def test_that_sleeps(living):
        time.sleep(0.2)
"""


def test_processor_time_is_of_all_processes_and_waiting_is_none(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    pytester.makeconftest(
        "from support.costs import Costs\n"
        "def pytest_configure(config):\n    config.pluginmanager.register(Costs(), 'costs')\n"
    )
    pytester.makepyfile(test_it=SUITE)
    output = "\n".join(pytester.runpytest_subprocess("-p", "no:cacheprovider").outlines)
    found = re.search(r"(?m)^ *([\d.]+) +([\d.]+)  test_it\.py$", output)
    assert found is not None, output
    wall_s, processor_s = float(found[1]), float(found[2])
    assert processor_s >= 0.9, "of the test, of a process that has ended and of one that lives on"
    assert wall_s >= 1.1, "and sleeping"
