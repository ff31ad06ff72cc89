"""Control groups of a trial: one for the server and one for the load, made where some setting limits a side.

All settings of a side share its groups: in version 2 a process is in one group only, in version 1 in one of each
controller's hierarchy. They lie at the top, where no limit of somebody else's applies besides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from fairtrial.errors import PlaceError
from fairtrial.protocol.generated import Controller, Step, WriteAction
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect, GroupLimit, Phase, Side
from fairtrial.settings.steps.shared import program, shell
from fairtrial.wire.facts import Facts

ROOT = 0
UNIFIED = 2  # the version of control groups that has one hierarchy for all controllers
PHASE: Phase = "before_server"  # what is restored for the trial is not charged to its server
# By controller: files of a group by which somebody uses it, and what each line says until somebody does (empty: none is
# there). Taken from the groups below the top, a controller would take their limits with it.
UNUSED = {
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": ""},
    "io": {"io.max": "", "io.latency": "", "io.weight": "default 100"},
    "memory": {"memory.low": "0", "memory.min": "0"}
    | dict.fromkeys(("memory.high", "memory.max", "memory.swap.max"), "max"),
}
# The kernel keeps a controller that a group below gives to its own.
TAKE_AWAY = """
file=$1 change=$2
shift 2
while [ $# -gt 0 ]; do
    if grep -Fqsvx "$2" "${file%/*}"/*/"$1"; then exit; fi
    shift 2
done
echo "$change" > "$file" || :
"""


def require_root(name: str, facts: Facts) -> None:
    """Refuses a setting that only root can make.

    Raises:
        PlaceError: the agent is not root.
    """
    if facts.user_id != ROOT:
        raise PlaceError(
            f"settings.{name} needs root at the place, and the agent there is user {facts.user_id}",
            hint="reach the place as root, or let the trials boot their own: `place: {vm: {kernel: debian-6.1}}`",
        )


def controller(name: str, facts: Facts, *, setting: str) -> Controller:
    """Where a controller is.

    Raises:
        PlaceError: the place has it in no hierarchy, or the agent is not root.
    """
    require_root(setting, facts)
    group = facts.controllers.get(name)
    if group is None:
        raise PlaceError(
            f"settings.{setting} needs the controller {name} of control groups, and this place has "
            f"{', '.join(facts.controllers) or 'none'}",
            hint="mount its hierarchy, boot with `cgroup_enable=memory` where distributions switch it off, or take "
            "`place: {vm: {kernel: debian-6.1}}`",
        )
    return group


def directory(limit: GroupLimit, facts: Facts, trial: TrialContext) -> str:
    """The group of a limit's side in its controller's hierarchy."""
    return f"{facts.controllers[limit.controller].directory}/fairtrial-{trial.directory.name}-{limit.side}"


def made(effect: Effect, facts: Facts, trial: TrialContext) -> Effect:
    """The effect with its limits as steps: groups made, files written, and the sides told where they start."""
    if not effect.limits:
        return effect
    _require_sides({limit.side for limit in effect.limits}, trial)
    data = str(effect.data_directory or trial.directory / "data")
    paths = [(limit, directory(limit, facts, trial)) for limit in effect.limits]
    groups = {side: _groups(side, paths) for side in ("server", "client")}
    empty = [*_enabled(_controllers(effect.limits, facts), facts)]
    empty += [_group(path, name=f"group.{side}") for side, own in groups.items() for path in own]
    limits = [limit.step(path, data) for limit, path in paths]
    return replace(
        effect,
        steps=(*effect.steps, *((PHASE, step) for step in [*empty, *limits])),
        server_groups=groups["server"],
        client_groups=groups["client"],
        limits=(),
        rehearsed=(*empty, *(step for step in limits if isinstance(step.action, WriteAction))),
    )


def _require_sides(sides: set[Side], trial: TrialContext) -> None:
    if "client" in sides and trial.load == "elsewhere":
        raise PlaceError(
            "settings limit the client, and it runs at another place, where nothing is set",
            hint="limit the server only, or leave `workload.place` out",
        )
    if len(sides) > 1 and trial.load == "within":
        raise PlaceError(
            "settings limit server and client apart, but system and load are one process here",
            hint="give `server` or `client`, not both",
        )


def _controllers(limits: Iterable[GroupLimit], facts: Facts) -> set[str]:
    """Those that limits need. In version 2 what is written back is charged to a group that counts memory, too."""
    names = {limit.controller for limit in limits}
    both = all(name in facts.controllers and facts.controllers[name].version == UNIFIED for name in ("io", "memory"))
    return names | {"memory"} if "io" in names and both else names


def _groups(side: str, paths: Iterable[tuple[GroupLimit, str]]) -> tuple[str, ...]:
    """Each directory once: in version 2 all controllers have the same."""
    return tuple(dict.fromkeys(path for limit, path in paths if limit.side == side))


def _group(path: str, *, name: str) -> Step:
    action = {"kind": "group", "path": path}
    return Step.model_validate({"name": name, "action": action, "inverse": {"kind": "restore"}})


def _enabled(names: Iterable[str], facts: Facts) -> Iterable[Step]:
    """Gives controllers of version 2 to the groups below the top, where they are not given yet."""
    for name in sorted(names):
        group = facts.controllers[name]
        if not group.enabled:
            file = f"{group.directory}/cgroup.subtree_control"
            yield program(
                shell('echo "$2" > "$1"', file, f"+{name}"),
                name=f"controller {name} for groups",
                undo=shell(TAKE_AWAY, file, f"-{name}", *chain(*UNUSED[name].items())),
            )
