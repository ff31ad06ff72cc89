"""Words for people that more than one layer writes."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 block`, `3 blocks`: for nouns whose plural takes an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
