"""What the sampler costs: processor time per second of sampling, all sources and one process.

    .venv/bin/python benches/sampler.py [--interval-ms 10] [--seconds 20] [--each] [--agent PATH]

Prints user and system time (`wait4`) as a share of one processor, ticks kept and missed, and bytes written. `--each`
measures each source alone too; what they share (waking up) then counts every time.
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

from fairtrial.wire import find_agent

SOURCES = ["cpu", "memory", "vmstat", "disks", "pressure"]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--interval-ms", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--agent", type=Path, default=None)
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


if __name__ == "__main__":
    main()
