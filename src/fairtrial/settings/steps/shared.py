"""Building the steps that settings share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fairtrial.protocol.generated import Check, OutputRead, Step

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


def write_group(path: str, value: str, *, name: str, expect: str) -> Step:
    """Writes a file of a control group and reads it back; it goes with its group."""
    return Step.model_validate(
        {
            "name": name,
            "action": {"kind": "write", "path": path, "value": value},
            "check": {"read": {"kind": "file", "path": path}, "expect": expect, "normalise": "words"},
            "inverse": {"kind": "none"},
        }
    )


def program(argv: Sequence[str], *, name: str, undo: Sequence[str] | None = None, check: Check | None = None) -> Step:
    """Runs a program, and one that undoes it; undoing must not fail where there is nothing to undo.

    Args:
        argv: the program and its arguments.
        name: what messages call it.
        undo: the same of what undoes it; None: nothing does.
        check: what is read back, from `printed`.
    """
    inverse = {"kind": "none"} if undo is None else {"kind": "execute", "argv": list(undo)}
    action = {"kind": "execute", "argv": list(argv)}
    return Step.model_validate({"name": name, "action": action, "check": check, "inverse": inverse})


def printed(argv: Sequence[str], expect: str) -> Check:
    """A check: what a program prints, compared word by word. It is asked before the step as well, and must not fail."""
    return Check(read=OutputRead(argv=list(argv)), expect=expect, normalise="words")


def shell(text: str, *words: str) -> list[str]:
    """A POSIX shell's script, which ends at its first failure; it finds the words as `$1`, `$2`, ..."""
    return ["sh", "-euc", text, "fairtrial", *words]
