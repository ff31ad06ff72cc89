"""What the load engine can do at most at a place: measured once there, and printed in every report."""

from __future__ import annotations

from collections.abc import Iterable

from fairtrial.protocol.generated import Ceiling
from fairtrial.protocol.subcommands import CEILING
from fairtrial.run.kinds import parts_of
from fairtrial.run.trial import workspace
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.wire.open_place import OpenPlace

PER_CORE_S = "client_operations_per_core_s"
INTERFACE = "client_interface"
_DIGITS = 16  # of the agent's hash, in the name of the file that keeps the figure


def facts(place: OpenPlace, trials: Iterable[ResolvedTrial]) -> dict[str, float | str]:
    """The ceiling as facts of the place; none where no trial drives a server from here.

    Another agent or another kernel is measured anew.

    Raises:
        PlaceError: it cannot be measured, in the agent's words.
    """
    if not any(_drives_a_server(trial) for trial in trials):
        return {}
    measured_for = f"{place.agent.hello.agent_sha256[:_DIGITS]}-{place.facts.kernel}"
    directory = workspace.work_directory(place, "ceiling")
    workspace.make(place, directory)
    kept = place.state_directory / f"ceiling-{measured_for}.json"
    ceiling = place.native(CEILING, Ceiling(directory=str(directory), kept=str(kept)))
    workspace.remove(place, directory)
    return {PER_CORE_S: ceiling.operations_per_core_s, INTERFACE: ceiling.interface}


def _drives_a_server(trial: ResolvedTrial) -> bool:
    parts = parts_of(trial)
    return parts.workload.is_native and parts.system.has_server()
