"""What a trial costs beyond ramp-up and measured time, by phase, from the record's own accounting.

    .venv/bin/python benches/overhead.py [--warehouses 1 10] [--system mariadb] [--blocks 4]

Prints seconds per phase (median over trials) and their sum for each scale.
"""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.command_line import Desk, desk

from fairtrial import record
from fairtrial.record.models import TrialRecord

RAMP_UP_S, MEASURED_S = 1.0, 3.0


def run(here: Desk, *, system: str, warehouses: int, blocks: int) -> list[TrialRecord]:
    options = "options: {innodb_buffer_pool_size: 512M}" if system == "mariadb" else ""
    path = here.study(
        f"""\
        study: overhead-{warehouses}
        system: {{{system}: {{{options}}}}}
        workload:
          tpcc: {{warehouses: {warehouses}, virtual_users: 2, ramp_up: {RAMP_UP_S}s, duration: {MEASURED_S}s}}
        factors: {{arm: {{a: {{}}, b: {{settings: {{environment: {{X: "1"}}}}}}}}}}
        arm: arm
        trials: {{blocks: {blocks}}}
        metrics: {{primary: throughput_tpm}}
        """
    )
    here.fairtrial("run", path)
    found = record.read(here.runs[-1])
    return [trial for trial in found.trials if trial.valid]


def seconds(trial: TrialRecord) -> float:
    begin, end = (datetime.fromisoformat(text) for text in (trial.started, trial.finished))
    return (end - begin).total_seconds()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--warehouses", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--system", default="mariadb")
    parser.add_argument("--blocks", type=int, default=4)
    options = parser.parse_args()
    with desk() as here:
        for warehouses in options.warehouses:
            trials = run(here, system=options.system, warehouses=warehouses, blocks=options.blocks)
            prepared = trials[0].phases_s.get("prepare", 0.0)
            rest = trials[1:]  # the first one loads the data
            phases = {
                name: median(trial.phases_s.get(name, 0.0) for trial in rest) for name in sorted(rest[0].phases_s)
            }
            phases["drive beyond ramp-up and window"] = phases.pop("drive") - RAMP_UP_S - MEASURED_S
            overhead = median(seconds(trial) for trial in rest) - RAMP_UP_S - MEASURED_S
            print(f"{options.system}, {warehouses} warehouses, {len(rest)} trials: overhead {overhead:.2f} s per trial")
            print("  " + ", ".join(f"{name} {spent:.2f}" for name, spent in phases.items()))
            print(f"  data prepared once in {prepared:.1f} s")


if __name__ == "__main__":
    main()
