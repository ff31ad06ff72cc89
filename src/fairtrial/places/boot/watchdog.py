"""A hardware watchdog that nobody else uses restarts a host that hangs in a trial; the default kernel follows."""

from __future__ import annotations

from typing import Final

from fairtrial.errors import AgentError
from fairtrial.wire import Agent

NAME: Final = "watchdog"
DEVICE: Final = "/sys/class/watchdog/watchdog0"
# A watchdog that cannot be stopped would restart the host between two streams. `V` stops it (watchdog-api.rst).
FEED: Final = """
exec 2>/dev/null
exec 3>/dev/watchdog0 || exit 0
trap 'printf V >&3; exit 0' TERM INT HUP EXIT
while :; do printf . >&3; sleep 5 & wait $!; done
"""


def begin(agent: Agent) -> str:
    """Starts to feed it, until the agent's stream ends, and returns what it calls itself; empty: there is none."""
    try:
        identity, nowayout, state = (
            agent.get(f"{DEVICE}/{name}").decode().strip() for name in ("identity", "nowayout", "state")
        )
    except AgentError:
        return ""
    if nowayout != "0" or state != "inactive":  # else somebody feeds it
        return ""
    agent.spawn(NAME, ["sh", "-c", FEED])
    return identity
