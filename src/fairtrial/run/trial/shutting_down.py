"""A slow shutdown right after the load: the time it takes is what the load has left undone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.metrics.telemetry.shutdown import FILE, Shutdown
from fairtrial.run.kinds import Parts
from fairtrial.systems import Instance, Launch
from fairtrial.wire.open_place import OpenPlace
from fairtrial.wire.process import how

KILLED: Final = 9
Phase = Callable[[str], AbstractContextManager[None]]


@dataclass(frozen=True)
class LoadedServer:
    """A server whose load has ended.

    Attributes:
        instance: it.
        launch: how it was started.
        load_ended_ns: when the measured window ended, on the place's monotonic clock; None without a window. What ends
            between then and the shutdown takes its time, more in one arm than in another, and purge works meanwhile.
    """

    instance: Instance
    launch: Launch
    load_ended_ns: int | None


def shut_down_slowly(place: OpenPlace, parts: Parts, loaded: LoadedServer, *, phase: Phase) -> Instance:
    """Shuts the trial's server down slowly where the study asks for it, and keeps how long it took beside its log.

    The limit is the server's own, from its being told; what passed between the load's end and that comes on top.

    Returns:
        The server to check: the same one, if nothing was asked; started again, if it ended by itself. One that was cut
        off is not started, because its recovery may take long: it has no process, and is not checked.

    Raises:
        PlaceError: it ended in another way than by itself or by its limit.
        SystemStartError: it does not start again.
    """
    instance, launch = loaded.instance, loaded.launch
    process, limit_s = instance.process, instance.slow_shutdown_s
    if limit_s is None or process is None or process.exited is not None:
        return instance
    with phase("slow_shutdown"):
        began_ns = place.agent.clock().monotonic_ns
        parts.system.stop(place, instance, settled=True)
        exited = process.wait(place.limits.short_s)  # it has ended: `stop` has waited
        if exited.code != 0 and not (process.was_killed and exited.signal == KILLED):
            raise PlaceError(f"the server ended with {how(exited)} when shut down slowly", hint="its log says why")
        complete = exited.code == 0
        shutdown = Shutdown(
            began_ns=began_ns,
            ended_ns=exited.time_ns,
            limit_s=limit_s,
            complete=complete,
            load_ended_ns=loaded.load_ended_ns,
        )
        path = launch.log_path.parent.parent / FILE  # log/server.log is one of the trial's raw files
        place.agent.put(str(path), shutdown.model_dump_json().encode(), mode=0o644)
    if not complete:
        return replace(instance, process=None, endpoint=None)
    with phase("start"):
        return parts.system.start(place, launch)
