"""What a bisection will take, before it is begun: simulated searches over as many versions. Pure."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from fairtrial.bisect.models import Bisection
from fairtrial.bisect.simulating import Searches, Truth, simulate
from fairtrial.report.numbers import percent
from fairtrial.report.text import columns
from fairtrial.words import counted, duration

SEARCHES: Final = 200
NOISE: Final = (0.5, 1.0, 2.0)  # of a block's log ratio, in units of the step
STEP: Final = 0.05  # what matters is the noise in units of it
SHOWN: Final = 3  # versions at each end of a long list


def render(question: Bisection, *, block_s: float) -> str:
    """The versions, and blocks and time by how noisy blocks are.

    Args:
        question: what is asked.
        block_s: what a block is expected to take.
    """
    names = [version.name for version in question.versions]
    listed = names if len(names) <= 2 * SHOWN + 1 else [*names[:SHOWN], "…", *names[-SHOWN:]]
    changes = counted(len(names) - 1, "possible change")
    about = (
        f"each block pairs a version with {names[0]} and takes about {duration(block_s)}, estimated before measuring"
    )
    footnote = (
        f"({SEARCHES} simulated searches per row, without the confirmation; a change within "
        f"{percent(question.margin)} is not looked for)"
    )
    lines = [
        f"{question.study} · {question.over}: {', '.join(listed)}",
        f"{changes}; {about}",
        "",
        *_table(question, block_s),
        "",
        footnote,
    ]
    if question.build:
        lines.append(f"each version tested is built once: `{question.build}`")
    return "\n".join(lines) + "\n"


def _table(question: Bisection, block_s: float) -> list[str]:
    head = [
        "noise of a block",
        "blocks, median",
        "90th percentile",
        "versions tested",
        "time, median",
        "90th percentile",
    ]
    rows = []
    for noise in NOISE:
        found = foreseen(len(question.versions) - 1, noise=noise, blocks=question.blocks)
        median, most = (float(np.percentile(found.blocks, share)) for share in (50, 90))
        row = [f"{median:.0f}", f"{most:.0f}", f"{np.median(found.versions):.0f}"]
        rows.append([f"{noise:g} × the step", *row, duration(median * block_s), duration(most * block_s)])
    return columns.table(head, rows, left=1)


def foreseen(changes: int, *, noise: float, blocks: int, searches: int = SEARCHES, seed: int = 1) -> Searches:
    """Searches for one step anywhere among so many changes; `noise` of a block in units of the step."""
    random = np.random.default_rng(seed)
    at = random.integers(1, changes + 1, searches)
    levels = np.where(np.arange(changes + 1) >= at[:, None], -STEP, 0.0)
    truth = Truth(levels, lambda shape: random.normal(0, noise * STEP, shape))
    return simulate(truth, blocks=blocks, margin=math.expm1(STEP / 2))
