"""What a run of a study does, from the study alone: programs, changes, files, addresses and downloads.

Nothing is run, reached or changed for it: each kind says by `acts` what its parameters mean. It must not ask a place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from fairtrial import places
from fairtrial.effects import changes, telemetry
from fairtrial.programs import Act
from fairtrial.record.models import Plan
from fairtrial.run.kinds import parts_of
from fairtrial.study.catalogue import Catalogue
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.systems import private_acts

Trial = tuple[str, str]  # cell and arm


@dataclass
class PlaceActs:
    """What is done at one place.

    Attributes:
        title: the place, in words.
        agent_user: who the agent is there.
        acts: what is done, each with the trials that do it.
    """

    title: str
    agent_user: str
    acts: dict[Act, set[Trial]] = field(default_factory=dict)

    def note(self, acts: Iterator[Act], trial: Trial) -> None:
        """Takes in what a trial does."""
        for act in acts:
            self.acts.setdefault(act, set()).add(trial)


def unasking(catalogue: Catalogue) -> Catalogue:
    """The same kinds, none of which asks a program of this machine what it says to a study, as fio's does."""
    quiet = {name: replace(kind, check=lambda *_: None) for name, kind in catalogue.workloads.items()}
    return replace(catalogue, workloads=quiet)


def effects(plan: Plan, trials: Mapping[Trial, ResolvedTrial]) -> list[PlaceActs]:
    """By place, in the order of the trials.

    Args:
        plan: with what is read beside the load.
        trials: its trials, by cell and arm.
    """
    found: dict[tuple[str, Section], PlaceActs] = {}

    def at(section: Section, role: str) -> PlaceActs:
        place = places.place_of(section)
        return found.setdefault((role, section), PlaceActs(f"{role}{place.title}", place.agent_user))

    for named, trial in trials.items():
        own = at(trial.place, "")
        own.note(places.place_of(trial.place).acts(), named)
        own.note(iter([_settling(trial.place)]), named)
        own.note(_of_system(trial), named)
        own.note(changes.acts(trial), named)
        own.note(telemetry.acts(plan, arm=named[1]), named)
        load = parts_of(trial).workload
        own.note(load.loading(), named)
        for client in trial.clients:
            there = at(client, "the load's place ")
            there.note(places.place_of(client).acts(), named)
            there.note(load.acts(), named)
        if not trial.clients:
            own.note(load.acts(), named)
    return list(found.values())


def _settling(place: Section) -> Act:
    """Of the kernel that obeys: a container's is this machine's."""
    return Act(
        "changes",
        "page cache of the whole machine: written out and, where the agent is root, dropped",
        "before every trial",
        here=places.is_fresh(place) and not places.is_booted(place),
        undo="nothing: programs there read their files from disk again",
    )


def _of_system(trial: ResolvedTrial) -> Iterator[Act]:
    system = parts_of(trial).system
    yield from system.acts()
    if trial.clients and system.encrypts and system.there() is None:
        yield private_acts.open_to_clients()
    if trial.network.tls:
        yield Act("runs", "openssl req, openssl ca: a certificate of the trial's own", "in every trial")
