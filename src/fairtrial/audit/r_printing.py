"""Numbers as R prints them, so that a publication's R output can be compared digit by digit.

Source: R 4 `format.default`, `format.pval` and `print.htest`; R Internals on `formatReal`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

DIGITS: Final = 7  # R's option `digits`
T_DIGITS: Final = DIGITS - 2  # print.htest, for statistic and parameter
P_DIGITS: Final = DIGITS - 3  # print.htest, for the p value
_EXPONENT_WIDTH: Final = 4  # e-05


def numbers(values: Sequence[float], *, digits: int = DIGITS) -> list[str]:
    """Formats a vector together: enough decimals that the value that needs most shows `digits` significant digits.

    Trailing zeros that no value needs are left out; scientific notation is taken where it is shorter.
    """
    parts = [_significant(value, digits) for value in values]
    decimals = max(max(0, count - exponent - 1) for _, exponent, count in parts)
    negative = any(value < 0 for value in values)
    whole = max(max(exponent, 0) + 1 for _, exponent, _ in parts)
    fixed_width = negative + whole + (decimals + 1 if decimals else 0)
    most = max(count for _, _, count in parts)
    scientific_width = negative + (most + 1 if most > 1 else 1) + _EXPONENT_WIDTH
    if fixed_width <= scientific_width:
        return [f"{value:.{decimals}f}" for value in values]
    return [f"{value:.{most - 1}e}" for value in values]


def number(value: float, *, digits: int = DIGITS) -> str:
    """Formats one value."""
    return numbers([value], digits=digits)[0]


def p_value(p: float) -> str:
    """A p value as print.htest shows it after the equals sign; `< 2.2e-16` below the rounding unit."""
    if p < np.finfo(np.float64).eps:
        return "< 2.2e-16"
    return number(p, digits=P_DIGITS)


def _significant(value: float, digits: int) -> tuple[str, int, int]:
    """Digits without trailing zeros, decimal exponent, and how many digits those are."""
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    kept = mantissa.lstrip("-").replace(".", "").rstrip("0") or "0"
    return kept, int(exponent), len(kept)
