"""What a container is held to, read back from its control groups: a runtime may ignore a limit and only say so."""

from __future__ import annotations

from typing import Final

from fairtrial.errors import AgentError, PlaceError
from fairtrial.places.container.parameters import ContainerParameters
from fairtrial.wire import Agent

# Control groups of version 2, then of version 1, as the container sees its own.
MEMORY: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
SWAPS: Final = "/proc/swaps"  # its machine's
# Beyond memory; version 1 counts both together.
SWAP: Final = (("/sys/fs/cgroup/memory.swap.max", False), ("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", True))
CPU: Final = (
    ("/sys/fs/cgroup/cpu.max",),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)
PAGE: Final = 4096  # the kernel rounds a memory limit down to pages
ROOTLESS: Final = "rootless containers can be limited by control groups of version 2 only: run as root, or leave it out"
SMALLEST_SHARE: Final = 0.001  # of a processor: a quota has whole microseconds


def require(agent: Agent, parameters: ContainerParameters) -> None:
    """Compares the limits in effect with those of the study.

    Raises:
        PlaceError: one is not in effect, or cannot be read in the container.
    """
    if parameters.memory is not None:
        figure = next((text for path in MEMORY if (text := _text(agent, path))), "")
        if not figure.isdigit() or abs(int(figure) - parameters.memory) >= PAGE:
            _refuse("memory", asked=f"{parameters.memory} bytes", figure=figure)
        if len(_text(agent, SWAPS).splitlines()) > 1:  # below the heads of the columns
            _require_no_swap(agent, parameters.memory)
    if parameters.cpus is not None:
        texts = (" ".join(_text(agent, path) for path in paths).split() for paths in CPU)
        words = next((words for words in texts if len(words) == len(CPU)), [])
        share = int(words[0]) / int(words[1]) if words and all(word.isdigit() for word in words) else 0.0
        if abs(share - parameters.cpus) > SMALLEST_SHARE:
            _refuse("cpus", asked=f"{parameters.cpus:g}", figure=" of ".join(words))


def _require_no_swap(agent: Agent, memory: int) -> None:
    figure, is_sum = next(((text, is_sum) for path, is_sum in SWAP if (text := _text(agent, path))), ("", False))
    if not figure.isdigit() or abs(int(figure) - memory * is_sum) >= PAGE:
        asked = f"{memory} bytes, swap included" if is_sum else "no swap beyond it"
        _refuse("memory", asked=asked, figure=figure, hint="boot with `swapaccount=1`, or turn swap off")


def _text(agent: Agent, path: str) -> str:
    """A file's content; empty if there is none."""
    try:
        return agent.get(path).decode().strip()
    except AgentError:
        return ""


def _refuse(name: str, *, asked: str, figure: str, hint: str = ROOTLESS) -> None:
    raise PlaceError(
        f"its limit of {name} is not in effect: expected {asked}, the control group says {figure or 'nothing'}",
        hint=hint,
        field=f"place.container.{name}",
    )
