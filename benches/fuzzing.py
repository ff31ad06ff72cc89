"""Readers of foreign bytes in Python, fuzzed by mutations of real inputs.

    PYTHONPATH=tests .venv/bin/python benches/fuzzing.py [TARGET …] [--seconds 60] [--seed 1] [--keep DIRECTORY]

For each target: inputs tried, the slowest in seconds of a processor, and every fault once.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from support.fuzzing.campaign import fuzz
from support.fuzzing.targets import TARGETS

LAST = 1500  # characters of a traceback that are shown
SHOWN = 300  # bytes of an input


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="directory for the inputs of faults")
    options = parser.parse_args()
    for name in options.targets or TARGETS:
        campaign = fuzz(TARGETS[name], seconds=options.seconds, seed=options.seed)
        tried = f"{campaign.examples} inputs in {campaign.seconds:.0f} s, slowest {campaign.slowest_s:.2f} s"
        print(f"{name}: {tried}, {len(campaign.finds)} faults", flush=True)
        for content, verdict in campaign.finds.values():
            print(f"  {verdict.fault}: {verdict.what.strip()[-LAST:]}")
            print(f"  input of {len(content)} bytes: {content[:SHOWN]!r}", flush=True)
        if options.keep:
            campaign.keep(options.keep)


if __name__ == "__main__":
    main()
