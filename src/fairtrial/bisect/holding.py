"""When a search has its answer: one change or two steps hold what they must. Pure.

That nothing changed is for the ends to say: a posterior that holds it knows no margin. Arrays may have leading axes: so
many independent searches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fairtrial.bisect.posterior import Floats, Integers, Posterior

HOLDS: Final = 0.95  # what ends the search: of one change, or of there being two steps and of where each is
TWO_STEPS_GONE: Final = 0.1  # at most, where one change is the answer
SEARCHING, ONE_CHANGE, TWO_STEPS = range(3)


@dataclass(frozen=True)
class Held:
    """What holds, if anything.

    Attributes:
        outcome: of each search.
        interval, probability: of one change, or of the first of two.
        second, second_probability: of the second of two.
    """

    outcome: Integers
    interval: Integers
    probability: Floats
    second: Integers
    second_probability: Floats


def held(now: Posterior) -> Held:
    """What a posterior holds."""
    two = now.two_steps
    culprits = now.culprits
    pairs = now.two * now.material
    given = np.maximum(two, np.finfo(float).tiny)[..., None]
    first = now.at_intervals(pairs.sum(axis=-1)) / given
    last = now.at_intervals(pairs.sum(axis=-2)) / given
    rules = two >= HOLDS
    both = np.minimum(first.max(axis=-1), last.max(axis=-1))
    alone = (two <= TWO_STEPS_GONE) & (culprits.max(axis=-1) >= HOLDS)
    outcome = np.select([rules & (both >= HOLDS), alone], [TWO_STEPS, ONE_CHANGE], SEARCHING)
    chosen = np.where(rules[..., None], first, culprits)
    return Held(outcome, *_best(chosen), *_best(last))


def _best(shares: Floats) -> tuple[Integers, Floats]:
    return np.asarray(np.argmax(shares, axis=-1)), np.minimum(shares.max(axis=-1), 1.0)
