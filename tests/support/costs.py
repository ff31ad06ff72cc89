"""What tests cost: `pytest --costs` prints each file's processor time, and how long it waited for something else."""

from __future__ import annotations

import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROWS = 60
COST = "fairtrial_cost"


class Costs:
    """Measures every test, wherever it runs, and sums up where the results arrive."""

    def __init__(self) -> None:
        self.by_file: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Around set-up, call and tear-down; the last report carries the cost to the controller."""
        began_s, used_s = time.monotonic(), _processor_s()
        item.stash[BEGAN] = (began_s, used_s)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """At the end of each phase."""
        report: pytest.TestReport = yield
        if call.when == "teardown":
            began_s, used_s = item.stash[BEGAN]
            report.user_properties.append((COST, (time.monotonic() - began_s, _processor_s() - used_s)))
        return report  # type: ignore[return-value]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Where the results arrive."""
        for name, value in report.user_properties:
            if name == COST and report.when == "teardown":
                sums = self.by_file[report.location[0]]
                sums[0] += value[0]
                sums[1] += value[1]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table."""
        rows = sorted(self.by_file.items(), key=lambda row: -row[1][0])[:ROWS]
        terminalreporter.section("costs")
        terminalreporter.write_line(f"{'wall s':>8} {'processor s':>12}  file")
        for file, (wall_s, processor_s) in rows:
            terminalreporter.write_line(f"{wall_s:8.1f} {processor_s:12.1f}  {file}")


BEGAN = pytest.StashKey[tuple[float, float]]()


def _processor_s() -> float:
    """Of this process, those below it that have ended, and its children that live on, such as what forks commands."""
    ended = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in ended) + sum(map(_living_s, _children()))


def _children() -> list[str]:
    return [pid for task in Path("/proc/self/task").iterdir() for pid in _of_thread(task)]


def _of_thread(task: Path) -> list[str]:
    try:
        return (task / "children").read_text(encoding="utf-8").split()
    except OSError:  # the thread has ended
        return []


def _living_s(pid: str) -> float:
    """Of a process and of those below it that have ended: fields 14 to 17 of its `stat` (proc(5))."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")
