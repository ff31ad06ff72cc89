"""What a server that was there already keeps from a study: sight of its machine, and a known state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue

from fairtrial.analyse.models import Doubt
from fairtrial.protocol.endpoints import is_loopback
from fairtrial.record.models import Plan

AT: Final = "at"
CARRIED: Final = "none"


def doubts(plan: Plan) -> Iterator[Doubt]:
    """One for all servers on machines without an agent, one for state that passes from trial to trial."""
    addresses = [_at(trial.system.parameters) for arms in plan.resolved.values() for trial in arms.values()]
    hosts = sorted({str(at["host"]) for at in addresses if at.get("host") and not is_loopback(str(at["host"]))})
    if hosts:
        yield Doubt(
            code="host_unseen",
            message=f"{', '.join(hosts)}: no agent runs there, so nothing is known of processors, memory, disks and "
            "other load; only the server's own counters are recorded",
            advice="run with `place` on that machine, and name the server by its socket or loopback there",
        )
    if any(at.get("restore") == CARRIED for at in addresses):
        yield Doubt(
            code="state_carried",
            message="trials began with what the trials before them had left in the database (`restore: none`)",
            advice="restore it before every trial: `template`, `reload` or a command",
        )


def _at(parameters: JsonValue) -> dict[str, JsonValue]:
    at = parameters.get(AT) if isinstance(parameters, dict) else None
    return at if isinstance(at, dict) else {}
