"""What kinds exist, said to the study language without importing any of them.

A catalogue is put together above (`fairtrial.catalogue`) from the places, systems, settings and workloads; the study
package only sees names, parameter models and metric definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter

from fairtrial.study.tree.nodes import Branch
from fairtrial.study.tree.problems import Problems

Better = Literal["higher", "lower"]
MetricKind = Literal["wall_clock", "count"]


TRIAL_COLUMNS: Final = (  # of every table of trials, `metrics.frames` and raw_data.csv: no metric has such a name
    "id",
    "cell",
    "arm",
    "block",
    "round",
    "position",
    "seed",
    "valid",
    "used",
    "invalid_reason",
    "started",
    "host",
    "layout",
    "stopped_by",
)
_TOTALS: Final[Mapping[str, float]] = {
    "%": 100.0,
    "share": 1.0,
    "share of acquisitions": 1.0,
    "share of all processors": 1.0,
    "share of time": 1.0,
    "share of timed acquisitions": 1.0,
    "share of trials": 1.0,
}


class MetricDefinition(BaseModel):
    """A measured quantity.

    Attributes:
        name: as the study names it, unit last (`latency_ns_p99`).
        label: as a report prints it.
        unit: printed beside values (`transactions/min`).
        better: which direction is good.
        kind: wall-clock quantities are no evidence under emulation, counts are.
        source: where it comes from, for the reference page.
        resolution: how far below a value the true one may lie, as a share of it; how far above if negative; 0 for
            values known as they are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    label: str
    unit: str
    better: Better
    kind: MetricKind
    source: str = ""
    resolution: float = 0.0

    @property
    def total(self) -> float:
        """What values are shares of, by the unit; 0 if they are none."""
        return _TOTALS.get(self.unit, 0.0)


@dataclass(frozen=True)
class Kind:
    """One kind of place, system, workload or setting.

    Attributes:
        name: its key in the study file.
        summary: one sentence for the reference page.
        parameters: validates and documents its value. A model for mappings, any annotated type for scalars.
        metrics: the metrics a workload of this kind measures, from its validated parameters; empty for other kinds.
        throughput: the metric that says how much such a workload did per time, which progress tells; empty: none.
        duration_s: what this kind adds to a trial's expected duration, seconds, from its parameters as a resolved
            trial holds them (JSON values in base units): a workload its drive, a system its start and stop.
        example: parameters as a study file gives them, smallest that validate; the reference page shows them and the
            metrics they give.
        disk_bytes: what this kind is expected to need on the place's disk, bytes, from the same; a setting needs it
            while a trial runs.
        determines_data: what the data that trials start from depend on, as far as the study says it, as text, from the
            same.
        window_holds: what the window of a workload of this kind holds beside what it measures, from the same, in words;
            empty: nothing. Telemetry is of the whole window.
        systems: kinds of system that a workload of this kind can load, or a setting of it works on; empty: any.
        files: keys whose value names a YAML file, each with the key that the file's content takes the place of.
        handed_in: names that telemetry's addresses and commands may have in braces, from its parameters as a resolved
            trial holds them: what a system of this kind is started with.
        has_server: whether a system of this kind has a process of its own, from the same.
        check: notes what a model cannot see in validated parameters, given their nodes with their path.
    """

    name: str
    summary: str
    parameters: TypeAdapter[Any]
    metrics: Callable[[Any], Mapping[str, MetricDefinition]] = lambda _parameters: {}
    throughput: str = ""
    duration_s: Callable[[Any], float] = lambda _parameters: 0.0
    disk_bytes: Callable[[Any], int] = lambda _parameters: 0
    determines_data: Callable[[Any], str] = lambda _parameters: ""
    window_holds: Callable[[Any], str] = lambda _parameters: ""
    example: Any = None
    systems: frozenset[str] = frozenset()
    files: Mapping[str, str] = field(default_factory=dict)
    handed_in: Callable[[Any], Collection[str]] = lambda _parameters: ()
    has_server: Callable[[Any], bool] = lambda _parameters: True
    check: Callable[[Any, Branch, Problems], None] = lambda _parameters, _branch, _problems: None


@dataclass(frozen=True)
class Catalogue:
    """All kinds a study may name, by key.

    Attributes:
        places, systems, workloads, settings: kinds by name.
        telemetry_metrics: metrics available whatever the workload (from the samplers).
        window_metrics: names of those that are of the measured window.
        is_of_servers: whether only a system with a server of its own has values of a metric.
        check_settings: notes settings that contradict each other, given those of a resolved trial and their node.
    """

    places: Mapping[str, Kind]
    systems: Mapping[str, Kind]
    workloads: Mapping[str, Kind]
    settings: Mapping[str, Kind]
    telemetry_metrics: Mapping[str, MetricDefinition]
    window_metrics: Collection[str] = ()
    is_of_servers: Callable[[MetricDefinition], bool] = lambda _definition: False
    check_settings: Callable[[Mapping[str, Any], Branch, Problems], None] = lambda _settings, _branch, _problems: None
