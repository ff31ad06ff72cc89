"""How long a run will take and how much disk it needs, before anything was measured.

Owns the estimate; figures of kinds come from the kinds (`Kind.duration_s`, `Kind.disk_bytes`).
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from fairtrial.record.models import Design, PlannedTrial
from fairtrial.study import ResolvedTrial
from fairtrial.study.builds import Builds
from fairtrial.study.catalogue import Catalogue, Kind

TRIAL_OVERHEAD_S = 5.0  # restore, settle and commit of a small data set; larger ones are in their kinds' figures
RECORD_BYTES_PER_TRIAL = 2 << 20  # a five-minute trial at one sample per second: histograms 0.5 MiB, telemetry 1 MiB
RECORD_BYTES_PER_DIAGNOSTIC = 16 << 20  # as above, and a profile of two processors for five minutes at 99 Hz: 6 MiB
COPIES_OF_DATA = 2  # what was prepared, and the copy a trial works on


def trial_duration_s(trial: ResolvedTrial, catalogue: Catalogue) -> float:
    """Expected wall time of one trial, seconds: what its kinds say and a constant."""
    return TRIAL_OVERHEAD_S + sum(kind.duration_s(value) for kind, value in _parts(trial, catalogue))


def duration_s(
    trials: list[PlannedTrial], resolved: dict[str, dict[str, ResolvedTrial]], catalogue: Catalogue
) -> float:
    """Expected wall time of all planned trials, seconds; of the two trials of a duet, the longer one's."""
    each = {
        (cell, arm): trial_duration_s(trial, catalogue)
        for cell, arms in resolved.items()
        for arm, trial in arms.items()
    }
    booted: set[str] = set()
    longest: dict[tuple[str, int | str], float] = {}
    for trial in trials:
        key = trial.cell, trial.id if trial.half is None else trial.block
        longest[key] = max(each[trial.cell, trial.arm], longest.get(key, 0.0))
        if trial.boot in booted:
            longest[key] -= places_s(resolved[trial.cell][trial.arm], catalogue)
        booted |= {trial.boot} - {""}
    return sum(longest.values())


def places_s(trial: ResolvedTrial, catalogue: Catalogue) -> float:
    """What its places add to a trial, which are opened one after the other: their boots, if they boot; seconds."""
    places = dict.fromkeys((trial.place, *trial.clients))
    return sum(catalogue.places[place.kind].duration_s(place.parameters) for place in places)


def disk_bytes(
    resolved: dict[str, dict[str, ResolvedTrial]], design: Design, catalogue: Catalogue, *, builds: Builds | None = None
) -> int:
    """Expected need at the place and for the record, bytes.

    Prepared data are kept, one per different system and workload that need any; one of them is copied at a time, beside
    what settings take for its trial. Each half of a duet has its own, and each arm whose system is of `builds`.
    """
    prepared: dict[tuple[str, ...], int] = {}
    largest = 0
    for arms in resolved.values():
        for arm, trial in arms.items():
            data = list(_data_parts(trial, catalogue))
            need = sum(kind.disk_bytes(value) for kind, value in data)
            own = str(builds.objects[arm]) if builds is not None and builds.program in str(trial.system) else ""
            prepared[trial.system.kind, own, str(need), *(kind.determines_data(value) for kind, value in data)] = need
            taken = sum(catalogue.settings[name].disk_bytes(value) for name, value in trial.settings.items())
            largest = max(largest, (COPIES_OF_DATA - 1) * need + taken)
    trials = design.blocks * design.per_boot * sum(len(arms) for arms in resolved.values())
    halves = 2 if design.order == "duet" else 1
    return halves * (sum(prepared.values()) + largest) + RECORD_BYTES_PER_TRIAL * trials


def diagnostic_bytes(diagnostics: list[PlannedTrial]) -> int:
    """Expected need of diagnostic trials beyond the data that they share with others, bytes."""
    return RECORD_BYTES_PER_DIAGNOSTIC * len(diagnostics)


def _parts(trial: ResolvedTrial, catalogue: Catalogue) -> Iterator[tuple[Kind, JsonValue]]:
    yield from _data_parts(trial, catalogue)
    for place in dict.fromkeys(trial.clients):
        if place != trial.place:
            yield catalogue.places[place.kind], place.parameters
    for name, value in trial.settings.items():
        yield catalogue.settings[name], value


def _data_parts(trial: ResolvedTrial, catalogue: Catalogue) -> Iterator[tuple[Kind, JsonValue]]:
    for section, known in ((trial.place, catalogue.places), (trial.system, catalogue.systems)):
        yield known[section.kind], section.parameters
    yield catalogue.workloads[trial.workload.kind], trial.workload.parameters
