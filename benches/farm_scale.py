"""What a farm's controller costs, by the number of hosts, with trials that only wait.

    .venv/bin/python benches/farm_scale.py [--slots 1 10 100 500] [--seconds 60] [--wait 10] [--trials N] [--keep DIR]

One small real run gives a trial of every cell and arm. Each host is then a process that waits as long as its block is
said to take and hands back copies of those trials, as a host does: real files, real hashes, a real journal. All on the
controller's side is the product's own. Printed for each number of slots: blocks per second and their share of the ideal
(slots / wait), the controller's processor time per trial in the first and the last fifth of the run, its memory, the
journal's size, and how long `verify` takes. Each runs about `--seconds`, or `--trials` trials if that is given.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from fairtrial import plan as planning
from fairtrial import record
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.farm.controller import FarmRun
from fairtrial.farm.leases import Leases
from fairtrial.farm.orders import Order, Outcome
from fairtrial.farm.station import Quiet, fresh, trials_below
from fairtrial.record.files import hashes
from fairtrial.record.models import PlaceOpened, PlannedTrial, TrialFinished, TrialRecord
from fairtrial.study.resolved import Section

JITTER = 0.3  # of a wait: hosts whose blocks all end at once would keep each other waiting for this machine
FAIRTRIAL = Path(sys.executable).with_name("fairtrial")
STUDY = Path(__file__).parents[1] / "studies" / "sqlite-wal.yaml"


def waiting(host: str, directory: Path, connection: Connection, *, model: Path, wait_s: float) -> None:
    """A host's process: waits, then hands a block back as one that ran."""
    known = record.read(model)
    opened = next(event for event in known.events if isinstance(event, PlaceOpened))
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            order = Order.model_validate_json(connection.recv_bytes())
            time.sleep(wait_s * random.uniform(1 - JITTER, 1 + JITTER))
            where = trials_below(fresh(directory), order.run)
            trials = [copied(known, trial, where) for trial in order.trials]
            finished = [
                TrialFinished(trial=each.trial.id, valid=True, files=hashes(where / each.trial.id)) for each in trials
            ]
            place = opened.model_copy(update={"host": host})
            outcome = Outcome(host=host, trials=trials, finished=finished, places=[place])
            connection.send_bytes(outcome.model_dump_json().encode())


def copied(known: record.Record, planned: PlannedTrial, where: Path) -> TrialRecord:
    """A trial of the model, as if it were another."""
    like = next(each for each in known.trials if (each.trial.cell, each.trial.arm) == (planned.cell, planned.arm))
    shutil.copytree(known.trial_directory(like.trial.id), where / planned.id)
    trial = like.model_copy(update={"trial": planned})
    (where / planned.id / "trial.json").write_text(trial.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return trial


class Meter(Quiet):
    """Notes the controller's processor time after every trial."""

    def __init__(self) -> None:
        super().__init__()
        self.used_s: list[float] = []

    def trial_finished(self, trial: TrialRecord) -> None:
        """See `fairtrial.run.Progress`."""
        del trial
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.used_s.append(usage.ru_utime + usage.ru_stime)


def conducted(model: Path, directory: Path, *, slots: int, blocks: int, wait_s: float) -> dict[str, float]:
    """Runs so many blocks per cell on so many slots."""
    kinds = catalogue()
    study = language.load(STUDY, catalogue=kinds, size="ci", overrides=[f"trials.blocks={blocks}"])
    plan = planning.make(study, catalogue=kinds)
    writer = record.create(directory, plan=plan, sources={"study.yaml": STUDY.read_text(encoding="utf-8")})
    meter = Meter()
    hosts = {f"h{number:03}": Section({"local": {}}) for number in range(slots)}
    body = functools.partial(waiting, model=model, wait_s=wait_s)
    run = FarmRun(writer=writer, progress=meter, farm=functools.partial(Leases, hosts, body=body))
    began = time.monotonic()
    run.execute()
    took = time.monotonic() - began
    writer.close()
    fifth = max(1, len(meter.used_s) // 5)
    start = time.monotonic()
    subprocess.run([FAIRTRIAL, "verify", directory], check=True, stdout=subprocess.DEVNULL)
    out_s = len(plan.trials) / 2 / slots * wait_s
    return {
        "slots": slots,
        "trials": len(plan.trials),
        "seconds": took,
        "blocks/s": len(plan.trials) / 2 / took,
        "of ideal": out_s / took,
        "ms/trial first fifth": 1000 * (meter.used_s[fifth - 1] - meter.used_s[0]) / max(1, fifth - 1),
        "ms/trial last fifth": 1000 * (meter.used_s[-1] - meter.used_s[-fifth]) / max(1, fifth - 1),
        "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "journal MiB": (directory / "journal.jsonl").stat().st_size / 2**20,
        "verify s": time.monotonic() - start,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 10, 100, 500])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--wait", type=float, default=10)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--keep", type=Path, help="directory in which records stay")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="farm-") as name:
        temporary = Path(name)
        model = temporary / "model"
        command = [FAIRTRIAL, "run", STUDY, "--size", "ci", "--set", "trials.blocks=1", "--plain", "--output", model]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        kept = options.keep or temporary / "runs"
        for slots in options.slots:
            rounds = max(1, round(options.seconds / options.wait))
            blocks = options.trials // 4 if options.trials else max(1, slots * rounds // 2)
            where = kept / f"farm-{slots}"
            found = conducted(next(model.iterdir()), where, slots=slots, blocks=blocks, wait_s=options.wait)
            print(json.dumps({key: round(value, 3) for key, value in found.items()}), flush=True)


if __name__ == "__main__":
    main()
