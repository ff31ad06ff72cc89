"""How long fairtrial waits for what may never come: one frozen value, from the command down to the agent.

Owns the limits of streams, places and servers. What a study may set (a workload's or a probe's own limits) is not here.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Final, Self

from fairtrial.errors import InputError, Problem

VARIABLE: Final = "FAIRTRIAL_LIMITS"
# Those that are kept at the place, by the agent and by its drives.
AGENTS: Final = ("silence_s", "grace_s", "hang_s", "lock_s", "lock_ending_s", "connected_s", "stall_s", "finish_s")
EMULATED: Final = 2.0  # a guest that swaps on emulated processors of a busy machine is slow to answer


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits in seconds.

    Attributes:
        silence_s: without a word from the other side; then a stream is lost, on either side of it.
        ping_s: between two pings; at most a third of `silence_s` in any case.
        hello_s: for an agent's greeting. It waits for a session that is ending, and undoes what a dead one left, for
            which a step has ten minutes (swapoff reads all back): giving up earlier would kill it halfway.
        bye_s: for an agent's farewell: grace, what hangs, and the undoing, as long as that may take after `hello_s`.
        end_s: for the program that carries a stream to end by itself; an agent that undoes goes on alone after it.
        kill_s: for a killed process to be gone; longer, and it hangs in the kernel.
        stop_s: for a load or a sampler that was told to end, which first writes what it measured.
        short_s: for programs that answer at once; longer, and the place hangs.
        connect_s: for ssh to connect.
        boot_s: for a guest to come up: 6 to 12 s under emulation on idle processors.
        off_s: for a guest to stop its processes, write its disk and switch itself off.
        start_s: for a server to be ready: recovery after a crash takes minutes with large memory.
        shutdown_s: for a server to shut down.
        grace_s: between SIGTERM and SIGKILL when a session ends, and for what a trial's processes leave running.
        hang_s: for killed processes to be gone before a session ends without them.
        lock_s: for a place's lock: a killed controller's agent needs a moment to notice.
        lock_ending_s: for the lock of a session that is ending, or of the same process, which was cut off.
        connected_s: for all users of a drive to connect.
        stall_s: for any transaction to end, in a drive that waits for a number of them.
        finish_s: for users to finish when a drive's window is over: longer than the 50 s that a MariaDB lock wait takes
            by default.
    """

    silence_s: float = 15.0
    ping_s: float = 5.0
    hello_s: float = 1800.0
    bye_s: float = 1800.0
    end_s: float = 40.0
    kill_s: float = 30.0
    stop_s: float = 30.0
    short_s: float = 60.0
    connect_s: float = 20.0
    boot_s: float = 120.0
    off_s: float = 40.0
    start_s: float = 120.0
    shutdown_s: float = 120.0
    grace_s: float = 5.0
    hang_s: float = 10.0
    lock_s: float = 1.0
    lock_ending_s: float = 60.0
    connected_s: float = 60.0
    stall_s: float = 30.0
    finish_s: float = 60.0

    @classmethod
    def from_environment(cls) -> Self:
        """The defaults, but for what `FAIRTRIAL_LIMITS` says: `silence_s=2,grace_s=0.5`.

        Raises:
            InputError: it names what is not a limit, or gives it no number of seconds.
        """
        known, values = {field.name for field in fields(cls)}, {}
        for entry in os.environ.get(VARIABLE, "").split(","):
            name, _, text = entry.strip().partition("=")
            if name:
                values[name] = _seconds(text)
            if name and (name not in known or not 0 < values[name] < math.inf):
                suggestion = f"expected one of {', '.join(sorted(known))}"
                problem = Problem("expected `name=seconds`", f"${VARIABLE}", field=entry.strip(), suggestion=suggestion)
                raise InputError([problem], hint=f"write {VARIABLE}=silence_s=15,grace_s=5, or unset it")
        return cls(**values)

    @property
    def ping_every_s(self) -> float:
        """Between two pings: three fit into the silence that ends a stream."""
        return min(self.ping_s, self.silence_s / 3)

    def emulated(self) -> Self:
        """For a guest on emulated processors."""
        return replace(self, silence_s=self.silence_s * EMULATED)

    def environment(self) -> Mapping[str, str]:
        """What tells an agent its share, so that both sides of a stream wait equally long."""
        return {VARIABLE: ",".join(f"{name}={asdict(self)[name]:g}" for name in AGENTS)}


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
