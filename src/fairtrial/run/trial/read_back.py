"""What of a trial's settings is written down as asked for, and whether the server runs where it was told to.

A launcher, or a manager of services, may have moved it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from fairtrial.errors import PlaceError, SystemStartError
from fairtrial.locks import Announcement, announcement_in
from fairtrial.protocol.generated import ExecuteAction, Step
from fairtrial.record.models import EffectiveSetting
from fairtrial.settings.affinity import processors
from fairtrial.wire import Process
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import how

SHELL = "sh"
ANY = "TRIAL"
ENDED = "the server ended right after its start"
# Of a process that is ending, its memory goes before its groups and its files do.
RUNS = 'grep -qs . "/proc/$1/cmdline"'


def expectation(step: Step, *, trial: str) -> str:
    """What must be read back; of a program that nothing is read back of, its words: how a file system was made.

    Args:
        step: of a setting.
        trial: the name of the trial's directory, which stands in no record: it says nothing and is never the same.
    """
    if step.check is not None:
        return step.check.expect.strip()
    if isinstance(step.action, ExecuteAction) and step.action.argv[0] != SHELL:
        return " ".join(step.action.argv).replace(trial, ANY)
    return ""


def of_any_trial(setting: EffectiveSetting, *, trial: str) -> EffectiveSetting:
    """The same without the name of the trial's directory."""
    texts = {
        name: text.replace(trial, ANY)
        for name in ("asked", "read_back")
        if (text := getattr(setting, name)) is not None
    }
    return setting.model_copy(update=texts)


def affinity(place: OpenPlace, pid: int, expected: Sequence[int]) -> EffectiveSetting:
    """The processors that a process may use.

    Raises:
        PlaceError: they are others than were asked for.
    """
    allowed = place.require(["grep", "-w", "Cpus_allowed_list", f"/proc/{pid}/status"], hint=ENDED).split()[-1]
    if processors(allowed) != tuple(sorted(expected)):
        raise PlaceError(
            f"the server may use processors {allowed}, asked were {tuple(expected)}",
            hint="does a cpuset of the place forbid some of them?",
        )
    return EffectiveSetting(name="affinity.server", asked=",".join(map(str, expected)), before=None, read_back=allowed)


def preloaded(place: OpenPlace, pid: int, expected: Announcement) -> EffectiveSetting:
    """What the lock library announces in a process: its environment would prove nothing.

    Raises:
        PlaceError: the library is not in it, or something else is in effect.
    """
    maps = place.require(["sh", "-c", 'grep fairtrial-locks "/proc/$1/maps" || :', "look", str(pid)], hint=ENDED)
    announcement = announcement_in(maps)
    if announcement != expected:
        says = "it is not preloaded" if announcement is None else f"it announces {announcement.words}"
        raise PlaceError(
            f"the lock library is not in effect in the server as {expected.words}: {says}",
            hint="a server that a script starts, or that is set-uid or linked statically, does not load it: "
            "docs/guides/locks.md has the limits",
        )
    return EffectiveSetting(name="locks", asked=expected.words, before=None, read_back=announcement.words)


def require_alive(place: OpenPlace, process: Process, error: PlaceError) -> None:
    """Of what was found of a process, the cause, where it ended meanwhile: it is in no group then, and has no file.

    Raises:
        SystemStartError: it has ended.
    """
    if place.execute(["sh", "-c", RUNS, "look", str(process.pid)]).code == 0:
        return
    with contextlib.suppress(TimeoutError):
        exited = process.wait(place.limits.short_s)  # the word of its end may come late
        raise SystemStartError(
            f"the server ended as soon as it had started ({how(exited)})",
            hint="does its memory limit leave it room? `settings.memory` counts the page cache that it fills, too",
        ) from error


def groups(place: OpenPlace, pid: int, expected: Sequence[str]) -> EffectiveSetting:
    """The control groups that a process is in, as far as they were asked for.

    Raises:
        PlaceError: it is in another one.
    """
    files = {f"{group}/cgroup.procs": group for group in expected}
    said = place.execute(["grep", "-lx", str(pid), *files]).output.split()
    joined = [group for file, group in files.items() if file in said]
    if len(joined) < len(expected):
        missing = sorted(set(expected) - set(joined))
        raise PlaceError(
            f"the server is not in the control groups that its limits are set in: {missing}",
            hint="start it without a launcher or a service manager that moves it to a group of its own",
        )
    return EffectiveSetting(name="groups.server", asked=" ".join(expected), before=None, read_back=" ".join(joined))
