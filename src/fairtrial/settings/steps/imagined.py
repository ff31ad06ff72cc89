"""The facts of an imagined place: a machine that can do whatever a study asks, before a real one is reached."""

from __future__ import annotations

from typing import Final

from fairtrial.wire.facts import Facts, GuestFacts

MOST_PROCESSORS: Final = 1024  # a study may name any of these
MOST_NODES: Final = 64
GROUPS: Final = {"directory": "/sys/fs/cgroup", "enabled": False, "version": 2}
# As root: what a real one cannot is said before anything starts.
IMAGINED: Final = Facts.model_validate(
    {
        **dict.fromkeys(("clock_source", "distribution", "file_system", "host", "kernel", "kernel_command_line"), ""),
        **dict.fromkeys(("kernel_version", "machine", "processor_model", "virtualisation"), ""),
        **dict.fromkeys(("free_bytes", "memory_bytes", "swap_bytes", "user_id"), 0),
        "controllers": dict.fromkeys(("cpuset", "io", "memory"), GROUPS),
        "nodes": {str(node): list(range(node, MOST_PROCESSORS, MOST_NODES)) for node in range(MOST_NODES)},
        "page_bytes": 4096,
        "processors": list(range(MOST_PROCESSORS)),
        "ticks_per_s": 100,
        "guest": GuestFacts(accelerator="", emulated=False),
    }
)
