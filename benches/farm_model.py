"""How long a study takes on 1 to 1,000 hosts, what the farm costs, and where its controller is full: a simulation.

    .venv/bin/python benches/farm_model.py [--study mglru-mariadb-tpcc] [--size published] [--prepare 1h]

The plan gives blocks and what a trial takes. Measured costs go in: the controller's time per trial
(`benches/farm_scale.py`), its link, and what every host needs to prepare its data, once. Blocks vary in length by
`--spread`; hosts take the next block as they come free; the controller takes one trial in at a time. Nothing else is
random.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from fairtrial import plan as planning
from fairtrial import study as language
from fairtrial.catalogue import catalogue
from fairtrial.plan.spreading import FarmCosts, makespan

STUDIES = Path(__file__).parents[1] / "studies"
HOUR_S = 3600.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulates and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", default="mglru-mariadb-tpcc")
    parser.add_argument("--size", default="published")
    parser.add_argument("--blocks", type=int, nargs="+", default=[10, 1000], help="per cell")
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 10, 60, 100, 1000])
    parser.add_argument("--prepare-s", type=float, default=HOUR_S)
    parser.add_argument("--trial-s", type=float, default=FarmCosts.trial_s)
    parser.add_argument("--megabyte-s", type=float, default=FarmCosts.megabyte_s)
    parser.add_argument("--megabytes", type=float, default=FarmCosts.megabytes)
    parser.add_argument("--spread", type=float, default=0.02)
    options = parser.parse_args(arguments)
    costs = FarmCosts(options.prepare_s, options.trial_s, options.megabyte_s, options.megabytes)
    kinds = catalogue()
    study = language.load(STUDIES / f"{options.study}.yaml", catalogue=kinds, size=options.size)
    plan = planning.make(study, catalogue=kinds)
    arms = len(plan.factors[plan.arm])
    block_s = plan.duration_s / len(plan.trials) * arms
    full = block_s / (arms * costs.taking_s)
    print(f"{plan.study} {options.size}: {len(plan.cells)} cells, a block takes {block_s / HOUR_S:.2f} h")
    print(f"the controller is full with {full:,.0f} hosts")
    print(f"{'blocks':>8} {'hosts':>6} {'hours':>8} {'speed-up':>9} {'host-hours':>11} {'controller busy':>16}")
    for blocks in options.blocks:
        draw = random.Random(1)
        every = [block_s * max(0.1, draw.gauss(1.0, options.spread)) for _ in range(blocks * len(plan.cells))]
        alone = makespan(every, costs, hosts=1, trials=arms)[0]
        for hosts in options.hosts:
            took, busy = makespan(every, costs, hosts=hosts, trials=arms)
            used = min(hosts, len(every))
            spent = (sum(every) + used * costs.prepare_s) / HOUR_S
            print(
                f"{blocks * len(plan.cells):>8,} {hosts:>6,} {took / HOUR_S:>8.1f} {alone / took:>9.1f} "
                f"{spent:>11,.0f} {busy / took:>15.2%}"
            )


if __name__ == "__main__":
    main()
