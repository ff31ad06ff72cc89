"""What the live page costs the run that it shows.

    .venv/bin/python benches/page.py [--blocks 10] [--duration 20s] [--readers 3]

An A/A run of OLTP on a private MariaDB, bound by processors: no commit waits for the disk, whose noise hides a
percent. In every trial of the one arm so many readers are connected to the page, as browsers are (pages fetched once,
then the stream of events); in the other's nobody is. Printed are the ratios between the two, paired by block, of the
server's throughput and the load's processor time, each with the 90 % interval that lies within ±1 % if they are
equivalent (two one-sided tests at 5 %), samples that were missed in either, and the page's processor time as a share
of one processor while somebody looks. Browsers' own work is not the page's: they are a process that runs only where a
processor is idle.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import math
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import fmean

import numpy as np

from fairtrial import record
from fairtrial.analyse.inference import t_tests
from fairtrial.record.journal import NAME, JournalReader
from fairtrial.record.models import TrialFinished, TrialStarted

FAIRTRIAL = Path(sys.executable).with_name("fairtrial")
ADDRESS = re.compile(r"page: http://(127\.0\.0\.1:\d+/[\w-]+)/\S*\?token=(\S+)")
EQUIVALENT = math.log(1.01)
METRICS = ("throughput_tps", "client_busy_share", "latency_ns_p95", "context_switches_per_transaction")
STUDY = """
study: page-cost
question: Does the run feel the page?
place: {{local: {{}}}}
system: {{mariadb: {{options: {{innodb_buffer_pool_size: 128M, innodb_flush_log_at_trx_commit: 0}}}}}}
workload: {{oltp: {{virtual_users: 2, table_size: 10000, ramp_up: 2s, duration: {duration}, interval: 1s}}}}
factors: {{arm: {{one: {{}}, other: {{system: {{mariadb: {{options: {{sync_binlog: 0}}}}}}}}}}}}
arm: arm
trials: {{blocks: {blocks}, seed: 1}}
metrics: {{primary: throughput_tps}}
telemetry: {{interval: 100ms}}
"""


class Reader(threading.Thread):
    """A browser as the page sees one: fetches the run, then takes its events until it is told to go."""

    def __init__(self, address: str, cookie: str, run: str) -> None:
        super().__init__(daemon=True)
        self.host, _, root = address.partition("/")
        self.cookie, self.path = cookie, f"/{root}/runs/{run}"
        self.bytes = 0
        self._connection: http.client.HTTPConnection | None = None

    def run(self) -> None:
        """Reads until the connection is closed."""
        headers = {"Cookie": self.cookie}
        page = http.client.HTTPConnection(self.host)
        page.request("GET", self.path, headers=headers)
        since = re.search(r'data-since="([^"]+)"', page.getresponse().read().decode())
        page.close()
        self._connection = http.client.HTTPConnection(self.host)
        with contextlib.suppress(OSError, http.client.HTTPException, AttributeError, ValueError):
            query = since[1] if since else ""
            self._connection.request("GET", f"{self.path}/events?since={query}", headers=headers)
            answer = self._connection.getresponse()
            while line := answer.readline():
                self.bytes += len(line)

    def close(self) -> None:
        """Goes away."""
        if self._connection is not None and self._connection.sock is not None:
            with contextlib.suppress(OSError):
                self._connection.sock.shutdown(2)


def browsing(orders: Connection) -> None:
    """Looks at the page that an order names with so many readers, until the next order; ends with an empty one."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    looking: list[Reader] = []
    while (order := orders.recv()) is not None:
        for each in looking:
            each.close()
        readers, page = order
        looking = [Reader(*page) for _ in range(readers)]
        for each in looking:
            each.start()


def ticks_s(process: int) -> float:
    """Processor time of a process so far, seconds."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def logged_in(address: str, token: str) -> str:
    """The cookie that a token is traded for."""
    host, _, root = address.partition("/")
    connection = http.client.HTTPConnection(host)
    connection.request("GET", f"/{root}/?token={token}")
    cookie = connection.getresponse().getheader("set-cookie", "")
    connection.close()
    return cookie.partition(";")[0]


def followed(
    run: Path, process: subprocess.Popen[bytes], page: tuple[int, str, str], *, browsers: Connection, readers: int
) -> list[float]:
    """Looks on in every trial of the second arm; shares of a processor that the page took in each."""
    served, address, cookie = page
    journal, arms = JournalReader(run / NAME), next(iter(record.read(run).plan.factors.values()))
    looking = False
    shares: list[float] = []
    began = (0.0, 0.0)
    while process.poll() is None:
        for line in journal.lines():
            if isinstance(line.entry, TrialStarted) and line.entry.trial.arm == arms[1]:
                began = (time.monotonic(), ticks_s(served))
                browsers.send((readers, (address, cookie, run.name)))
                looking = True
            if isinstance(line.entry, TrialFinished) and looking:
                shares.append((ticks_s(served) - began[1]) / (time.monotonic() - began[0]))
                browsers.send((0, ()))
                looking = False
        time.sleep(0.1)
    return shares


def printed(run: Path, *, second: str) -> None:
    """Ratios of the second arm to the first, paired by block; `second`: what is different in it."""
    read = record.read(run)
    closed, opened = next(iter(read.plan.factors.values()))
    by_block: dict[int, dict[str, dict[str, float]]] = defaultdict(dict)
    missed: dict[str, int] = defaultdict(int)
    for trial in read.trials:
        if trial.valid:
            by_block[trial.trial.block][trial.trial.arm] = trial.scalars
        log = read.trial_directory(trial.trial.id) / "log" / "sampler.log"
        for line in log.read_text(encoding="utf-8").splitlines():
            if "missed_ticks" in line:
                missed[trial.trial.arm] += json.loads(line)["missed_ticks"]
    for metric in METRICS:
        pairs = [
            math.log(arms[opened][metric] / arms[closed][metric])
            for arms in by_block.values()
            if min(arms.get(arm, {}).get(metric, 0) for arm in (closed, opened)) > 0
        ]
        test = t_tests.mean(np.asarray(pairs), confidence=0.95)
        if test is not None:
            ends = test.interval(confidence=0.90)
            low, high = (math.exp(end) for end in ends)
            equal = "equivalent within 1 %" if max(map(abs, ends)) < EQUIVALENT else "not shown to be equivalent"
            print(f"{metric:34} {math.exp(test.estimate):.4f}  {low:.4f} to {high:.4f}  ({len(pairs)} blocks) {equal}")
    print(f"missed samples: {missed[opened]} {second}, {missed[closed]} without")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the study and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--duration", default="20s")
    parser.add_argument("--readers", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="page-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        runs = directory / "runs"
        runs.mkdir()
        study = directory / "page-cost.yaml"
        study.write_text(STUDY.format(blocks=options.blocks, duration=options.duration), encoding="utf-8")
        serve = subprocess.Popen([FAIRTRIAL, "serve", runs, "--no-browser"], stdout=subprocess.PIPE, text=True)
        assert serve.stdout is not None
        found = ADDRESS.search(serve.stdout.readline())
        assert found is not None
        page = (serve.pid, found[1], logged_in(found[1], found[2]))
        browsers, orders = multiprocessing.Pipe()
        browser = multiprocessing.get_context("spawn").Process(target=browsing, args=(orders,), daemon=True)
        browser.start()
        process = subprocess.Popen([FAIRTRIAL, "run", study, "--aa", "--plain", "--output", runs], stdout=sys.stderr)
        try:
            while not (found_runs := list(runs.glob("*/journal.jsonl"))) and process.poll() is None:
                time.sleep(0.1)
            run = found_runs[0].parent
            shares = followed(run, process, page, browsers=browsers, readers=options.readers)
            printed(run, second="with the page open")
            print(
                f"the page: {100 * fmean(shares):.2f} % of a processor with {options.readers} readers, at most "
                f"{100 * max(shares):.2f} % in a trial of {len(shares)}"
            )
        finally:
            browsers.send(None)
            process.terminate()
            process.wait()
            serve.terminate()
            serve.wait()


if __name__ == "__main__":
    main()
