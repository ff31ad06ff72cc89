"""What the running trial's load says, line by line: words for people and numbers over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from fairtrial.live import words
from fairtrial.live.course import Course
from fairtrial.metrics.telemetry import measures
from fairtrial.protocol.generated import (
    FinishingProgress,
    LoadingProgress,
    MeasuringProgress,
    ProbedProgress,
    ProbingProgress,
    RampUpProgress,
    RateProgress,
)
from fairtrial.protocol.progress import ProgressLine, TelemetryProgress
from fairtrial.record.live import FeedLine
from fairtrial.study.catalogue import MetricDefinition

THROUGHPUT: Final = "throughput"
NANOSECONDS_PER_SECOND: Final = 1e9
CLOCK_SET_BACK_S: Final = 1.0  # less is two writers' order
TITLES: Final = {each.name: each.title for each in measures.MEASURES}


@dataclass(frozen=True)
class Chart:
    """One picture over time: its title with the unit, and its course."""

    title: str
    course: Course = field(default_factory=Course)


@dataclass
class Activity:
    """One running trial.

    Its seconds count on from the last one where the clock is set back.

    Attributes:
        trial: its id.
        throughput: the metric in whose unit rates are told.
        began_s: Unix time of its first line.
        heard_s: second of its last line.
        doing: what the load does, in words; empty before it says anything.
        rate: how much it does now, in words.
        charts: by name.
        marks: seconds at which ramp-up, measurement and what follows it began, by their names.
    """

    trial: str
    throughput: MetricDefinition | None
    began_s: float | None = None
    heard_s: float = 0.0
    doing: str = ""
    rate: str = ""
    errors: int = 0
    charts: dict[str, Chart] = field(default_factory=dict)
    marks: dict[str, float] = field(default_factory=dict)
    _samples: dict[str, TelemetryProgress] = field(default_factory=dict)
    _rows: dict[int, dict[str, float]] = field(default_factory=dict)  # by second, as sources come in
    _quiet: dict[str, Chart] = field(default_factory=dict)  # zero so far: not shown, as it says nothing

    def hear(self, lines: Iterable[FeedLine]) -> None:
        """Takes lines of the feed in."""
        for line in lines:
            if self.began_s is None:
                self.began_s = line.at_s
            if line.at_s - self.began_s < self.heard_s - CLOCK_SET_BACK_S:
                self.began_s = line.at_s - self.heard_s
            self.heard_s = max(self.heard_s, line.at_s - self.began_s)
            if isinstance(line.said, TelemetryProgress):
                self._sampled(line.said, second=self.heard_s)
            else:
                self._take(line.said, second=self.heard_s)
        self._measure()

    def _sampled(self, said: TelemetryProgress, *, second: float) -> None:
        before = self._samples.get(said.source)
        self._samples[said.source] = said
        if before is not None and said.time_ns > before.time_ns:
            elapsed_s = (said.time_ns - before.time_ns) / NANOSECONDS_PER_SECOND
            row = measures.row_of(said.source, before.values, said.values, elapsed_s=elapsed_s)
            self._rows.setdefault(int(second), {}).update(row)

    def _measure(self) -> None:
        """All seconds that are over."""
        last = max(self._rows, default=0)
        for second in [each for each in self._rows if each < last]:
            for name, value in measures.values(self._rows.pop(second)).items():
                if name not in self.charts:
                    self._quiet.setdefault(name, Chart(title=TITLES[name])).course.add(second, value)
                    if value:
                        self.charts[name] = self._quiet.pop(name)
                else:
                    self.charts[name].course.add(second, value)

    def _add(self, name: str, title: str, *, second: float, value: float) -> None:
        self.charts.setdefault(name, Chart(title=title)).course.add(second, value)

    def _take(self, said: ProgressLine, *, second: float) -> None:
        match said:
            case RateProgress():
                self.rate, self.errors = words.rate(said.per_s, self.throughput), said.errors
                unit = "per second" if self.throughput is None else self.throughput.unit
                per_unit = said.per_s * words.unit_s(self.throughput)
                self._add(THROUGHPUT, f"throughput, {unit}", second=second, value=per_unit)
                for name, value_ns in (("p95", said.p95_ns), ("p99", said.p99_ns)):
                    if value_ns is not None:
                        self._add(name, f"{name} latency, ms", second=second, value=value_ns / words.MILLISECOND_NS)
            case LoadingProgress():
                self.doing = words.loading(said)
            case ProbingProgress():
                self.doing = words.probing(said)
            case ProbedProgress():
                self.doing = words.probed(said)
            case RampUpProgress():
                self._mark("ramp-up", second)
            case MeasuringProgress():
                self._mark("measuring", second)
            case FinishingProgress():
                self._mark("finishing", second)
            case _:
                self.doing = said.progress

    def _mark(self, name: str, second: float) -> None:
        self.doing = name
        self.marks.setdefault(name, second)

    @property
    def length_s(self) -> float:
        """Of the longest course."""
        return length_s(self.charts.values())

    @property
    def settled_s(self) -> int:
        """Second before which no chart that is there changes: telemetry of one is added once the next has begun."""
        return min(self._rows, default=int(self.heard_s))


def length_s(charts: Iterable[Chart]) -> float:
    """Of the longest course."""
    return max((chart.course.seconds[-1] for chart in charts if len(chart.course)), default=0.0)
