"""What the running trial's load says, line by line: words for people and numbers over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fairtrial.live import words
from fairtrial.live.course import Course
from fairtrial.protocol.generated import (
    FinishingProgress,
    LoadingProgress,
    MeasuringProgress,
    ProbedProgress,
    ProbingProgress,
    RampUpProgress,
    RateProgress,
)
from fairtrial.protocol.progress import ProgressLine
from fairtrial.record.live import FeedLine
from fairtrial.study.catalogue import MetricDefinition

THROUGHPUT: Final = "throughput"


@dataclass(frozen=True)
class Chart:
    """One picture over time: its title with the unit, and its course."""

    title: str
    course: Course = field(default_factory=Course)


@dataclass
class Activity:
    """One running trial.

    Attributes:
        trial: its id.
        throughput: the metric in whose unit rates are told.
        began_s: Unix time of its first line.
        doing: what the load does, in words; empty before it says anything.
        rate: how much it does now, in words.
        charts: by name.
        marks: seconds at which ramp-up, measurement and what follows it began, by their names.
    """

    trial: str
    throughput: MetricDefinition | None
    began_s: float | None = None
    doing: str = ""
    rate: str = ""
    errors: int = 0
    charts: dict[str, Chart] = field(default_factory=dict)
    marks: dict[str, float] = field(default_factory=dict)

    def hear(self, line: FeedLine) -> None:
        """Takes a line of the feed in."""
        if self.began_s is None:
            self.began_s = line.at_s
        self._take(line.said, second=line.at_s - self.began_s)

    def _take(self, said: ProgressLine, *, second: float) -> None:
        match said:
            case RateProgress():
                self.rate, self.errors = words.rate(said.per_s, self.throughput), said.errors
                unit = "per second" if self.throughput is None else self.throughput.unit
                chart = self.charts.setdefault(THROUGHPUT, Chart(title=f"throughput, {unit}"))
                chart.course.add(second, said.per_s * words.unit_s(self.throughput))
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
        return max((chart.course.seconds[-1] for chart in self.charts.values() if len(chart.course)), default=0.0)
