"""Fewer trials: the raw data of two published studies, replayed in random order under each stopping rule.

Each replay shuffles the ten trials of every arm in every cell, pairs them block by block, and lets the rule decide
after every block, with a margin of 2 % and its six comparisons as one family. Printed are, for each rule,
the share of the published trials that it used, the hours that saves, and how often each cell's verdict was that of the
full data (Welch on logs, two one-sided tests, Holm over the family), and for the default the same cell by cell.

What it cannot show: the published trials ran one arm after the other and are sorted within cells, so replays stand for
runs in random order only if time did not matter.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fairtrial import audit as publications
from fairtrial.analyse.inference import families, sensitivity, t_tests
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.sequential import Rule, SimulatedOutcomes, simulate
from fairtrial.analyse.sequential.simulating import EQUIVALENT, HIGHER, LOWER, UNDECIDED
from fairtrial.audit import Dataset

MARGIN = 0.02
ALPHA = 0.05
WORDS = {HIGHER: "higher", LOWER: "lower", EQUIVALENT: "equivalent", UNDECIDED: "undecided"}
DEFAULT = "Pocock, futility (the default)"


@dataclass(frozen=True)
class Study:
    """A publication's main question: its metrics, and how long one of its trials took by its own account."""

    name: str
    metrics: tuple[str, ...]
    trial_h: float


STUDIES = (
    Study("mglru-mariadb-tpcc", ("tpm",), 45 / 60),
    Study("mglru-fio-pmem", ("throughput_mib_s",), 30 / 60),
)
BOTH_METRICS = Study("mglru-fio-pmem", ("throughput_mib_s", "p99_latency_us"), 30 / 60)


def rules(blocks: int) -> dict[str, Rule]:
    default = Rule(first=3, last=blocks, alpha=ALPHA, bound=math.log1p(MARGIN))
    late = replace(default, spending="obrien_fleming")
    return {
        "O'Brien-Fleming": replace(late, futility=False),
        "O'Brien-Fleming, futility": late,
        "Pocock": replace(default, futility=False),
        DEFAULT: default,
        "Pocock, futility, first look at 4": replace(default, first=4),
        "Pocock, futility, first look at 5": replace(default, first=5),
        "anytime": replace(default, kind="anytime", futility=False),
        "anytime, futility": replace(default, kind="anytime"),
    }


@dataclass(frozen=True)
class Replayed:
    """One study's comparisons: names, log values of shape (comparisons, arms, trials), cell of each, full verdicts."""

    study: Study
    names: tuple[str, ...]
    logs: Values
    cells: np.ndarray
    metrics: np.ndarray
    full: np.ndarray

    @property
    def trials(self) -> int:
        return 2 * (int(self.cells.max()) + 1) * self.logs.shape[-1]

    def replay(self, rule: Rule, *, replays: int, seed: int) -> SimulatedOutcomes:
        """Shuffles trials, the same way for every metric of a trial."""
        random = np.random.default_rng(seed)
        order = random.random((replays, int(self.cells.max()) + 1, *self.logs.shape[1:])).argsort(axis=-1)
        shuffled = np.take_along_axis(self.logs[None], order[:, self.cells], axis=-1)
        return simulate(shuffled[:, :, 1] - shuffled[:, :, 0], rule, cells=self.cells, pools=self.metrics)


def load(study: Study) -> Replayed:
    data = publications.load(study.name)
    found = list(_comparisons(data, study))
    logs = np.array([each for _, each, _, _ in found])
    return Replayed(
        study=study,
        names=tuple(name for name, _, _, _ in found),
        logs=logs,
        cells=np.array([cell for _, _, cell, _ in found]),
        metrics=np.array([metric for _, _, _, metric in found]),
        full=verdicts(logs),
    )


def _comparisons(data: Dataset, study: Study) -> Iterator[tuple[str, Values, int, int]]:
    arm = data.description.arm
    for cell, levels in enumerate(data.combinations(without=arm)):
        for number, metric in enumerate(study.metrics):
            values = [np.log(data.values(metric, {**levels, arm: level})) for level in data.levels(arm)]
            yield f"{metric} {' '.join(levels.values())}", np.array(values), cell, number


def verdicts(logs: Values) -> np.ndarray:
    """Of the full data, as a study that runs all blocks gives them where trials are independent."""
    tests = [t_tests.welch(first, second, confidence=1 - ALPHA) for first, second in logs]
    assert None not in tests, "a cell has no spread"
    differs = families.holm([test.p for test in tests if test])
    same = families.holm([sensitivity.equivalence(test, bound=math.log1p(MARGIN)) for test in tests if test])
    up = [test.estimate > 0 for test in tests if test]
    return np.array(
        [
            EQUIVALENT if q < ALPHA else UNDECIDED if p >= ALPHA else HIGHER if rises else LOWER
            for p, q, rises in zip(differs, same, up, strict=True)
        ]
    )


def used(replayed: Replayed, outcome: SimulatedOutcomes) -> float:
    """Share of the published trials that were run: a cell's comparisons share its trials."""
    cells = np.unique(replayed.cells)
    return (
        float(np.mean([outcome.blocks[:, replayed.cells == cell].max(axis=1) for cell in cells]))
        / (replayed.logs.shape[-1])
    )


def frontier(studies: list[Replayed], *, replays: int, seed: int) -> None:
    print(f"{'rule':36} {'trials used':>11} {'hours saved':>15} {'agreement, worst cell':>22}")
    for name, rule in rules(studies[0].logs.shape[-1]).items():
        outcomes = [each.replay(rule, replays=replays, seed=seed) for each in studies]
        shares = [used(each, outcome) for each, outcome in zip(studies, outcomes, strict=True)]
        trials = [each.trials for each in studies]
        hours = [each.trials * each.study.trial_h for each in studies]
        saved = sum(h * (1 - share) for h, share in zip(hours, shares, strict=True))
        agreed = min(
            (outcome.verdict == each.full).mean(axis=0).min() for each, outcome in zip(studies, outcomes, strict=True)
        )
        share = sum(t * s for t, s in zip(trials, shares, strict=True)) / sum(trials)
        print(f"{name:36} {share:11.1%} {saved:7.0f} of {sum(hours):3.0f} h {agreed:22.1%}")


def by_cell(studies: list[Replayed], *, replays: int, seed: int) -> None:
    print(f"{'comparison':40} {'full data':>10} {'agreement':>10} {'blocks':>7} {'given up':>9}")
    for each in studies:
        outcome = each.replay(rules(each.logs.shape[-1])[DEFAULT], replays=replays, seed=seed)
        agreed = (outcome.verdict == each.full).mean(axis=0)
        for index, name in enumerate(each.names):
            print(
                f"{name:40} {WORDS[int(each.full[index])]:>10} {agreed[index]:10.1%} "
                f"{outcome.blocks[:, index].mean():7.1f} {outcome.futile[:, index].mean():9.1%}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replays", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    asked = vars(parser.parse_args())
    studies = [load(study) for study in STUDIES]
    frontier(studies, **asked)
    print(f"\n{DEFAULT}, cell by cell")
    by_cell(studies, **asked)
    print("\nthe fio study with latency as a second primary metric: a cell goes on until both are decided")
    frontier([load(BOTH_METRICS)], **asked)


if __name__ == "__main__":
    main()
