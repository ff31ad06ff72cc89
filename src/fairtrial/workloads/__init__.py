"""Workloads: one class per kind (see `workload.Workload`), ours and those of entry points `fairtrial.workloads`.

A workload must not know which system it drives beyond the endpoint.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from fairtrial.plugins import Kinds, chosen
from fairtrial.protocol.generated import Loaded
from fairtrial.study.catalogue import Kind, MetricDefinition
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.wire.native import OnProgress
from fairtrial.workloads.command import Command
from fairtrial.workloads.engine.file_access import FileAccess
from fairtrial.workloads.engine.locks import Locks
from fairtrial.workloads.engine.oltp import Oltp
from fairtrial.workloads.engine.script import Script
from fairtrial.workloads.engine.tpcc import Tpcc
from fairtrial.workloads.fio import Fio
from fairtrial.workloads.hammerdb import Hammerdb
from fairtrial.workloads.pgbench import Pgbench
from fairtrial.workloads.sysbench import Sysbench
from fairtrial.workloads.workload import Drive, DriveOutcome, Workload

__all__ = [
    "WORKLOADS",
    "Drive",
    "DriveOutcome",
    "Loaded",
    "OnProgress",
    "Workload",
    "kind_of",
    "throughput_of",
    "workload_of",
]

_OWN = (Command, FileAccess, Fio, Hammerdb, Locks, Oltp, Pgbench, Script, Sysbench, Tpcc)
WORKLOADS: Mapping[str, type[Workload[Any]]] = Kinds(_OWN, base=Workload, group="fairtrial.workloads")


@cache
def workload_of(section: Section) -> Workload[Any]:
    """The workload of a resolved trial's section, validated once.

    Raises:
        RecordError: this version has no such kind, or different parameters of it.
    """
    return chosen(WORKLOADS, section, what="workload")


def throughput_of(trial: ResolvedTrial) -> MetricDefinition | None:
    """The metric that says how much a trial's workload did per time; None if there is none.

    Raises:
        RecordError: as `workload_of`.
    """
    workload = workload_of(trial.workload)
    return workload.metrics()[workload.throughput] if workload.throughput else None


def kind_of(workload: type[Workload[Any]]) -> Kind:
    """A workload as the study language sees it."""

    def of(parameters: Mapping[str, Any]) -> Workload[Any]:
        return workload(workload.model.model_validate(parameters))

    return Kind(
        name=workload.name,
        summary=workload.summary,
        parameters=TypeAdapter(workload.model),
        metrics=lambda parameters: workload(parameters).metrics(),
        throughput=workload.throughput,
        duration_s=lambda parameters: of(parameters).duration_s(),
        example=dict(workload.example),
        disk_bytes=lambda parameters: of(parameters).disk_bytes(),
        determines_data=lambda parameters: json.dumps(of(parameters).data(), sort_keys=True),
        window_holds=lambda parameters: of(parameters).window_holds(),
        systems=workload.systems,
        files=workload.files,
        check=workload.check,
    )
