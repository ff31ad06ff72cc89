"""Whether a place has what a study sets: found out before anything starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fairtrial import settings
from fairtrial.errors import AgentError, PlaceError
from fairtrial.protocol.generated import CreateAction, GroupAction, Step, WriteAction
from fairtrial.run import elsewhere
from fairtrial.run.trial import encrypting
from fairtrial.settings.steps.effect import Effect, Requirement
from fairtrial.study.resolved import ResolvedTrial, Section
from fairtrial.wire.open_place import OpenPlace

# What a missing file means, by how its path begins.
ADVICE: Mapping[str, str] = {
    "/sys/kernel/mm/lru_gen/": "this kernel has no multi-generational LRU: take one from 6.1 on, built with "
    "CONFIG_LRU_GEN, for example with `place: {vm: {kernel: debian-6.1}}`",
    "/sys/kernel/mm/transparent_hugepage/": "this kernel was built without CONFIG_TRANSPARENT_HUGEPAGE",
    "/sys/devices/system/cpu/": "this machine does not scale its frequency, or its host does",
}
# Programs that change a place are in directories that a user's PATH may not have. What is built into a kernel may have
# no directory of a module.
LOOK = """
PATH=$PATH:/usr/sbin:/sbin
for it; do
    case $it in
    /sys/module/dm_*) [ -e "$it" ] || dmsetup targets 2>/dev/null | grep -q "^${it#/sys/module/dm_} " ;;
    */*) [ -e "$it" ] ;;
    *) command -v "$it" >/dev/null ;;
    esac || echo "$it"
done
"""


def require(place: OpenPlace, trials: Iterable[ResolvedTrial], *, rehearse: bool = True) -> None:
    """Looks for every file that some trial's settings write, and for all else that they need; tries control groups.

    Args:
        place: open; with its lock, if control groups are to be tried.
        trials: whose settings are asked about.
        rehearse: whether to try them, which changes the place for a moment.

    Raises:
        PlaceError: files or programs are not there, by setting; or the place cannot do it, by its facts or in fact.
    """
    every = list(trials)
    effects = [settings.effects(trial.settings, place.facts, elsewhere.context(trial)) for trial in every]
    needs: dict[str, Requirement] = {}
    if any(trial.network.tls for trial in every):
        needs[encrypting.NEEDED.what] = encrypting.NEEDED
    for effect in effects:
        for need in _needs(effect):
            needs.setdefault(need.what, need)
    if needs:
        _look(place, needs)
    if rehearse:
        _rehearse(place, effects)


def require_of_clients(place: OpenPlace, clients: Sequence[elsewhere.Client], trials: Iterable[ResolvedTrial]) -> None:
    """What settings ask of the places that loads run at, once they are open and before anything is prepared.

    Raises:
        PlaceError: they do not have it.
    """
    for trial in trials:
        settings.effects(trial.settings, place.facts, elsewhere.context(trial, clients))


def _look(place: OpenPlace, needs: Mapping[str, Requirement]) -> None:
    missing = place.require(["sh", "-c", LOOK, "look", *needs], hint="the place must have a POSIX shell").split()
    if missing:
        named = ", ".join(f"{needs[what].name} ({what})" for what in missing)
        nothing = "no such file" if missing[0].startswith("/") else "no such program"
        raise PlaceError(f"this place cannot set {named}: {nothing}", hint=needs[missing[0]].hint)


def _rehearse(place: OpenPlace, effects: Iterable[Effect]) -> None:
    """Groups are made and given their limits once per arm: what a kernel or a container refuses shows in no file."""
    tried: list[tuple[Step, ...]] = []
    for effect in effects:
        if not effect.rehearsed or effect.rehearsed in tried:
            continue
        tried.append(effect.rehearsed)
        for step in effect.rehearsed:
            try:
                place.agent.change(step)
            except AgentError as error:
                _undo(place)
                raise PlaceError(
                    f"this place cannot set {step.name}: {error}",
                    hint="in a container, control groups may not be its own; let the trials boot their own kernel: "
                    "`place: {vm: {kernel: debian-6.1}}`",
                ) from error
        _undo(place)


def _undo(place: OpenPlace) -> None:
    failed = place.agent.undo().failed
    if failed:
        raise PlaceError("what was tried could not be undone: " + "; ".join(failed), hint="restore it by hand")


def _needs(effect: Effect) -> Iterator[Requirement]:
    """What settings say themselves; files that are written, but for those that come with what a step makes."""
    yield from effect.needs
    made = [step.action.path for _, step in effect.steps if isinstance(step.action, CreateAction | GroupAction)]
    for _, step in effect.steps:
        if isinstance(step.action, WriteAction):
            path = step.action.path
            if not any(path.startswith(f"{each}/") for each in made):
                yield Requirement(step.name, path, _advice(path))


def _advice(path: str) -> str:
    for beginning, advice in ADVICE.items():
        if path.startswith(beginning):
            return advice
    return "another kernel, or a module that is not loaded, may have it"


def here(place: Section, resolved: Mapping[str, Mapping[str, ResolvedTrial]]) -> list[ResolvedTrial]:
    """Every trial of a plan that runs at a place."""
    return [trial for arms in resolved.values() for trial in arms.values() if trial.place == place]
