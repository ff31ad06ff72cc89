"""Building the steps that settings share."""

from __future__ import annotations

from typing import Literal

from fairtrial.wire.generated import Step

Normalise = Literal["trim", "words", "brackets", "integer", "boolean"]


def write_file(path: str, value: str, *, name: str, normalise: Normalise) -> Step:
    """Writes a kernel interface, reads it back, and restores what it held before."""
    return Step.model_validate(
        {
            "name": name,
            "action": {"kind": "write", "path": path, "value": value},
            "check": {"read": {"kind": "file", "path": path}, "expect": value, "normalise": normalise},
            "inverse": {"kind": "restore"},
        }
    )


def trigger(path: str, value: str, *, name: str) -> Step:
    """Writes a file that acts at once and holds nothing: no read-back, nothing to undo."""
    return Step.model_validate(
        {"name": name, "action": {"kind": "write", "path": path, "value": value}, "inverse": {"kind": "none"}}
    )
