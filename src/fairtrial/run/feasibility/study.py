"""Which studies could run at a place, and what the others lack: the checks that a run makes itself, without running.

Owns the question only. What a study needs is read from its plan: place, system, workload, settings, probes and size.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from fairtrial.doctor.kernel import booted_kernels, perf
from fairtrial.doctor.looking import PlaceObservation
from fairtrial.doctor.programs import PROGRAMS
from fairtrial.errors import FairtrialError, InputError, PlaceError
from fairtrial.places import BootedPlace, FreshPlace, is_booted, is_fresh, place_of
from fairtrial.places.local import HELPER_VARIABLE
from fairtrial.protocol.generated import Step, WriteAction
from fairtrial.record.models import Plan
from fairtrial.run import elsewhere, existing
from fairtrial.run.feasibility import carriers, emulation
from fairtrial.run.feasibility import disk as room
from fairtrial.run.feasibility import settings as settable
from fairtrial.settings import effects
from fairtrial.settings.steps.effect import Phase
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.study.tree.quantities import format_bytes
from fairtrial.systems import system_of
from fairtrial.wire.open_place import OpenPlace
from fairtrial.workloads import Workload, workload_of

LOCAL: Final = "local"
ROOT: Final = 0
PROGRAMS_OF_PROBES: Final[Mapping[str, str]] = {"perf_stat": "perf", "perf_record": "perf", "bpftrace": "bpftrace"}


@dataclass(frozen=True)
class Lack:
    """One thing that a study needs and a place has not, with what would mend it."""

    what: str
    fix: str

    @classmethod
    def of(cls, error: FairtrialError) -> Self:
        """What an error says, with the field that asks for it."""
        field = error.field if isinstance(error, PlaceError) else ""
        return cls(f"{field}: {error}" if field else str(error), error.hint)


@dataclass(frozen=True)
class StudyFeasibility:
    """Whether a study could run at a place.

    Attributes:
        can_run: None where the study names a place that was not looked at.
        lacks: everything in its way; where it was not looked at, how to look.
    """

    study: str
    question: str
    can_run: bool | None
    lacks: tuple[Lack, ...]

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        return asdict(self)


def feasibilities(
    plans: Iterable[Plan], place: OpenPlace, observation: PlaceObservation, *, at: Section
) -> list[StudyFeasibility]:
    """Whether each study could run; a server that several name is looked for once.

    Raises:
        StreamLostError: the stream to the place ended.
    """
    known: dict[str, list[Lack]] = {}
    return [feasibility(plan, place, observation, at=at, known=known) for plan in plans]


def feasibility(
    plan: Plan,
    place: OpenPlace,
    observation: PlaceObservation,
    *,
    at: Section,
    known: dict[str, list[Lack]] | None = None,
) -> StudyFeasibility:
    """Asks everything that a run would ask before its first trial, and names all that is missing at once.

    Args:
        plan: the study's.
        place: open; what it has is looked at, and nothing is changed.
        observation: of the same place, programs included.
        at: the place's section. A study that says `local` is taken to run there, wherever it is.
        known: what is known of servers and workloads there already; what is found is added.

    Raises:
        StreamLostError: the stream to the place ended.
    """
    trials = [trial for arms in plan.resolved.values() for trial in arms.values()]
    needed = [place for trial in trials for place in (trial.place, *elsewhere.of(trial))]
    unseen = {place_of(place).title: place for place in needed if not _here(place, at)}
    theirs = [trial for trial in trials if _here(trial.place, at) and _disk_is_observed(trial, observation)]
    lacks = [*_of_plan(plan, place, observation, trials=theirs)]
    known = {} if known is None else known
    for trial in trials:
        if _here(trial.place, at):
            lacks += [
                *_of_trial(trial, place, observation, plan=plan, known=known),
                *_settings(trial, place, observation, at=at),
                *_server(trial, place, observation, known=known),
            ]
    lacks = list(dict.fromkeys(lacks))
    lacks += [Lack(f"runs at {name}", f"`fairtrial doctor {place_of(of).word}`") for name, of in unseen.items()]
    return StudyFeasibility(
        study=plan.study, question=plan.question, can_run=None if unseen else not lacks, lacks=tuple(lacks)
    )


def _here(place: Section, at: Section) -> bool:
    """Whether what was looked at tells about a place. A guest has its programs from the machine that carries it."""
    return place.kind == LOCAL or place == at or (is_fresh(place) and at.kind == LOCAL)


def _disk_is_observed(trial: ResolvedTrial, observation: PlaceObservation) -> bool:
    """Whether a trial's data are on the disk that was looked at: a guest has one of its own."""
    return not is_booted(trial.place) or observation.facts.guest is not None


def _of_plan(
    plan: Plan, place: OpenPlace, observation: PlaceObservation, *, trials: Sequence[ResolvedTrial]
) -> Iterator[Lack]:
    """What the whole run needs, whatever the trial."""
    try:
        room.require(place, plan.disk_bytes, trials=trials)
    except PlaceError as error:
        yield Lack.of(error)
    programs = {PROGRAMS_OF_PROBES[probe.kind] for probe in plan.probes if probe.kind in PROGRAMS_OF_PROBES}
    for program in sorted(programs):
        yield from _program(observation, program)
    if "perf" in programs and (finding := perf(observation)).grade != "fine":
        yield Lack(f"probes with perf: {finding.value}", finding.fix)


def _of_trial(
    trial: ResolvedTrial,
    place: OpenPlace,
    observation: PlaceObservation,
    *,
    plan: Plan,
    known: dict[str, list[Lack]],
) -> Iterator[Lack]:
    carried = _is_carried(trial, observation)
    if carried:
        yield from _carrier(carriers.fresh(trial.place), plan, observation)
    for refusing in (elsewhere.require, existing.refuse):
        try:
            refusing(trial)
        except (PlaceError, InputError) as error:
            yield Lack.of(error)
    own = plan.builds is not None  # its program is linked before the first trial
    if not own and not elsewhere.of(trial) and (not carried or is_booted(trial.place)):  # a container has its own
        workload = trial.workload.model_dump_json()  # the same in most trials: each asks its programs who they are
        if workload not in known:
            known[workload] = [*_workload(workload_of(trial.workload), place, observation)]
        yield from known[workload]


def _is_carried(trial: ResolvedTrial, observation: PlaceObservation) -> bool:
    """Whether what was looked at is the machine that carries the trial's place, and not such a place itself."""
    inside = observation.facts.guest is not None or observation.facts.container is not None
    return is_fresh(trial.place) and not inside


def _server(
    trial: ResolvedTrial, place: OpenPlace, observation: PlaceObservation, *, known: dict[str, list[Lack]]
) -> Iterator[Lack]:
    """Its program, which depends on where it comes from and on none of its options; memory for its cache."""
    system = system_of(trial.system)
    source = f"{system.name} {system.parameters.model_dump_json(exclude={'options'})}"
    if source not in known:
        known[source] = []
        try:
            inside = observation.facts.container is not None or not is_fresh(trial.place) or is_booted(trial.place)
            if system.awaited() is None and inside:  # looking downloads nothing, and a container has its own
                system.identity(place)
        except (PlaceError, InputError) as error:
            known[source] = [Lack.of(error)]
    yield from known[source]
    name, cache_bytes = system.cache_bytes() or ("", 0.0)
    memory_bytes = (observation.kibibytes("MemTotal") or 0) << 10
    if is_fresh(trial.place):
        memory_bytes = carriers.fresh(trial.place).requirements().memory_bytes or memory_bytes
    if memory_bytes and not is_booted(trial.place) and cache_bytes > memory_bytes:
        yield Lack(
            f"{name} is {format_bytes(int(cache_bytes))}, and this place has {memory_bytes >> 20}MiB of memory",
            f"use a larger machine, a smaller size, or `--set system.{system.name}.options.{name}=…`",
        )


def _workload(workload: Workload[Any], place: OpenPlace, observation: PlaceObservation) -> Iterator[Lack]:
    """The programs it runs, by name and then as a drive looks for them; native ones run none."""
    missing = [program.name for program in workload.programs if program.name not in observation.programs]
    for program in missing:
        yield from _program(observation, program)
    if not missing:
        try:
            workload.require(place)
        except PlaceError as error:
            yield Lack.of(error)


def _settings(trial: ResolvedTrial, place: OpenPlace, observation: PlaceObservation, *, at: Section) -> Iterator[Lack]:
    if _is_carried(trial, observation):  # it has other settings than its machine
        return
    try:
        settable.require(place, [trial], rehearse=False)  # nothing here may change the place
    except PlaceError as error:
        yield Lack.of(error)
        return
    steps = effects(trial.settings, observation.facts, elsewhere.context(trial)).steps
    names = dict.fromkeys(step.name for _phase, step in steps)
    if names and observation.facts.user_id != ROOT and not (at.kind == LOCAL and _helped(steps)):
        yield Lack(f"{', '.join(names)} can only be set by root", "run as root, or reach the place as root")


def _helped(steps: Iterable[tuple[Phase, Step]]) -> bool:
    """Whether the user has a helper on this machine, and steps only write: what it refuses, it says itself."""
    return bool(os.environ.get(HELPER_VARIABLE)) and all(isinstance(step.action, WriteAction) for _phase, step in steps)


def _carrier(place: FreshPlace[Any], plan: Plan, observation: PlaceObservation) -> Iterator[Lack]:
    """Programs, an image and memory that its machine has not, and a processor that may be measured on."""
    need = place.requirements()
    missing = [program for program in need.programs if program not in observation.programs]
    for program in missing:
        yield from _program(observation, program)
    available = (observation.kibibytes("MemAvailable") or 0) << 10
    noun = "guest" if isinstance(place, BootedPlace) else place.name
    if available and need.memory_bytes > available:
        yield Lack(
            f"its {noun} takes {format_bytes(need.memory_bytes)} of memory, and {available >> 20}MiB are available",
            f"stop what takes the memory, or give the {noun} less with `--set place.{place.name}.memory=…`",
        )
    try:
        if not missing:
            place.require()
    except PlaceError as error:
        yield Lack.of(error)
    if need.virtualisation is None:
        return
    # Whether KVM is there where it must be; what has not been tried is believed.
    tried = booted_kernels(observation)
    works = observation.nodes.get("/dev/kvm") == "rw" and (tried is None or any(tried))
    if need.virtualisation == "required" and not works:
        yield Lack("it asks for KVM, which boots no kernel here", "use a machine that lends its processor")
    try:
        emulation.require_counts(plan, emulated=need.virtualisation == "unused" or not works)
    except PlaceError as error:
        yield Lack.of(error)


def _program(observation: PlaceObservation, program: str) -> Iterator[Lack]:
    if program not in observation.programs:
        yield Lack(f"no {program} at this place", PROGRAMS[program].install)
