"""What the sampler costs: processor time per second of sampling, all sources and one process.

    .venv/bin/python benches/sampler.py [--interval-ms 10] [--seconds 20] [--each] [--socket PATH] [--agent PATH]
                                         [--guest KERNEL]

Prints user and system time (`wait4`) as a share of one processor, ticks kept and missed, and bytes written. `--each`
measures each source alone too; what they share (waking up) then counts every time. With `--socket`, a MariaDB or MySQL
that root reaches there is sampled too, at 1 s and at 100 ms: the two threads that ask it, and the server's own time
beyond what it takes while nobody uses it. With `--guest`, what it costs in an emulated guest at the interval given, 100
ms and 1 s: the processor is some tens of times slower there.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from fairtrial.places import open_place
from fairtrial.wire import Agent, find_agent

SOURCES = ["cpu", "memory", "vmstat", "disks", "pressure"]
SERVER_THREADS = ["server-ticks", "server-answers"]
SERVER_INTERVALS_MS = [1000, 100]
GUEST: dict[str, object] = {"memory": "512MiB", "cpus": 2, "disk": "512MiB", "accelerator": "tcg"}
GUEST_INTERVALS_MS = [100, 1000]
PERCENT = 100


def measure(agent: Path, parameters: dict[str, object], *, seconds: float) -> str:
    """Samples for a while; returns the figures as one line."""
    with tempfile.TemporaryDirectory() as directory:
        text = json.dumps({**parameters, "output_directory": directory})
        sampler = subprocess.Popen([agent, "sample"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert sampler.stdin is not None
        assert sampler.stdout is not None
        started = time.monotonic()
        sampler.stdin.write(text)
        sampler.stdin.close()
        time.sleep(seconds)
        sampler.send_signal(signal.SIGTERM)
        said = json.loads(sampler.stdout.read().splitlines()[-1])
        _pid, status, usage = os.wait4(sampler.pid, 0)
        wall_s = time.monotonic() - started
        sampler.returncode = os.waitstatus_to_exitcode(status)
        written_bytes = sum(path.stat().st_size for path in Path(directory).iterdir())
    user, system = (PERCENT * time_s / wall_s for time_s in (usage.ru_utime, usage.ru_stime))
    return (
        f"{user + system:5.2f} % of a processor ({user:.2f} user, {system:.2f} system)   "
        f"{said['ticks']} ticks, {said['missed_ticks']} missed   {written_bytes / wall_s / 1024:.0f} KiB/s written"
    )


def nanoseconds(process: int, thread: str) -> int:
    """Processor time of a process' threads of one name (`schedstat`, finer than ticks)."""
    return sum(
        int((task / "schedstat").read_text(encoding="ascii").split()[0])
        for task in Path(f"/proc/{process}/task").iterdir()
        if thread in ("", (task / "comm").read_text(encoding="utf-8").strip())
    )


def server_of(socket: Path) -> int:
    """The process that listens on a socket."""
    said = subprocess.run(["ss", "-xlpH", "src", str(socket)], capture_output=True, text=True, check=True).stdout
    return int(said.partition("pid=")[2].partition(",")[0])


def measure_server(agent: Path, socket: Path, *, interval_ms: int, seconds: float) -> str:
    """Samples an idle server; returns the figures as one line."""
    server = server_of(socket)
    before = nanoseconds(server, "")
    time.sleep(seconds)
    idle = nanoseconds(server, "") - before
    endpoint = {"kind": "mysql", "socket": str(socket), "user": "root", "password": "", "database": "mysql"}
    with tempfile.TemporaryDirectory() as directory:
        asked = {"endpoint": endpoint, "interval_ms": interval_ms, "lock_waits": False}
        parameters = {"interval_ms": 1000, "sources": [], "server": asked, "output_directory": directory}
        sampler = subprocess.Popen([agent, "sample"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert sampler.stdin is not None
        assert sampler.stdout is not None
        sampler.stdin.write(json.dumps(parameters))
        sampler.stdin.close()
        sampler.stdout.readline()  # it samples
        before, own = nanoseconds(server, ""), [nanoseconds(sampler.pid, name) for name in SERVER_THREADS]
        time.sleep(seconds)
        after = [nanoseconds(sampler.pid, name) for name in SERVER_THREADS]
        busy = nanoseconds(server, "") - before
        sampler.send_signal(signal.SIGTERM)
        sampler.wait()
    samples = seconds * 1000 / interval_ms
    asking_ns, answering_ns = sum(after) - sum(own), busy - idle
    return (
        f"{PERCENT * asking_ns / 1e9 / seconds:6.3f} % of a processor in the sampler's two threads "
        f"({asking_ns / 1e3 / samples:.0f} µs a sample), {PERCENT * answering_ns / 1e9 / seconds:6.3f} % in the server "
        f"({answering_ns / 1e3 / samples:.0f} µs)"
    )


def measure_guest(agent: Agent, *, interval_ms: int, seconds: float) -> str:
    """Samples in a guest for a while; returns the figures as one line."""
    asked = {"interval_ms": interval_ms, "sources": SOURCES, "output_directory": "/tmp"}
    said: list[str] = []
    sampler = agent.spawn(
        name="sampler",
        argv=["fairtrial-agent", "sample"],
        stdin=json.dumps(asked),
        on_line=lambda _stream, line: said.append(line),
    )
    time.sleep(seconds)
    sampler.signal(signal.SIGTERM)
    exited = sampler.wait(seconds)
    wall_s = (exited.time_ns - sampler.started_ns) / 1e9
    user, system = (PERCENT * time_s / wall_s for time_s in (exited.usage.user_s, exited.usage.system_s))
    ticks = json.loads(said[-1])
    return (
        f"{user + system:5.2f} % of a processor ({user:.2f} user, {system:.2f} system)   "
        f"{ticks['ticks']} ticks, {ticks['missed_ticks']} missed"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interval-ms", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--socket", type=Path, default=None)
    parser.add_argument("--agent", type=Path, default=None)
    parser.add_argument("--guest", default=None, help="a kernel as the place `vm` takes it, such as debian-6.1")
    arguments = parser.parse_args()
    agent = arguments.agent or find_agent()

    def show(name: str, sources: list[str], processes: dict[str, int]) -> None:
        parameters: dict[str, object] = {
            "interval_ms": arguments.interval_ms,
            "sources": sources,
            "processes": processes,
        }
        print(f"{name:<10}{measure(agent, parameters, seconds=arguments.seconds)}", flush=True)

    own = {"server": os.getpid()}
    show("all", SOURCES, own)
    if arguments.each:
        for source in SOURCES:
            show(source, [source], {})
        show("process", [], own)
    for interval_ms in SERVER_INTERVALS_MS if arguments.socket else []:
        text = measure_server(agent, arguments.socket, interval_ms=interval_ms, seconds=arguments.seconds)
        print(f"server, every {interval_ms} ms: {text}", flush=True)
    if arguments.guest:
        with open_place("vm", {**GUEST, "kernel": arguments.guest}, holder="benches/sampler.py") as guest:
            for interval_ms in [arguments.interval_ms, *GUEST_INTERVALS_MS]:
                text = measure_guest(guest, interval_ms=interval_ms, seconds=arguments.seconds)
                print(f"guest, every {interval_ms} ms: {text}", flush=True)


if __name__ == "__main__":
    main()
