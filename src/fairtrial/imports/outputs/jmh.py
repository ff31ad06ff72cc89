"""JMH's JSON (`-rf json`): one row per fork, the mean of its iterations."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.alias_generators import to_camel

from fairtrial.imports.reader import Figure, ImportSource, Reader, column, document, file_table, metric, refused
from fairtrial.imports.rows import FileTable
from fairtrial.study.catalogue import Better

SOURCE: Final = "JMH"
TIME: Final = "ns_per_op"
RATE: Final = "ops_per_s"
EXPECTED: Final = "the file of JMH's -rf json"
_NANOSECONDS: Final = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "hr": 3600e9, "day": 86400e9}
_PER_SECOND: Final = {unit: 1e9 / length_ns for unit, length_ns in _NANOSECONDS.items()}
_HIGHER: Final = ("ops/s", "insns/clk")
_CAMEL: Final = ConfigDict(frozen=True, alias_generator=to_camel)


class Score(BaseModel):
    """A metric's values by fork and iteration; of sampled times, value and count by fork and iteration."""

    model_config = _CAMEL

    score_unit: str
    raw_data: list[list[float]] = []
    raw_data_histogram: list[list[list[tuple[float, float]]]] = []

    def forks(self) -> list[float]:
        """The mean of each fork; raises ZeroDivisionError if one has no iteration."""
        if self.raw_data:
            return [sum(fork) / len(fork) for fork in self.raw_data]
        pairs = [[pair for iteration in fork for pair in iteration] for fork in self.raw_data_histogram]
        return [sum(value * count for value, count in fork) / sum(count for _, count in fork) for fork in pairs]

    def scaled(self, name: str) -> tuple[str, str, float]:
        """Its column, its unit there, and what its values are multiplied by; the primary metric has no name."""
        first, _, second = self.score_unit.partition("/")
        if second == "op" and first in _NANOSECONDS:
            return "_".join(filter(None, (name, TIME))), "ns/op", _NANOSECONDS[first]
        if first == "ops" and second in _PER_SECOND:
            return "_".join(filter(None, (name, RATE))), "ops/s", _PER_SECOND[second]
        return name or column(self.score_unit), self.score_unit, 1.0


class Benchmark(BaseModel):
    """A benchmark in one mode with one set of parameters."""

    model_config = _CAMEL

    benchmark: str
    mode: str
    params: dict[str, str] = {}
    primary_metric: Score
    secondary_metrics: dict[str, Score] = {}

    def name(self) -> str:
        """With its parameters."""
        return ":".join([self.benchmark, *([",".join(f"{k}={v}" for k, v in self.params.items())] * bool(self.params))])


_OUTPUT: Final = TypeAdapter(list[Benchmark])


def read(source: ImportSource) -> FileTable:
    """Rows by benchmark, then by fork.

    Raises:
        InputError: the document is cut, or a benchmark has no iteration.
    """
    rows: list[dict[str, Figure]] = []
    units: dict[str, str] = {}
    benchmarks = document(source, _OUTPUT, expected=EXPECTED)
    for index, each in enumerate(benchmarks):
        try:
            rows += _forks(each, units)
        except (ZeroDivisionError, OverflowError) as error:
            message, field = f"{each.benchmark} has a fork without iterations", f"{index}.primaryMetric.rawData"
            raise refused(source, message, hint="let JMH end its run", field=field) from error
    if not rows:
        raise refused(source, "expected at least one fork of a benchmark, found none", hint=f"give {EXPECTED}")
    ways = {name: better(name, unit) for name, unit in units.items()}
    return file_table(
        source, rows, lambda name: metric(name, units[name], ways[name] or "higher", source=SOURCE), better=ways.get
    )


def _forks(benchmark: Benchmark, units: dict[str, str]) -> list[dict[str, Figure]]:
    """Rows of one benchmark; units of its columns are added, and a unit that is not the first one's is in the name."""
    named: dict[str, Figure] = {"benchmark": benchmark.name(), "mode": benchmark.mode}
    scores = {"": benchmark.primary_metric}
    scores |= {column(key): score for key, score in benchmark.secondary_metrics.items() if score.raw_data}
    rows = [{**named, "fork": fork + 1} for fork in range(len(benchmark.primary_metric.forks()))]
    for key, score in scores.items():
        name, unit, factor = score.scaled(key)
        if units.setdefault(name, unit) != unit:
            name = f"{name}_{column(unit)}"
            units[name] = unit
        for row, mean in zip(rows, score.forks(), strict=False):  # a profiler may have seen fewer forks
            row.setdefault(name, mean * factor)
    return rows


def better(name: str, unit: str) -> Better | None:
    """Times, what an operation costs and what the collector did are better low; of a user's counter nobody knows."""
    if unit in _HIGHER:
        return "higher"
    costs = unit.endswith("/op") or unit in _NANOSECONDS or unit == "clks/insn" or name.startswith("gc_")
    return "lower" if costs else None


READER: Final = Reader(
    name="jmh",
    expected=EXPECTED,
    recognises=lambda text: text.startswith("[") and ('"jmhVersion"' in text or '"primaryMetric"' in text),
    read=read,
    values=(TIME, RATE),
    arm="benchmark",
    conditions=("benchmark", "mode"),
)
