"""Which share of a file's blocks fio's skewed distributions can reach.

fio spreads ranks over a file by multiplying with an odd constant (hash.h, `__hash_u64`) and taking the remainder by the
number of blocks. That is a permutation for powers of two only: elsewhere several ranks share a block, and other blocks
are never met. An offset is added after that, which changes no count.
"""

from __future__ import annotations

from typing import Final

import numpy as np

GOLDEN_RATIO: Final = 0x61C8864680B583EB
MOST_BLOCKS: Final = 1 << 28  # a byte of memory each; 1 TiB in blocks of 4 KiB, a few seconds
CHUNK: Final = 1 << 22


def share(blocks: int) -> float | None:
    """Reachable blocks over all blocks; None where they are too many to be counted."""
    if blocks & (blocks - 1) == 0:
        return 1.0
    if blocks > MOST_BLOCKS:
        return None
    met = np.zeros(blocks, dtype=np.bool_)
    for first in range(0, blocks, CHUNK):
        ranks = np.arange(first, min(first + CHUNK, blocks), dtype=np.uint64)
        met[(ranks * np.uint64(GOLDEN_RATIO)) % np.uint64(blocks)] = True  # arrays wrap at 2^64, as in C
    return float(np.count_nonzero(met)) / blocks
