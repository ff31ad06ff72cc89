"""From a resolved trial to the system and the workload that carry it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairtrial.study.resolved import ResolvedTrial
from fairtrial.systems import System, system_of
from fairtrial.workloads import Workload, workload_of


@dataclass(frozen=True)
class Parts:
    """The system and the workload of one trial, with their parameters."""

    system: System[Any]
    workload: Workload[Any]


def parts_of(trial: ResolvedTrial) -> Parts:
    """Looks the one kind of system and of workload up; the study has been validated, so they exist."""
    return Parts(system=system_of(trial.system), workload=workload_of(trial.workload))
