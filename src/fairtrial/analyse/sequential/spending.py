"""How much of a test's error may be used up by a share of its blocks: Lan and DeMets' spending functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, Literal

import numpy as np
from scipy import special

from fairtrial.analyse.inference.t_tests import Values

Spending = Literal["pocock", "obrien_fleming"]


def pocock(levels: Values, share: float, sides: int) -> Values:
    """Spends early: boundaries are about equally high in probability at every look. Source: Lan and DeMets (1983)."""
    del sides  # the same for one and for two
    spent: Values = levels * math.log1p((math.e - 1) * share)
    return spent


def obrien_fleming(levels: Values, share: float, sides: int) -> Values:
    """Spends late: early boundaries are very high, the last is nearly that of a fixed design. Source: as above."""
    critical = -special.ndtri(levels / sides / 2)
    spent: Values = np.asarray(sides * 2 * special.ndtr(-critical / math.sqrt(share)))
    return np.minimum(spent, levels)


FUNCTIONS: Final[Mapping[Spending, Callable[[Values, float, int], Values]]] = {
    "pocock": pocock,
    "obrien_fleming": obrien_fleming,
}
