"""The two halves of a machine's processors: whole cores, and whole NUMA nodes where there are several. Reads only."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from fairtrial.errors import PlaceError

TOPOLOGY: Final = Path("/sys/devices/system/cpu")
NODES: Final = Path("/sys/devices/system/node")
FIELD: Final = "trials.order"

Halves = tuple[tuple[int, ...], tuple[int, ...]]


def halves(processors: Iterable[int], *, nodes: Mapping[str, list[int]], topology: Path = TOPOLOGY) -> Halves:
    """Two halves of as many cores each, those of a NUMA node together; an odd core is in neither.

    Args:
        processors: that may be used.
        nodes: NUMA nodes with their processors.
        topology: where the kernel says which processors are threads of one core.

    Raises:
        PlaceError: there are fewer than two cores, or the halves would not be alike.
    """
    node = {processor: int(number) for number, own in nodes.items() for processor in own}
    usable = set(processors)
    cores = {tuple(sorted(usable & _core(processor, topology))) for processor in usable}
    ordered = sorted(cores, key=lambda core: (node.get(core[0], 0), core))
    size = len(ordered) // 2
    if not size:
        raise PlaceError(
            f"a duet needs two cores of processors, found {len(ordered)} (processors {listed(sorted(usable))})",
            hint="use a larger machine, or `order: randomised_blocks`",
            field=FIELD,
        )
    first, second = (tuple(sorted(sum(part, ()))) for part in (ordered[:size], ordered[size : 2 * size]))
    if len(first) != len(second):
        raise PlaceError(
            f"the halves of this machine differ: processors {listed(first)} and {listed(second)}",
            hint="start fairtrial under `taskset -c` with processors of one kind",
            field=FIELD,
        )
    return first, second


def own() -> set[int]:
    """Processors that this process may use."""
    return os.sched_getaffinity(0)


def own_nodes(directory: Path = NODES) -> dict[str, list[int]]:
    """NUMA nodes of this machine with their processors; none where the kernel does not say."""
    return {
        path.parent.name.removeprefix("node"): sorted(_numbers(path.read_text(encoding="ascii")))
        for path in sorted(directory.glob("node[0-9]*/cpulist"))
    }


def listed(processors: Iterable[int]) -> str:
    """As `taskset -c` takes them."""
    return ",".join(map(str, processors))


def _core(processor: int, topology: Path) -> set[int]:
    """Processors that are threads of the same core; itself alone where the kernel does not say."""
    path = topology / f"cpu{processor}" / "topology" / "thread_siblings_list"
    try:
        return _numbers(path.read_text(encoding="ascii"))
    except OSError:
        return {processor}


def _numbers(text: str) -> set[int]:
    """Of a list as the kernel prints it: `0-3,8`."""
    bounds = [word.partition("-") for word in text.strip().split(",") if word]
    return {each for low, _dash, high in bounds for each in range(int(low), int(high or low) + 1)}
