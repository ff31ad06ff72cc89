"""Kills the controller and the agent of a run at random instants and counts what is lost or left.

    .venv/bin/python benches/kills.py [--kills 50] [--seed 1] [--victim controller|agent|both]

Every kill hits a fresh moment of one long run of trials that change a kernel parameter (as root) and hold a process.
After each kill the run is resumed. Prints one line at the end; exits with 1 if anything was lost, repeated or left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.command_line import Desk, desk, eventually

from fairtrial import record
from fairtrial.record.models import TrialFinished

PARAMETER = Path("/proc/sys/vm/vfs_cache_pressure")
LONGEST_WAIT_S = 6.0  # a few trials: kills fall into every phase of one


def study(here: Desk, *, blocks: int, value: str | None) -> Path:
    setting = f"{{sysctl: {{vm.vfs_cache_pressure: {value}}}}}" if value else "{}"
    return here.study(
        f"""\
        study: kills
        workload: {{command: {{run: sleep 0.5}}}}
        settings: {setting}
        factors: {{arm: {{a: {{}}, b: {{workload: {{command: {{run: sleep 0.6}}}}}}}}}}
        arm: arm
        trials: {{blocks: {blocks}}}
        metrics: {{primary: elapsed_s}}
        telemetry: {{interval: 50ms}}
        """
    )


def victim(here: Desk, kind: str) -> int | None:
    """The controller's or the agent's process id."""
    pattern = "fairtrial-agent serve" if kind == "agent" else "/fairtrial run"
    return next((pid for pid, command in here.processes().items() if pattern in command), None)


def finished(here: Desk) -> list[str]:
    """Trials in the journal, in order."""
    if not here.runs:
        return []
    return [event.trial for event in record.read(here.run).events if isinstance(event, TrialFinished)]


def went_on(here: Desk, known: int) -> bool:
    """Whether two more trials are finished: the one that lost its stream, and one by the new agent."""
    return len(finished(here)) >= known + 2


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--victim", choices=("controller", "agent", "both"), default="both")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    before = PARAMETER.read_text()
    value = ("137" if before.strip() != "137" else "138") if os.geteuid() == 0 else None
    lost = repeated = left = changed = kills = 0
    with desk() as here:
        path = study(here, blocks=4 * options.kills, value=value)
        arguments: tuple[str, ...] = ()
        while kills < options.kills:
            process = here.start("run", path, *arguments)
            time.sleep(chance.uniform(0.3, LONGEST_WAIT_S))
            kind = chance.choice(("controller", "agent")) if options.victim == "both" else options.victim
            target = victim(here, kind)
            if target is None:
                process.kill()
                process.communicate()
                continue
            known = finished(here)
            os.kill(target, signal.SIGKILL)
            kills += 1
            if kind == "agent":
                # The run goes on with a new agent, which restores what the killed one left: stop it after a trial.
                eventually(partial(went_on, here, len(known)), "the run went on")
                process.terminate()
            process.communicate(timeout=120)
            eventually(lambda: not here.processes(), "every process gone")
            left += len(here.processes())
            changed += PARAMETER.read_text() != before
            ids = finished(here)
            lost += len(set(known) - set(ids))
            repeated += len(ids) - len(set(ids))
            arguments = ("--resume",) if here.runs else ()
        mismatches = record.verify_hashes(record.read(here.run))
        trials = len(record.read(here.run).trials)
    print(
        f"{kills} kills, {trials} trials: {lost} lost, {repeated} repeated, {left} processes left, "
        f"{changed} parameters left changed, {len(mismatches)} damaged files"
    )
    return int(bool(lost or repeated or left or changed or mismatches))


if __name__ == "__main__":
    sys.exit(main())
