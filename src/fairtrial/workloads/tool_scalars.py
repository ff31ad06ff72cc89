"""Scalars of another program's drive: those of every drive, without what that program does not tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from fairtrial.metrics import drive
from fairtrial.record.models import Window
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.workloads.made_files import ToolResult

# Of the engine's own: no program tells kinds of errors, or how busy its threads were, and its histogram is its own.
UNKNOWN: Final = ("client_busy_share", "client_longest_turn_s", "deadlocks", "saturated_latencies")


def compute(
    directory: Path, result: ToolResult, *, window: Window, unknown: Sequence[str] = UNKNOWN
) -> dict[str, float]:
    """What every drive has, and the program's processor time.

    Raises:
        RecordError: the timeline is damaged.
    """
    common = drive.compute(directory, result, window=window)
    spent_s = float(result.client["user_s"] + result.client["system_s"])
    return {name: value for name, value in common.items() if name not in unknown} | {"client_cpu_s": spent_s}


def client_cpu(process: str) -> MetricDefinition:
    """The definition of that processor time."""
    source = f"the kernel's accounting of {process}"
    return drive.definition("client_cpu_s", "client's processor time", unit="s", source=source)


def definitions(
    own: Iterable[MetricDefinition], *, latencies: Mapping[str, MetricDefinition], unknown: Sequence[str] = UNKNOWN
) -> dict[str, MetricDefinition]:
    """Every metric: of every drive, of latency, and the program's own, which may stand for another of that name."""
    common = {name: each for name, each in drive.DEFINITIONS.items() if name not in unknown}
    return {**common, **latencies, **{each.name: each for each in own}}
