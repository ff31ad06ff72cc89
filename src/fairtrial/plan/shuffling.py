"""Seeded order without a random number library: the same seed gives the same order on every machine and version.

Owns how seeds derive from the study's seed. Items are ordered by the SHA-256 of (purpose, seed, where, item), which is
a uniformly random order for every practical purpose and depends on nothing but the words hashed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

SEED_BITS = 63  # what every tool that takes a seed accepts as a non-negative number


def digest(*words: object) -> bytes:
    """SHA-256 over words, each with its length before it, so that no two lists of words are alike."""
    hasher = hashlib.sha256()
    for word in words:
        text = str(word).encode()
        hasher.update(len(text).to_bytes(4, "big") + text)
    return hasher.digest()


def shuffled(items: Iterable[str], *where: object) -> list[str]:
    """The items in the random order that belongs to `where`; items must differ."""
    return sorted(items, key=lambda item: digest(*where, item))


def block_seed(seed: int, cell: str, block: int, *, repeat: int = 1) -> int:
    """The load's seed for every trial of one block, 63 bits; each repetition of the block's arms has its own.

    All arms of a block share it (common random numbers, Law, Simulation Modeling and Analysis, chapter 11): they get
    the same keys in the same order as far as their speed allows, so that what the draw adds to a result is in both
    halves of a pair and leaves their ratio. Blocks and cells differ, so that a result does not hang on one draw.
    """
    again = () if repeat == 1 else (repeat,)
    return int.from_bytes(digest("load", seed, cell, block, *again)[:8], "big") >> (64 - SEED_BITS)
