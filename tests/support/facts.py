"""Facts of places that no agent told."""

from __future__ import annotations

from typing import Any

from fairtrial.wire.facts import Facts, GuestFacts

EMULATED = GuestFacts(accelerator="tcg", emulated=True)
ORDINARY: dict[str, Any] = {
    "host": "here",
    "kernel": "6.1.0-40-amd64",
    "kernel_version": "#1 SMP",
    "kernel_command_line": "quiet",
    "machine": "x86_64",
    "distribution": "Debian GNU/Linux 12 (bookworm)",
    "processors": [0, 1, 2, 3],
    "processor_model": "a model",
    "memory_bytes": 64 << 30,
    "swap_bytes": 0,
    "virtualisation": "none",
    "clock_source": "tsc",
    "file_system": "xfs",
    "free_bytes": 1 << 40,
    "user_id": 1000,
    "ticks_per_s": 100,
    "page_bytes": 4096,
    "nodes": {"0": [0, 1], "1": [2, 3]},
    "controllers": {},
}


def facts_of(**given: Any) -> Facts:
    """Those of an ordinary machine and user, but for what is given."""
    return Facts.model_validate({**ORDINARY, **given})
