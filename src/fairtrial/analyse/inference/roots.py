"""Where a function is zero."""

from __future__ import annotations

from collections.abc import Callable


def root(of: Callable[[float], float], low: float, high: float, *, within: float = 2e-12) -> float:
    """The zero of a continuous function with different signs at both ends.

    Args:
        of: the function.
        low: it is above.
        high: it is below.
        within: largest error.

    Source: Brent (1973), by SciPy.
    """
    from scipy import optimize  # noqa: PLC0415 - it takes a fifth of a second, and most commands seek no zero

    return float(optimize.brentq(of, low, high, xtol=within))
