"""What histories get wrong: false change points and false alarms by kind of noise, and what a step's size is found at.

    .venv/bin/python benches/history.py [--series 1000] [--length 40]

Noise: independent normal, AR(1) with 0.4 (and 0.6), normal with 5 % of outliers of 8 standard deviations, normal with
a drift of 2 standard deviations over the series (which is no constant level: finding it is right). Rates come with
their 95 % interval (Clopper–Pearson). Nothing is asserted.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from scipy import stats

from fairtrial.analyse.history import Examined, Options, examine
from fairtrial.analyse.history.noise import autoregressive
from fairtrial.metrics.across_runs import Point, Series

OUTLIER_SHARE = 0.05
OUTLIER_SDS = 8.0
DRIFT_SDS = 2.0
STEPS = ((1.5, 12), (2.0, 6), (2.0, 12), (3.0, 3), (3.0, 6), (3.0, 12), (5.0, 3), (5.0, 6))
CENTRE = 1000.0
REACH = 2  # points by which a change point found may miss the step
SPREAD = 0.02  # of the logarithm: a metric that scatters by 2 %


def noises(count: int, length: int, generator: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """Series without a step, in standard deviations; shape (count, length)."""
    shape = (count, length)
    yield "independent normal", generator.standard_normal(shape)
    for autocorrelation in (0.4, 0.6):
        name = f"AR(1), {autocorrelation}"
        yield name, autoregressive(autocorrelation=autocorrelation, shape=shape, generator=generator)
    outliers = generator.choice([-OUTLIER_SDS, OUTLIER_SDS], shape) * (generator.random(shape) < OUTLIER_SHARE)
    yield "5 % outliers of 8 sd", generator.standard_normal(shape) + outliers
    yield "drift of 2 sd", generator.standard_normal(shape) + np.linspace(0, DRIFT_SDS, length)


def rates(values: np.ndarray) -> tuple[float, float]:
    """Share of series with a change point, and with a newest point below the alarm's level, each judged alone."""
    changed = alarmed = 0
    for row in values:
        found = one(row)
        changed += bool(found.changes)
        alarmed += bool(found.alarm and found.alarm.raised)
    return changed / len(values), alarmed / len(values)


def one(row: np.ndarray) -> Examined:
    """One series, looked at alone."""
    points = tuple(
        Point(run=str(i), time=str(i), estimate=float(v)) for i, v in enumerate(CENTRE * np.exp(SPREAD * row))
    )
    series = Series(name="s", metric="m", unit="", better="higher", points=points)
    return examine([series], options=Options()).series[0]


def with_interval(rate: float, count: int) -> str:
    """`2.5 % (1.6–3.7)`."""
    hits = round(rate * count)
    low = stats.beta.ppf(0.025, hits, count - hits + 1) if hits else 0.0
    high = stats.beta.ppf(0.975, hits + 1, count - hits) if hits < count else 1.0
    return f"{rate:6.1%} ({low:.1%}–{high:.1%})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--length", type=int, nargs="+", default=[20, 40])
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    for length in arguments.length:
        generator = np.random.default_rng([arguments.seed, length])
        print(f"\n{length} points, {arguments.series} series, change points at 5 %, alarms at 1 %")
        print(f"{'noise':24}  {'a change point':24}  newest point alarms")
        for name, values in noises(arguments.series, length, generator):
            changed, alarmed = rates(values)
            print(f"{name:24}  {with_interval(changed, len(values)):24}  {with_interval(alarmed, len(values))}")
        print(f"{'step in sd, points after':24}  {'found within 2 points':24}  the point after it alarms")
        for size, after in STEPS:
            values = generator.standard_normal((max(arguments.series // 5, 1), length))
            values[:, length - after :] += size
            found = [one(row) for row in values]
            hits = sum(any(abs(each.index - (length - after)) <= REACH for each in one_.changes) for one_ in found)
            first = [one(row[: length - after + 1]) for row in values]
            alarms = sum(bool(each.alarm and each.alarm.raised) for each in first)
            print(
                f"{f'{size:g} sd, {after} points':24}  {with_interval(hits / len(values), len(values)):24}  "
                f"{with_interval(alarms / len(values), len(values))}"
            )


if __name__ == "__main__":
    main()
