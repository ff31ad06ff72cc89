"""Change points in performance series that others published, ours beside Apache Otava's and what their owners expect.

    .venv/bin/python benches/history_public.py DIRECTORY [--otava PYTHON]

DIRECTORY holds clones; each is read if it is there, and nothing of them is kept here:

- https://github.com/mongodb/signal-processing-algorithms: series of the tests of MongoDB's change point detection, some
  with the number of change points that those tests expect (not a truth: what E-divisive finds).
- https://github.com/nyrkio/nyrkio: TigerBeetle's nightly metrics, which Nyrkiö's tests use.
- https://github.com/SEALABQualityGroup/steady-state: iterations of JMH benchmarks, with the forks that the authors
  found steady and the change points they found. `--sealab-files` of them are read; the middle of the longest stretch
  without a change point of each steady fork gives a series of 20, 40 and 80 points: noise that nobody simulated.

How to install Otava stands in benches/history.py. Histories look at the newest 200 points only. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from history import history, otava, rate, row

from fairtrial.history.examining import MOST

MONGODB = "signal-processing-algorithms/tests/data"
NYRKIO = "nyrkio/backend/tests/data/tigerbeetle.json"
SEALAB = "steady-state/data"
LENGTHS = (20, 40, 80)
SHOWN = 8  # indices of change points on a line


def mongodb(directory: Path) -> Iterator[tuple[str, list[float], str]]:
    """Name, values and expected number of change points of every series of positive values."""
    for path in sorted([*directory.glob("*.json"), *directory.glob("profiling/*.json")]):
        found = json.loads(path.read_text(encoding="utf-8"))
        values, expected = (found["series"], str(found["expected"])) if isinstance(found, dict) else (found, "–")
        if not path.name.startswith("expected") and min(values) > 0 and len(set(values)) > 1:
            yield f"MongoDB {path.stem}", values, expected


def nyrkio(path: Path) -> Iterator[tuple[str, list[float], str]]:
    """The same of every metric, in time order; nobody says what to expect."""
    points = sorted(json.loads(path.read_text(encoding="utf-8")), key=lambda point: int(point["timestamp"]))
    for name in [metric["name"] for metric in points[0]["metrics"]]:
        values = [float(each["value"]) for point in points for each in point["metrics"] if each["name"] == name]
        yield f"Nyrkiö {name}", values, "–"


def steady(directory: Path, files: int) -> Iterator[list[float]]:
    """The longest stretch without a change point of every fork that SEALAB found steady; files evenly among all."""
    listed = sorted((directory / "classification").glob("*.json"))
    for path in listed[:: max(len(listed) // files, 1)][:files]:
        forks = json.loads(path.read_text(encoding="utf-8"))["forks"]
        changes = json.loads((directory / "changepoints" / path.name).read_text(encoding="utf-8"))
        series = json.loads((directory / "timeseries/all" / path.name).read_text(encoding="utf-8"))
        for kind, ends, values in zip(forks, changes, series, strict=True):
            start, end = max(pairwise([0, *ends]), key=lambda pair: pair[1] - pair[0])
            if kind == "steady state" and end - start >= 2 * max(LENGTHS):
                yield values[start:end]


def middle(values: list[float], length: int) -> list[float]:
    """Away from the ends, whose places are estimates."""
    start = (len(values) - length) // 2
    return values[start : start + length]


def places(found: Sequence[int]) -> str:
    listed = " ".join(str(index) for index in found[:SHOWN])
    return f"{len(found)}: {listed}{' …' if len(found) > SHOWN else ''}" if found else "none"


def with_places(every: Sequence[tuple[str, list[float], str]], python: Path | None) -> None:
    row("series, newest points", ["points", "ours", "Otava", "expected of all"])
    newest = [values[-MOST:] for _, values, _ in every]
    theirs = otava(newest, python)
    for index, (name, _, expected) in enumerate(every):
        ours = [change.index for change in history(newest[index]).series[0].changes]
        row(
            name,
            [str(len(newest[index])), places(ours), "–" if theirs is None else places(theirs[index]), expected],
        )


def with_rates(every: Sequence[list[float]], python: Path | None) -> None:
    row("SEALAB, steady forks", ["series", "a change, ours", "a change, Otava"])
    for length in LENGTHS:
        series = [middle(values, length) for values in every]
        theirs = otava(series, python)
        ours = rate([bool(history(values).series[0].changes) for values in series])
        row(
            f"{length} points",
            [str(len(series)), ours, rate(None if theirs is None else [bool(each) for each in theirs])],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="where the clones are")
    parser.add_argument("--otava", type=Path, metavar="PYTHON", help="an interpreter that has apache-otava")
    parser.add_argument("--sealab-files", type=int, default=60)
    arguments = parser.parse_args()
    mongo, tiger, sealab = (arguments.directory / name for name in (MONGODB, NYRKIO, SEALAB))
    every = [*(mongodb(mongo) if mongo.is_dir() else ()), *(nyrkio(tiger) if tiger.is_file() else ())]
    if not every and not sealab.is_dir():
        parser.error(f"{arguments.directory} has none of {MONGODB}, {NYRKIO} and {SEALAB}: clone them there")
    if every:
        with_places(every, arguments.otava)
    if sealab.is_dir():
        with_rates(list(steady(sealab, arguments.sealab_files)), arguments.otava)


if __name__ == "__main__":
    main()
