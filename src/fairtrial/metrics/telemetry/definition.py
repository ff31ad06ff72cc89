"""What one telemetry metric is: a definition beside its computation, and families of metrics that share a source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairtrial.metrics.telemetry.window import NANOSECONDS_PER_SECOND, WindowSamples
from fairtrial.study.catalogue import Better, MetricDefinition, MetricKind

Value = Callable[[WindowSamples], float | None]


@dataclass(frozen=True)
class Metric:
    """A definition, the sampler source it reads, and how it is computed; None where a column is missing."""

    definition: MetricDefinition
    source: str
    value: Value


@dataclass(frozen=True)
class Family:
    """Metrics of one source, unit and kind."""

    source: str
    unit: str
    kind: MetricKind

    def metric(self, name: str, value: Value, *, of: str, label: str, better: Better = "lower") -> Metric:
        """One metric; `of` names its columns."""
        definition = MetricDefinition(
            name=name,
            label=label,
            unit=self.unit,
            better=better,
            kind=self.kind,
            source=f"telemetry-{self.source}.parquet: {of}",
        )
        return Metric(definition=definition, source=self.source, value=value)


def count(*columns: str) -> Value:
    """What counters grew by inside the window, summed over those that are there."""
    return lambda samples: samples.grown(*columns)


def per_second(column: str, *, scale: float) -> Value:
    """What a counter grew by per second of the window, in units of `scale`."""

    def rate(samples: WindowSamples) -> float | None:
        growth = samples.grown(column)
        return None if growth is None else growth / scale / samples.length_s

    return rate


def mean(column: str) -> Value:
    """A gauge's mean over the window."""
    return lambda samples: samples.mean(samples.gauge(column))


def answer_s(samples: WindowSamples) -> float | None:
    """How long the server took to answer, mean over the window."""
    answer_ns = samples.mean(samples.gauge("answer_ns"))
    return None if answer_ns is None else answer_ns / NANOSECONDS_PER_SECOND


def first(groups: Sequence[Sequence[str]]) -> Value:
    """What the first group of counters that the place has grew by: kernels split the same pages in several ways."""

    def grown(samples: WindowSamples) -> float | None:
        there = (group for group in groups if any(name in samples.frame.columns for name in group))
        return samples.grown(*next(there, ()))

    return grown


def either(groups: Sequence[Sequence[str]]) -> str:
    """How the source of a metric by `first` reads."""
    return ", or where a kernel has none of these ".join(" + ".join(group) for group in groups)
