"""What a farm's idle processes cost the trials beside them: with Ray's head and a worker running, and without.

    .venv/bin/python benches/farm_worker.py [--blocks 10] [--duration 20s] [--processors 0]

An A/A run of OLTP on a private MariaDB of this machine. A head and a node that offers `fairtrial` are up all the time,
idle; in the trials of the one arm they run, in those of the other they are stopped (SIGSTOP). Printed are the ratios
between the two, paired by block, each with the 90 % interval that lies within ±1 % if they are equivalent (two
one-sided tests at 5 %), samples that were missed in either, and Ray's processor time as a share of one processor.
`--processors` keeps Ray on some, as `FAIRTRIAL_FARM_PROCESSORS` does. There is no dashboard.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from page import FAIRTRIAL, STUDY, printed
from support.kin import descendants, used_s
from support.machines.ray_cluster import RayCluster, ray_cluster

from fairtrial import record
from fairtrial.record.journal import NAME, JournalReader
from fairtrial.record.models import TrialFinished, TrialStarted


@dataclass
class Idle:
    """The farm's processes.

    Attributes:
        shares: of one processor, that they used in each trial beside which they ran.
    """

    cluster: RayCluster
    shares: list[float] = field(default_factory=list)
    began: tuple[float, float] = (0.0, 0.0)

    @property
    def processes(self) -> list[int]:
        """Head, node and all that they began."""
        return descendants(self.cluster.process.pid)

    def keep_to(self, processors: set[int]) -> None:
        """Keeps every thread of them there."""
        for process in self.processes:
            for thread in Path(f"/proc/{process}/task").iterdir():
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(int(thread.name), processors)

    def stop(self) -> None:
        """They do nothing from now on."""
        for process in self.processes:
            os.kill(process, signal.SIGSTOP)

    def go_on(self) -> None:
        """They do what they do while nothing is asked of them."""
        for process in self.processes:
            os.kill(process, signal.SIGCONT)

    def used_s(self) -> float:
        """Processor time so far."""
        return sum(used_s(process) for process in self.processes)

    def beside(self, run: Path, process: subprocess.Popen[bytes]) -> None:
        """Runs beside every trial of the second arm, and only there, until the run ends."""
        journal, arms = JournalReader(run / NAME), next(iter(record.read(run).plan.factors.values()))
        runs = False
        while process.poll() is None:
            for line in journal.lines():
                if isinstance(line.entry, TrialStarted) and line.entry.trial.arm == arms[1]:
                    self.go_on()
                    self.began = (time.monotonic(), self.used_s())
                    runs = True
                if isinstance(line.entry, TrialFinished) and runs:
                    self.shares.append((self.used_s() - self.began[1]) / (time.monotonic() - self.began[0]))
                    self.stop()
                    runs = False
            time.sleep(0.1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the study and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--duration", default="20s")
    parser.add_argument("--processors", type=int, nargs="*", default=[])
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="worker-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        runs = directory / "runs"
        runs.mkdir()
        study = directory / "worker-cost.yaml"
        text = STUDY.format(blocks=options.blocks, duration=options.duration)
        study.write_text(text.replace("page-cost", "worker-cost").replace("the page", "the worker"), encoding="utf-8")
        with ray_cluster(directory, ("worker",)) as cluster:
            idle = Idle(cluster)
            if options.processors:
                idle.keep_to(set(options.processors))
            began = len(idle.processes)
            idle.stop()
            run = [FAIRTRIAL, "run", study, "--aa", "--plain", "--output", runs]
            process = subprocess.Popen(run, stdout=sys.stderr)
            try:
                while not (found := list(runs.glob("*/journal.jsonl"))) and process.poll() is None:
                    time.sleep(0.1)
                idle.beside(found[0].parent, process)
            finally:
                idle.go_on()
                process.terminate()
                process.wait()
            printed(found[0].parent, second="with the worker running")
            print(
                f"Ray: {100 * fmean(idle.shares):.2f} % of a processor, at most {100 * max(idle.shares):.2f} % in a "
                f"trial of {len(idle.shares)}; {len(idle.processes)} of {began} processes at the end"
            )


if __name__ == "__main__":
    main()
