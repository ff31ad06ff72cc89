"""Signals that end a run, or a block of one, in order."""

from __future__ import annotations

from types import FrameType


def as_interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Ends it as Ctrl-C does: what it changed is undone, what is finished stays."""
    raise KeyboardInterrupt
