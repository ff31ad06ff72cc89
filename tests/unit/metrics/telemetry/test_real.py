"""The real sampler on this machine, against what the test itself read before and after."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from support.command_line import PATIENCE_S, eventually

from fairtrial.metrics import telemetry
from fairtrial.metrics.telemetry import stream
from fairtrial.record.models import Window
from fairtrial.wire import find_agent

SOURCES = ["cpu", "memory", "vmstat", "disks", "pressure"]
INTERVAL_MS = 100
MEASURED_S = 2.0
# Between samples beside an edge; where they are further apart than twice the interval, a source gives no value.
CLOSE_NS = 1.5 * INTERVAL_MS * 1e6
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def counters() -> dict[str, int]:
    """What `/proc` says now, read and taken apart without the sampler's code."""
    found = {}
    for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
        name, value = line.split()
        found[name] = int(value)
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, *values = line.split()
        if name == "ctxt":
            found["ctxt"] = int(values[0])
        if name == "cpu":
            found["busy"] = sum(map(int, values[:3]))
    for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines():
        name, value = line.split(": ")
        found[f"self.{name}"] = int(value)
    return found


@dataclass(frozen=True)
class Sampled:
    """Some seconds of this machine: files, the window inside, and the test's own readings around and inside it."""

    directory: Path
    window: Window
    outside: tuple[dict[str, int], dict[str, int]]
    inside: tuple[dict[str, int], dict[str, int]]
    cpu_s: float
    written_bytes: int

    def growth(self, name: str) -> tuple[int, int]:
        """Least and most that a counter can have grown by inside the window."""
        least = self.inside[1][name] - self.inside[0][name]
        most = self.outside[1][name] - self.outside[0][name]
        return least, most


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    directory = tmp_path_factory.mktemp("telemetry")
    before = counters()
    sampler = start(directory)
    try:
        start_ns = edge(directory, after_ns=0)
        first, cpu_s = counters(), time.process_time()
        written_bytes = work(directory)
        last, cpu_s = counters(), time.process_time() - cpu_s
        end_ns = edge(directory, after_ns=time.monotonic_ns())
    finally:
        sampler.send_signal(signal.SIGTERM)
        said, errors = sampler.communicate(timeout=PATIENCE_S)
    after = counters()
    assert sampler.returncode == 0, errors
    assert json.loads(said.splitlines()[-1])["ticks"] > 1
    for file in sorted(directory.glob("*.arrows")):
        assert file.read_bytes().endswith(b"\xff\xff\xff\xff\x00\x00\x00\x00"), f"{file} has no end"
        assert telemetry.to_parquet(file, file.with_suffix(".parquet")) > 1
    return Sampled(
        directory=directory,
        window=Window(start_ns=start_ns, end_ns=end_ns),
        outside=(before, after),
        inside=(first, last),
        cpu_s=cpu_s,
        written_bytes=written_bytes,
    )


def start(directory: Path) -> subprocess.Popen[str]:
    parameters = {
        "interval_ms": INTERVAL_MS,
        "sources": SOURCES,
        "processes": {"server": os.getpid()},
        "output_directory": str(directory),
    }
    sampler = subprocess.Popen(
        [find_agent(), "sample"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert sampler.stdin is not None
    sampler.stdin.write(json.dumps(parameters))
    sampler.stdin.close()
    sampler.stdin = None
    return sampler


def edge(directory: Path, *, after_ns: int) -> int:
    """A moment between two samples of every source that were taken in time, once there are two after another one."""
    found: list[int] = []

    def is_found() -> bool:
        first, last = (times_ns(directory, source) for source in (SOURCES[0], "process-server"))
        ticks = pairwise(zip(first, last, strict=False))  # a file may be ahead of the other one
        found.extend(
            (ended_ns + next_ns) // 2
            for (began_ns, ended_ns), (next_ns, next_ended_ns) in ticks
            if began_ns > after_ns and next_ended_ns - began_ns <= CLOSE_NS
        )
        return bool(found)

    eventually(is_found, "no two samples in time")
    return found[0]


def times_ns(directory: Path, source: str) -> list[int]:
    """When a source was read, as far as its file tells."""
    path = directory / f"telemetry-{source}.arrows"
    frame = stream.read(path) if path.exists() else None
    return [] if frame is None else frame["time_ns"].to_list()


def work(directory: Path) -> int:
    """Burns processor time and writes to a file; returns the bytes written."""
    deadline = time.monotonic() + MEASURED_S
    chunk = os.urandom(1 << 16)
    written = 0
    with (directory / "written").open("wb") as file:
        while time.monotonic() < deadline:
            written += file.write(chunk)
            file.flush()
            sum(range(20_000))
    return written


def computed(sampled: Sampled) -> dict[str, float]:
    return telemetry.compute(sampled.directory, window=sampled.window, ticks_per_s=TICKS_PER_S)


def test_all_that_this_kernel_tells_is_computed(sampled: Sampled) -> None:
    values = computed(sampled)
    pressure = {name for name in telemetry.DEFINITIONS if name.endswith("_stall_share")}
    others = ("telemetry-server.", "telemetry-governor.", "telemetry-prometheus-")
    of_the_place = {name for name, each in telemetry.DEFINITIONS.items() if not each.source.startswith(others)}
    wanted = of_the_place - (set() if Path("/proc/pressure/cpu").exists() else pressure)
    assert wanted - set(values) <= {
        "refaults",
        "disk_read_bytes",
        "disk_written_bytes",
    }  # no swap or no disk of its own
    assert sum(value for name, value in values.items() if name in telemetry.DEFINITIONS and name in CPU_SHARES) == (
        pytest.approx(1.0, abs=0.02)
    )


CPU_SHARES = ("cpu_user_share", "cpu_system_share", "cpu_iowait_share", "cpu_steal_share", "cpu_idle_share")


@pytest.mark.parametrize(
    ("metric", "counter"),
    [("context_switches", "ctxt"), ("major_faults", "pgmajfault"), ("swapped_out_pages", "pswpout")],
)
def test_a_counter_grew_by_no_less_than_inside_and_no_more_than_around(
    sampled: Sampled, metric: str, counter: str
) -> None:
    least, most = sampled.growth(counter)
    assert least <= computed(sampled)[metric] <= most


def test_the_followed_process_s_time_is_what_it_says_itself(sampled: Sampled) -> None:
    tick_s = 1 / TICKS_PER_S
    assert computed(sampled)["server_cpu_s"] >= sampled.cpu_s - 2 * tick_s
    assert computed(sampled)["server_cpu_s"] <= (sampled.window.end_ns - sampled.window.start_ns) / 1e9 + 2 * tick_s


def test_the_followed_process_s_writes_are_what_it_wrote(sampled: Sampled) -> None:
    frame = telemetry.read(sampled.directory, "process-server")
    characters = frame["wchar"].to_list()
    assert sampled.written_bytes <= characters[-1] - characters[0] <= sampled.growth("self.wchar")[1]


def test_samples_keep_their_interval_and_never_bunch(sampled: Sampled) -> None:
    gaps_ns = telemetry.read(sampled.directory, "cpu")["time_ns"].diff().drop_nulls()[:-1]  # the last is the final one
    assert gaps_ns.mean() >= INTERVAL_MS * 1e6 * 0.9
    assert gaps_ns.median() < INTERVAL_MS * 1e6 * 3, "most are taken when they are due, however busy the machine"
    assert (gaps_ns > 0).all()


def test_memory_of_this_process_is_what_it_says_itself(sampled: Sampled) -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    resident = computed(sampled)["server_resident_bytes_mean"]
    assert resident == pytest.approx(pages * os.sysconf("SC_PAGE_SIZE"), rel=0.5)
