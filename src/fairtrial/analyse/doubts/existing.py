"""What a server that was there already keeps from a study: sight of its machine, a known state, options that stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from fairtrial.analyse.models import Doubt
from fairtrial.protocol.endpoints import is_loopback
from fairtrial.record.models import Plan, TrialRecord
from fairtrial.study.resolved import ResolvedTrial

AT: Final = "at"
OPTIONS: Final = "options"
CARRIED: Final = "none"


def doubts(plan: Plan) -> Iterator[Doubt]:
    """One for all servers on machines without an agent, one for state that passes from trial to trial."""
    trials = [trial for arms in plan.resolved.values() for trial in arms.values()]
    addresses = [_of(trial, AT) for trial in trials]
    hosts = sorted({str(at["host"]) for at in addresses if at.get("host") and not is_loopback(str(at["host"]))})
    if hosts:
        yield Doubt(
            code="host_unseen",
            message=f"{', '.join(hosts)}: no agent runs there, so nothing is known of processors, memory, disks and "
            "other load; only the server's own counters are recorded",
            advice="run with `place` on that machine, and name the server by its socket or loopback there",
        )
    begun = "trials began with what the trials before them had left in the database"
    if any(at.get("restore") == CARRIED for at in addresses):
        yield Doubt(
            code="state_carried",
            message=f"{begun} (`restore: none`)",
            advice="restore it before every trial: `template`, `reload` or a command",
        )
    elif any(_is_kept(trial) for trial in trials):
        yield Doubt(
            code="state_carried",
            message=f"{begun}: the workload loads nothing into it again (`may_overwrite`)",
            advice="restore it before every trial by a command, or name a database that does not exist",
        )


def moved(plan: Plan, used: Sequence[TrialRecord]) -> Iterator[Doubt]:
    """One for options of such servers that arms set, and that changed between the trials of an arm that does not."""
    names = {name.lower() for arms in plan.resolved.values() for trial in arms.values() for name in _of(trial, OPTIONS)}
    values: dict[tuple[str, str, str, str], set[str]] = {}
    for trial in used:
        if _of(trial.resolved, AT):
            where = trial.trial.cell, trial.trial.arm, trial.host
            for name, value in trial.options.items():
                if name.lower() in names:
                    values.setdefault((name, *where), set()).add(value)
    apart = sorted(key for key, different in values.items() if len(different) > 1)
    if apart:
        name, cell, arm, _ = apart[0]
        yield Doubt(
            code="option_moved",
            message=f"{', '.join(dict.fromkeys(name for name, *_ in apart))} of the server changed between trials of "
            f"one arm ({name}: {', '.join(sorted(values[apart[0]]))} in {arm} of {cell})",
            advice="run again while nobody changes the server, or set the option in every arm",
        )


def _is_kept(trial: ResolvedTrial) -> bool:
    """Whether a database of the user's stays as trials leave it; one that fairtrial made is empty before each."""
    at, workload = _of(trial, AT), trial.workload
    if at.get("may_overwrite") is None or isinstance(at.get("restore"), dict):
        return False
    if workload.kind == "script":
        return not _mapping(workload.parameters, "content").get("setup")
    return workload.kind == "command"


def _of(trial: ResolvedTrial, name: str) -> dict[str, JsonValue]:
    return _mapping(trial.system.parameters, name)


def _mapping(parameters: JsonValue, name: str) -> dict[str, JsonValue]:
    """A mapping among parameters; empty if there is none."""
    found = parameters.get(name) if isinstance(parameters, dict) else None
    return found if isinstance(found, dict) else {}
