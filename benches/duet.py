"""Duets against randomised blocks at equal machine time, beside a neighbour that takes processors in bursts.

    .venv/bin/python benches/duet.py [--runs 10] [--blocks 6] [--iterations 300000] [--effect 0.03] [--apart] [--quiet]

The arms are a shell's counting loop, in turn with and without a planted difference. A duet has two blocks for each of
the other order. Printed are, by order: the median half-width of the interval of the log ratio, how many A/A runs claim
a difference, how many intervals cover the planted one, and the mean error of the estimate; then the widths' ratio and
the mean difference of estimates.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.command_line import desk

STUDY = """\
study: duet
workload: {{command: {{run: sh {program} {base} a}}}}
factors: {{arm: {{a: {{}}, b: {{workload: {{command: {{run: sh {program} {other} b}}}}}}}}}}
arm: arm
trials: {{order: {order}, blocks: {blocks}, seed: {seed}}}
metrics: {{primary: elapsed_s}}
telemetry: {{interval: 1s}}
"""
PROGRAM = "i=0; while [ $i -lt $1 ]; do i=$((i+1)); done; : "
ORDERS = {"randomised_blocks": 1, "duet": 2}  # blocks in equal time
BURST_S, PAUSE_S = (0.05, 1.0), (0.05, 1.0)


@dataclass(frozen=True)
class Estimate:
    """What a run said of the arm, as a log ratio."""

    estimate: float
    low: float
    high: float


def burst(processor: int, seed: int) -> None:
    """Takes a processor now and then, for ever; the same seed takes it at the same times."""
    os.sched_setaffinity(0, {processor})
    drawn, at_s = random.Random(seed), math.ceil(time.time())
    while True:
        at_s += drawn.uniform(*PAUSE_S)
        time.sleep(max(0.0, at_s - time.time()))
        at_s += drawn.uniform(*BURST_S)
        while time.time() < at_s:
            pass


@contextmanager
def neighbour(*, seed: int, apart: bool) -> Iterator[None]:
    """Bursts on every processor, at the same times or each at its own."""
    children = []
    for processor in sorted(os.sched_getaffinity(0)):
        child = os.fork()
        if child == 0:
            burst(processor, seed + (processor if apart else 0))
        children.append(child)
    try:
        yield
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def measured(order: str, *, options: argparse.Namespace, other: int, seed: int) -> Estimate:
    """One run of its own."""
    with desk() as here:
        program = here.study(PROGRAM, "loop.sh")
        blocks = options.blocks * ORDERS[order]
        words = {"program": program, "base": options.iterations, "other": other}
        here.fairtrial("run", here.study(STUDY.format(**words, order=order, blocks=blocks, seed=seed)))
        analysis = json.loads((here.run / "report" / "report.json").read_text(encoding="utf-8"))["analysis"]
    (comparison,) = analysis["cells"][0]["comparisons"]["elapsed_s"]
    ratio = comparison["ratio"]
    return Estimate(*(math.log(ratio[name]) for name in ("estimate", "low", "high")))


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="of each order, with and without the difference")
    parser.add_argument("--blocks", type=int, default=6, help="of randomised blocks; duets have twice as many")
    parser.add_argument("--iterations", type=int, default=300_000, help="of the loop")
    parser.add_argument("--effect", type=float, default=0.03, help="planted, as a share")
    parser.add_argument("--apart", action="store_true", help="bursts on each processor at its own times")
    parser.add_argument("--quiet", action="store_true", help="no neighbour")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the neighbour shall not outlive this process
    found: dict[tuple[str, bool], list[Estimate]] = defaultdict(list)
    more = round(options.iterations * (1 + options.effect))
    for seed in range(options.runs):
        for planted, other in ((False, options.iterations), (True, more)):
            for order in ORDERS:
                if options.quiet:
                    found[order, planted].append(measured(order, options=options, other=other, seed=seed))
                    continue
                with neighbour(seed=1000 * seed, apart=options.apart):
                    found[order, planted].append(measured(order, options=options, other=other, seed=seed))
    shown(found, true=math.log(more / options.iterations), runs=options.runs)


def shown(found: dict[tuple[str, bool], list[Estimate]], *, true: float, runs: int) -> None:
    """Prints the figures."""
    widths = {}
    for order in ORDERS:
        equal, planted = found[order, False], found[order, True]
        widths[order] = statistics.median((each.high - each.low) / 2 for each in equal + planted)
        claims = sum(not each.low <= 0 <= each.high for each in equal)
        covered = sum(each.low <= true <= each.high for each in planted)
        errors = [each.estimate for each in equal] + [each.estimate - true for each in planted]
        print(
            f"{order:18} half-width {widths[order]:.4f}  A/A claims {claims}/{runs}  covered {covered}/{runs}  "
            f"mean error {statistics.fmean(errors):+.4f}"
        )
    both = zip(found["duet", True], found["randomised_blocks", True], strict=True)
    bias = statistics.fmean(duet.estimate - blocks.estimate for duet, blocks in both)
    print(f"half-width, duet / blocks: {widths['duet'] / widths['randomised_blocks']:.2f}")
    print(f"estimate, duet - blocks: {bias:+.4f}")


if __name__ == "__main__":
    main()
