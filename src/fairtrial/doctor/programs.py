"""Findings about programs that kinds run: where they are, and of which version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairtrial.doctor.grading import graded
from fairtrial.doctor.looking import PlaceObservation
from fairtrial.places import PLACES
from fairtrial.programs import Program
from fairtrial.record.models import Finding
from fairtrial.systems import SYSTEMS
from fairtrial.workloads import WORKLOADS

_OF_PROBES: Final = (
    Program("perf", "probes count and profile with it", "linux-perf"),
    Program("bpftrace", "probes trace with it"),
)
PROGRAMS: Final = {
    program.name: program
    for program in (
        *(program for system in SYSTEMS.values() for program in system.programs),
        *(program for workload in WORKLOADS.values() for program in workload.programs),
        *(program for place in PLACES.values() for program in place.programs),
        *_OF_PROBES,
    )
}


def findings(observation: PlaceObservation) -> Iterator[Finding]:
    """One for each program; none where programs were not looked for."""
    if observation.looked_for_programs:
        for program in PROGRAMS.values():
            yield _finding(observation, program)


def _finding(observation: PlaceObservation, program: Program) -> Finding:
    """A missing program makes no place unfit: it is only needed where a study uses it."""
    installation = observation.programs.get(program.name)
    return graded(
        name=f"program {program.name}",
        value=f"{installation[1] or 'version unknown'} ({installation[0]})" if installation else "not installed",
        grade="fine" if installation else "caution",
        why=program.use,
        fix=program.install,
    )
