"""What histories get wrong, beside Apache Otava: false changes, gates that fail for nothing, and steps that are missed.

    .venv/bin/python benches/history.py [--series 1000] [--length 20 40 80] [--otava PYTHON]

Otava is not a dependency. To see it beside ours:

    python3 -m venv /tmp/otava && /tmp/otava/bin/pip install apache-otava==0.8.0
    .venv/bin/python benches/history.py --otava /tmp/otava/bin/python

Every series is judged alone, without a direction and without a margin, so that a gate fails for a change of any size to
either side. Otava has its defaults (p 0.001, windows of 50 points). Rates come with their 95 % interval
(Clopper–Pearson). Nothing is asserted. benches/history_public.py does the same with series that others published.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from fairtrial.history import History, HistoryOptions, SeriesResult, examine
from fairtrial.history.gating import by_history
from fairtrial.history.series import Series, SeriesPoint

CENTRE = 1000.0
SPREAD = 0.01  # of the logarithm: a metric that scatters by 1 %; everything below is in this unit
OUTLIER_SHARE, OUTLIER_SDS = 0.05, 8.0
SLOW_SHARE, SLOW_SDS = 0.1, -15.0
MODES_SDS, MODE_SPREAD_SDS = 3.0, 0.3
DWELL = 4.0  # points that a lasting mode holds on average
DRIFT_SDS = 2.0
STEPS = ((2.0, 12), (3.0, 3), (3.0, 6), (3.0, 12), (5.0, 1), (5.0, 3), (5.0, 6), (5.0, 2))
REACH = 2  # points by which a change point found may miss the step


def noises(count: int, length: int, generator: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """Series without a step, in standard deviations; shape (count, length)."""
    shape = (count, length)
    yield "independent normal", generator.standard_normal(shape)
    for autocorrelation in (0.4, 0.6):
        yield f"AR(1), {autocorrelation}", autoregressive(autocorrelation, shape, generator)
    yield "Student's t, 3 df", generator.standard_t(3, shape)
    outliers = generator.choice([-OUTLIER_SDS, OUTLIER_SDS], shape) * (generator.random(shape) < OUTLIER_SHARE)
    yield "5 % outliers of 8 sd", generator.standard_normal(shape) + outliers
    yield "10 % of points -15 %", generator.standard_normal(shape) + SLOW_SDS * (generator.random(shape) < SLOW_SHARE)
    within = MODE_SPREAD_SDS * generator.standard_normal(shape)
    yield "two modes, any order", within + MODES_SDS * (generator.random(shape) < 1 / 2)
    yield "two modes, alternating", within + MODES_SDS * (np.arange(length) % 2)
    changes = (generator.random(shape) < 1 / DWELL).cumsum(axis=1)
    yield "two modes of 4 points", within + MODES_SDS * (changes % 2)
    yield "drift of 2 sd", generator.standard_normal(shape) + np.linspace(0, DRIFT_SDS, length)


def autoregressive(autocorrelation: float, shape: tuple[int, int], generator: np.random.Generator) -> np.ndarray:
    """Normal AR(1) series with variance 1, stationary from the first point; shape (series, points)."""
    series = generator.standard_normal(shape)
    for index in range(1, shape[1]):
        series[:, index] *= math.sqrt(1 - autocorrelation**2)
        series[:, index] += autocorrelation * series[:, index - 1]
    return series


def history(row: Sequence[float], *, name: str = "s") -> History:
    """One series of positive values, looked at alone; nobody says which direction is better."""
    points = tuple(SeriesPoint(run=str(i), time=str(i), estimate=float(value)) for i, value in enumerate(row))
    return examine([Series(name=name, metric="m", unit="", better=None, points=points)], options=HistoryOptions())


def one(row: np.ndarray) -> SeriesResult:
    """A row of `noises`, looked at alone."""
    return history(scaled(row)).series[0]


def scaled(row: np.ndarray) -> list[float]:
    return (CENTRE * np.exp(SPREAD * row)).tolist()


def otava(rows: Sequence[Sequence[float]], python: Path | None) -> list[list[int]] | None:
    """Indices of Otava's change points in every row, by an interpreter that has it; None without one."""
    if python is None:
        return None
    script = Path(__file__).with_name("history_otava.py")
    ran = subprocess.run(
        [python, script], input=json.dumps([list(row) for row in rows]), capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise SystemExit(
            f"{ran.stderr.strip().splitlines()[-1]}\n{python} cannot run Otava: {python} -m pip install apache-otava"
        )
    found: list[list[int]] = json.loads(ran.stdout)
    return found


def false_rates(values: np.ndarray, python: Path | None) -> list[str]:
    """Rates of series with a change, with a raised alarm and with a failed gate, and of Otava's with a change."""
    found = [history(scaled(row)) for row in values]
    alarms = [bool((alarm := each.series[0].alarm) and alarm.raised) for each in found]
    return [
        rate([bool(each.series[0].changes) for each in found]),
        rate(alarms),
        rate([not by_history(each).passed for each in found]),
        rate(_any(otava([scaled(row) for row in values], python))),
    ]


def power(values: np.ndarray, at: int, python: Path | None) -> list[str]:
    """Rates of series whose step at `at` is found, whose newest point alarms, whose gate fails; and Otava's."""
    found = [history(scaled(row)) for row in values]
    alarms = [bool((alarm := each.series[0].alarm) and alarm.raised) for each in found]
    theirs = otava([scaled(row) for row in values], python)
    return [
        rate([_near([change.index for change in each.series[0].changes], at) for each in found]),
        rate(alarms),
        rate([not by_history(each).passed for each in found]),
        rate(None if theirs is None else [_near(each, at) for each in theirs]),
    ]


def _any(found: Sequence[Sequence[int]] | None) -> list[bool] | None:
    return None if found is None else [bool(each) for each in found]


def _near(found: Sequence[int], at: int) -> bool:
    return any(abs(index - at) <= REACH for index in found)


def rate(hits: Sequence[bool] | None) -> str:
    """`2.5 % (1.6–3.7)`, or a dash."""
    if hits is None:
        return "–"
    k, n = sum(hits), len(hits)
    low = stats.beta.ppf(0.025, k, n - k + 1) if k else 0.0
    high = stats.beta.ppf(0.975, k + 1, n - k) if k < n else 1.0
    return f"{100 * k / n:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


def row(name: str, cells: Sequence[str]) -> None:
    print(f"{name:24}", *(f"{cell:19}" for cell in cells), sep="  ", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--length", type=int, nargs="+", default=[20, 40, 80])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--otava", type=Path, metavar="PYTHON", help="an interpreter that has apache-otava")
    arguments = parser.parse_args()
    if arguments.otava is None:
        print("Otava is left out: name an interpreter that has it (see the head of this file) with --otava")
    for length in arguments.length:
        generator = np.random.default_rng([arguments.seed, length])
        print(f"\n{length} points, {arguments.series} series, seed {arguments.seed}")
        row("noise, no change", ["shows a change", "newest point alarms", "gate fails", "Otava shows a change"])
        for name, values in noises(arguments.series, length, generator):
            row(name, false_rates(values, arguments.otava))
        row("step, a quarter of them", ["found within 2", "newest point alarms", "gate fails", "Otava, within 2"])
        for size, after in STEPS:
            values = generator.standard_normal((max(arguments.series // 4, 1), length))
            values[:, length - after :] += size
            row(f"{size:g} sd, {after} points ago", power(values, length - after, arguments.otava))


if __name__ == "__main__":
    main()
