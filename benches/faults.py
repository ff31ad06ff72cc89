"""A campaign of faults, drawn by a seed: what is lost, doubled or left behind, and which record is not honest about it.

    .venv/bin/python benches/faults.py [--faults 200] [--seed 1] [--only KIND ...] [--out faults.jsonl]

Every fault has a run of its own: quick trials that mount a file system, make a control group and change a kernel
parameter. At a random instant a process is killed or stopped, the clock jumps, a stream is cut, a call fails, a disk is
full, or power fails (`benches/faulting/kinds.py` has the table). The run is then resumed to its end. No trial that was
finished may be lost or counted twice; no process, mount, group, device or setting may be left; the record must be
readable right after the fault, and `verify` must find it whole at the end.

Printed are each broken promise with its fault's seed, and the counts by kind. `--seed N --faults 1 --only KIND` does
one fault again. Everything happens in namespaces of its own (unshare(1)): it needs root, a C compiler and util-linux.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from faulting import calls
from faulting.kinds import KINDS, Ground, Outcome
from faulting.stands import stand
from support.forking import import_all

INSIDE = "FAULTS_INSIDE"  # in the environment of the process that has the namespaces
PREPARE = "ip link set lo up; mount -t tmpfs -o mode=1777 none /dev/shm; exec"


def apart(arguments: Sequence[str]) -> int:
    """Starts this again: in namespaces of its own, the library preloaded."""
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        library = calls.compiled(Path(name))
        spaces = ("unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--net", "--ipc")
        words = [*spaces, "sh", "-c", f'{PREPARE} env LD_PRELOAD={library} "$0" "$@"', sys.executable, __file__]
        return subprocess.run([*words, *arguments], env={**os.environ, INSIDE: "1"}, check=False).returncode


def drawn(seed: int, only: Sequence[str]) -> str:
    """The kind of a seed's fault."""
    names = list(only or KINDS)
    weights = [KINDS[name].weight or float(bool(only)) for name in names]
    return random.Random(f"kind {seed}").choices(names, weights)[0]


def table(lines: Sequence[dict[str, Any]]) -> str:
    """Counts by kind."""
    kinds: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        kinds[str(line["kind"])].append(line)
    rows = [("kind", "faults", "missed", "broken promises", "s each")]
    for kind, found in sorted(kinds.items()):
        struck, missed, broken, seconds = _counted(found)
        rows.append((kind, str(struck), str(missed), str(broken), f"{seconds / max(1, struck + missed):.2f}"))
    rows.append(("all", *map(str, _counted(lines)[:3]), ""))
    return "\n".join(f"{row[0]:<28}{row[1]:>8}{row[2]:>8}{row[3]:>17}{row[4]:>8}" for row in rows)


def _counted(lines: Sequence[dict[str, Any]]) -> tuple[int, int, int, float]:
    """Faults that struck, that did not, that broke a promise, and what they took in all."""
    struck = sum(line["faults"] for line in lines if line["struck"])
    broken = sum(min(line["faults"], len(line["wrong"])) for line in lines)
    return struck, sum(not line["struck"] for line in lines), broken, sum(line["s"] for line in lines)


def campaign(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Does every fault."""
    lines: list[dict[str, Any]] = []
    import_all()
    deadline = time.monotonic() + 60 * options.minutes
    with ExitStack() as stack:
        grounds: dict[str, Ground] = {}
        for seed in range(options.seed, options.seed + options.faults):
            if time.monotonic() > deadline:
                break
            kind = drawn(seed, options.only)
            of = KINDS[kind].stand
            if of not in grounds:
                grounds[of] = Ground(stack.enter_context(stand(of)))
                grounds[of].survey()
            began = time.monotonic()
            try:
                outcome = KINDS[kind].fault(grounds[of], random.Random(seed))
            except RuntimeError as error:  # a record that cannot be read
                outcome = Outcome("", [str(error)])
            line = {"seed": seed, "kind": kind, "s": round(time.monotonic() - began, 2), **asdict(outcome)}
            lines.append(line)
            if options.out is not None:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
            if outcome.wrong:
                print(f"--seed {seed} --only {kind}: {outcome.what}", *outcome.wrong[:5], sep="\n    ", flush=True)
    return lines


def main(arguments: Sequence[str]) -> int:
    """Runs and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=KINDS, default=())
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--out", type=Path, help="file to which a line for each fault is added")
    options = parser.parse_args(arguments)
    if INSIDE not in os.environ:
        return apart(arguments)
    lines = campaign(options)
    print(table(lines))
    return int(any(line["wrong"] for line in lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
