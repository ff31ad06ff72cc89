"""A farm on this machine whose processes are killed at random instants: what is lost, doubled, or left behind.

    .venv/bin/python benches/farm_chaos.py [--farm places | ray] [--kills 50] [--hosts 4] [--seed 1]

Every trial mounts a file system of its own below its host's state directory and works there for a while. Meanwhile
processes are killed with SIGKILL: those that run a host's blocks, agents, programs under test, the controller (the run
is then resumed), of Ray whole nodes (which come back). Printed are the kills by kind, and faults found: trials lost or
doubled, blocks of which only a part counts, blocks on two hosts, records that do not verify, mounts and processes left.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.command_line import FAIRTRIAL, Desk, desk
from support.machines.ray_cluster import RayCluster, ray_cluster

from fairtrial import record
from fairtrial.record import Record
from fairtrial.run.processes import parent

STUDY = """\
study: chaos
place: {place}
workload: {{command: {{run: {program} a}}}}
settings: {settings}
factors: {{arm: {{a: {{}}, b: {{workload: {{command: {{run: {program} b}}}}}}}}}}
arm: arm
trials: {{blocks: 40, seed: 4, voided_limit: 1000}}
metrics: {{primary: elapsed_s}}
telemetry: {{interval: 100ms}}
"""
PROGRAM = "sleep 0.$(( $$ % 8 + 1 ))\n"
PAUSE_S = (0.3, 3.0)  # between two kills
WEIGHTS, WEIGHTS_WITHOUT_NODES = (4, 4, 4, 1, 2), (4, 4, 4, 1, 0)
KINDS = ("worker", "agent", "program", "controller", "node")


@dataclass
class Chaos:
    """A farm under attack."""

    here: Desk
    states: Path
    hosts: tuple[str, ...]
    options: tuple[str, ...]
    environment: dict[str, str]
    random: random.Random
    cluster: RayCluster | None = None
    kills: Counter[str] = field(default_factory=Counter)

    def processes(self, host: str) -> dict[int, str]:
        """Of a host, by its agents' environment."""
        return Desk(self.here.directory, self.states / host).processes()

    def victim(self, kind: str) -> int | None:
        """A process of a kind, if there is one now."""
        found = self.processes(self.random.choice(self.hosts))
        agents = [pid for pid, command in found.items() if command.endswith(" serve ")]
        if kind == "program":
            return next((pid for pid, command in found.items() if "chaos-program.sh" in command), None)
        if kind == "agent":
            return min(agents, default=None)
        with contextlib.suppress(OSError):
            return parent(min(agents)) if agents else None
        return None

    def strike(self, run: subprocess.Popen[bytes]) -> None:
        """Kills something."""
        (kind,) = self.random.choices(KINDS, WEIGHTS if self.cluster else WEIGHTS_WITHOUT_NODES)
        if kind == "controller":
            run.kill()
        elif kind == "node" and self.cluster is not None:
            name = self.random.choice(self.hosts)
            self.cluster.kill(name)
            self.cluster.add(name)
        else:
            pid = self.victim(kind)
            if pid is None:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.kills[kind] += 1

    def started(self, *what: str | Path) -> subprocess.Popen[bytes]:
        """`fairtrial run` on the farm."""
        return subprocess.Popen(
            [FAIRTRIAL, "run", *map(str, what), *self.options, "--plain"],
            cwd=self.here.directory,
            env={**self.here.environment, **self.environment},
            stdout=(self.here.directory / "run.log").open("ab"),
            stderr=subprocess.STDOUT,
        )

    def attacked(self, study: Path, *, kills: int) -> Path:
        """Runs a study to its end under attack, resumed as often as it takes; its record."""
        known = set(self.here.runs)
        run = self.started(study)
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                run.wait(self.random.uniform(*PAUSE_S))
            found = [path for path in self.here.runs if path not in known]
            if run.poll() is None:
                if self.kills.total() < kills and found:
                    self.strike(run)
            elif run.returncode == 0:
                return found[0]
            elif found and (found[0] / "plan.json").exists():
                run = self.started(found[0], "--resume")
            else:
                run = self.started(study)


def faults(found: Record) -> list[str]:
    """What is wrong with a record."""
    wrong = [] if found.finished else ["not finished"]
    names = [trial.trial.id for trial in found.trials]
    wrong += [f"{name} twice" for name, times in Counter(names).items() if times > 1]
    voided = {(event.cell, event.block) for event in found.voided}
    blocks = defaultdict(list)
    for trial in found.trials:
        if trial.trial.block not in {block for _cell, block in voided}:
            blocks[trial.trial.block].append(trial)
    if len(blocks) != found.plan.design.blocks:
        wrong.append(f"{len(blocks)} blocks instead of {found.plan.design.blocks}")
    for block, trials in blocks.items():
        if sorted(trial.trial.arm for trial in trials) != ["a", "b"] or len({trial.host for trial in trials}) != 1:
            wrong.append(f"block {block} is not whole on one host")
        wrong += [f"{trial.trial.id} is invalid" for trial in trials if not trial.valid]
    return wrong


def main(arguments: Sequence[str] | None = None) -> None:
    """Attacks and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--farm", choices=["places", "ray"], default="places")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    names = tuple(f"h{number}" for number in range(options.hosts))
    with desk() as here, contextlib.ExitStack() as stack:
        states = here.directory / "hosts"
        states.mkdir()
        cluster, environment = None, {}
        if options.farm == "ray":
            cluster = stack.enter_context(ray_cluster(states, names))
            given, environment = ("--farm", cluster.address), cluster.environment
        else:
            for name in names:
                (states / name).mkdir()
            lines = [
                f"  {name}: {{through: {{command: env FAIRTRIAL_MACHINE_DIRECTORY={states / name} "
                f"FAIRTRIAL_STATE_DIRECTORY={states / name}, state_directory: {states / name}}}}}"
                for name in names
            ]
            given = ("--places", str(here.study("\n".join(["hosts:", *lines]), "hosts.yaml")))
        chaos = Chaos(here, states, names, given, environment, random.Random(options.seed), cluster)
        program = here.directory / "chaos-program.sh"
        program.write_text(PROGRAM, encoding="ascii")
        settings = "{storage: {device: memory, size: 16MiB}}" if os.geteuid() == 0 else "{}"
        study = here.study(STUDY.format(place="{local: {}}", program=f"sh {program}", settings=settings))
        began, wrong, runs = time.monotonic(), [], 0
        while chaos.kills.total() < options.kills:
            directory = chaos.attacked(study, kills=options.kills)
            runs += 1
            wrong += faults(record.read(directory))
            done = subprocess.run([FAIRTRIAL, "verify", directory], capture_output=True, text=True, check=False)
            wrong += [] if done.returncode == 0 else [f"verify: {done.stdout}{done.stderr}"]
        time.sleep(2.0)
        wrong += [f"mounted: {line}" for line in Path("/proc/mounts").read_text().splitlines() if str(states) in line]
        wrong += [
            f"left: {command}"
            for name in names
            for command in chaos.processes(name).values()
            if command.endswith(" serve ")
        ]
        print(f"{chaos.kills.total()} kills in {time.monotonic() - began:.0f} s over {runs} runs: {dict(chaos.kills)}")
        print(f"{len(wrong)} faults", *wrong[:20], sep="\n")
        print((here.directory / "run.log").read_text()[-3000:] if wrong else "")


if __name__ == "__main__":
    main()
