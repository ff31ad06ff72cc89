"""Arithmetic and parsing of `load.py`: what tools print, and how their runs compare. Pure functions."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True)
class Run:
    """One run of one client: units of work, its wall seconds, and user + system seconds of the client process."""

    units: int
    wall_s: float
    cpu_s: float

    @property
    def cpu_per_unit_us(self) -> float:
        return self.cpu_s / self.units * 1e6

    @property
    def per_s(self) -> float:
        return self.units / self.wall_s


@dataclass(frozen=True)
class Ratio:
    """The ratios of runs of the same round: their median, smallest and largest."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.2f} ({self.low:.2f}-{self.high:.2f})"


def paired(numerators: Sequence[float], denominators: Sequence[float]) -> Ratio:
    """Compares round by round, so that what the machine did at the time falls on both.

    Raises ValueError if the rounds are not the same.
    """
    ratios = sorted(a / b for a, b in zip(numerators, denominators, strict=True))
    return Ratio(middle=median(ratios), low=ratios[0], high=ratios[-1])


def orders(names: Sequence[str], rounds: int) -> Iterator[list[str]]:
    """Forwards, backwards, backwards, forwards: a steady drift of the machine cancels out."""
    for number in range(rounds):
        yield list(names) if number % 4 in {0, 3} else list(reversed(names))


def of_floor(output: str, cpu_s: float) -> Run:
    """Takes the floor's wall time; its processor time is the whole process's, as everyone's."""
    said = json.loads(output)
    return Run(units=said["units"], wall_s=said["wall_s"], cpu_s=cpu_s)


def of_sysbench(output: str, cpu_s: float, *, unit: str) -> Run:
    """Takes `transactions` or `queries` of sysbench 1.0.20's closing report."""
    return Run(
        units=int(_found(rf"^\s*{unit}:\s+(\d+)", output)),
        wall_s=float(_found(r"total time:\s+([\d.]+)s", output)),
        cpu_s=cpu_s,
    )


def of_go_tpc(output: str, cpu_s: float) -> Run:
    """Takes the counts of go-tpc's closing summary; a type's errors have a line of their own and are left out."""
    found = re.findall(r"^\[Summary\] ([A-Z_]+) - Takes\(s\): ([\d.]+), Count: (\d+)", output, re.MULTILINE)
    ended = [(float(wall_s), int(count)) for kind, wall_s, count in found if not kind.endswith("_ERR")]
    if not ended:
        message = f"no summary in {output[-2000:]!r}"
        raise ValueError(message)
    return Run(units=sum(count for _, count in ended), wall_s=max(wall_s for wall_s, _ in ended), cpu_s=cpu_s)


def of_benchbase(output: str, cpu_s: float) -> Run:
    """Takes all that BenchBase's histograms say was completed, or rolled back as the specification asks.

    They include what it does before it measures, so the wall time is theirs at the rate it measured.
    """
    plain = re.sub(r"\x1b\[[\d;]*m", "", output)
    ended = _found(r"^Completed Transactions:\n((?:.+\n)*)", plain) + _found(
        r"^Aborted Transactions:\n((?:.+\n)*)", plain
    )
    units = sum(map(int, re.findall(r"\[ *(\d+)\]", ended)))
    measured = int(_found(r"measuredRequests=(\d+)", plain)) / int(_found(r"nanoSeconds=(\d+)", plain))
    return Run(units=units, wall_s=units / measured / 1e9, cpu_s=cpu_s)


def of_hammerdb(output: str, cpu_s: float, *, minutes: int) -> Run:
    """Takes HammerDB's transactions per minute, which it has from the server's count of commits and rollbacks."""
    per_minute = int(_found(r"TEST RESULT : .* from (\d+) \w+ TPM", output))
    return Run(units=per_minute * minutes, wall_s=60.0 * minutes, cpu_s=cpu_s)


def of_engine(result: Mapping[str, object], cpu_s: float, *, unit: str) -> Run:
    """Takes `result.json` of a drive; `unit` is `transactions` or `queries`.

    Raises ValueError if anything failed: a client that does less per unit is not a faster one.
    """
    window, types = result["window"], result["transactions"]
    assert isinstance(window, dict)
    assert isinstance(types, dict)
    if failed := sum(outcomes["failed"] for outcomes in types.values()):
        message = f"{failed} transactions failed: {result['errors']}"
        raise ValueError(message)
    ended = ("committed", "rolled_back") if unit == "transactions" else ("statements",)
    return Run(
        units=sum(outcomes[name] for outcomes in types.values() for name in ended),
        wall_s=(window["end_ns"] - window["start_ns"]) / 1e9,
        cpu_s=cpu_s,
    )


def _found(pattern: str, output: str) -> str:
    match = re.search(pattern, output, re.MULTILINE)
    if match is None:
        message = f"no {pattern!r} in {output[-2000:]!r}"
        raise ValueError(message)
    return match[1]
