"""What a setting does to a trial: steps at a phase, and how processes are started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

from fairtrial.errors import PlaceError
from fairtrial.locks import Announcement
from fairtrial.protocol.generated import Step
from fairtrial.settings.steps.purge import PurgeGovernor

Phase = Literal["place", "before_server", "after_server", "before_ramp_up"]
Side = Literal["server", "client"]


@dataclass(frozen=True)
class Requirement:
    """What a place must have for a setting, looked for before anything starts.

    Attributes:
        name: of the setting, as messages call it.
        what: an absolute path, or a program's name.
        hint: what to do where it is missing.
    """

    name: str
    what: str
    hint: str


@dataclass(frozen=True)
class GroupLimit:
    """What the control group of one side is given.

    Attributes:
        controller: that does it (`memory`).
        step: by the group's directory and the trial's data directory.
    """

    side: Side
    controller: str
    step: Callable[[str, str], Step]


@dataclass(frozen=True)
class Effect:
    """What a setting does.

    Attributes:
        steps: changes of the place, each with the phase in which it is applied, in order.
        environment: variables of the process that runs the system (the load engine, where the system is embedded).
        server_processors: processors the server may use; None: all it would otherwise get.
        client_processors: processors the load may use; None likewise.
        server_groups: directories of the control groups that the server starts in.
        client_groups: of those that the load starts in.
        limits: what groups are yet to be given; `settings.effects` makes steps of them.
        needs: what the place must have.
        rehearsed: those of the steps that are tried before anything starts, as they cost nothing and need no data.
        data_directory: where the trial's data lie; None: in the trial's directory.
        governor: parameters of a governor of purge beside the server; None: there is none.
        preloaded: what the lock library must announce in the server; None: it is not preloaded.
    """

    steps: tuple[tuple[Phase, Step], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    server_processors: tuple[int, ...] | None = None
    client_processors: tuple[int, ...] | None = None
    server_groups: tuple[str, ...] = ()
    client_groups: tuple[str, ...] = ()
    limits: tuple[GroupLimit, ...] = ()
    needs: tuple[Requirement, ...] = ()
    rehearsed: tuple[Step, ...] = ()
    data_directory: PurePosixPath | None = None
    governor: PurgeGovernor | None = None
    preloaded: Announcement | None = None


def before_server(steps: Iterable[Step]) -> Effect:
    """Changes of the place that are in effect when the server starts."""
    return Effect(steps=tuple(("before_server", step) for step in steps))


def merged(effects: Iterable[Effect]) -> Effect:
    """Several effects as one; a later one wins where both say something about a process, but for processors.

    Raises:
        PlaceError: two settings give a side processors that have none in common.
    """
    steps: list[tuple[Phase, Step]] = []
    environment: dict[str, str] = {}
    server: tuple[int, ...] | None = None
    client: tuple[int, ...] | None = None
    limits: list[GroupLimit] = []
    needs: list[Requirement] = []
    data: PurePosixPath | None = None
    governor: PurgeGovernor | None = None
    preloaded: Announcement | None = None
    for effect in effects:
        steps += effect.steps
        limits += effect.limits
        needs += effect.needs
        data = effect.data_directory or data
        governor = effect.governor or governor
        preloaded = effect.preloaded or preloaded
        environment |= effect.environment
        server = _both(server, effect.server_processors)
        client = _both(client, effect.client_processors)
    return Effect(
        steps=tuple(steps),
        environment=environment,
        server_processors=server,
        client_processors=client,
        limits=tuple(limits),
        needs=tuple(needs),
        data_directory=data,
        governor=governor,
        preloaded=preloaded,
    )


def _both(one: tuple[int, ...] | None, other: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Processors that two settings allow: `affinity` within the nodes of `numa`."""
    if one is None or other is None:
        return other if one is None else one
    common = tuple(processor for processor in one if processor in other)
    if not common:
        raise PlaceError(
            f"settings.affinity allows processors {one}, the nodes of settings.numa have {other}: none is in both",
            hint="leave one of the two out",
        )
    return common
