"""From a resolved trial to the modules that carry it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial.study.resolved import ResolvedTrial
from fairtrial.systems import SYSTEMS, System
from fairtrial.workloads import WORKLOADS, Workload


@dataclass(frozen=True)
class Parts:
    """The modules of one trial, with their parameters."""

    system: System
    system_parameters: Mapping[str, Any]
    workload: Workload
    workload_parameters: Mapping[str, Any]


def parts_of(trial: ResolvedTrial) -> Parts:
    """Looks the one kind of system and of workload up; the study has been validated, so they exist."""
    (system_kind, system_parameters), (workload_kind, workload_parameters) = (
        next(iter(trial.system.items())),
        next(iter(trial.workload.items())),
    )
    return Parts(
        system=SYSTEMS[system_kind],
        system_parameters=system_parameters,
        workload=WORKLOADS[workload_kind],
        workload_parameters=workload_parameters,
    )
