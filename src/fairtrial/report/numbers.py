"""Numbers as a reader wants them: few digits, one unit per column, aligned. Rounds for print only, never the data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MEAN_DIGITS: Final = 4  # significant digits of a mean: one more than run-to-run noise of 0.1 % can carry
SMALLEST_DIGITS: Final = 2  # of the smallest mean beside one that is larger by powers of ten
MORE_DECIMALS: Final = 3  # at most, for its sake
RATIO_DECIMALS: Final = 3
RATIO_MOST_DECIMALS: Final = 6  # of an interval whose ends would be printed alike, or as the 1 that it excludes
RATIO_LARGE: Final = 100  # from here on decimals say nothing
RATIO_HUGE: Final = 1e6  # from here on only the power of ten does, and all digits would break their column
RATIO_SMALL: Final = 0.1  # below it as many decimals as give `RATIO_DIGITS` significant digits
RATIO_DIGITS: Final = 3
RATIO_TINY: Final = 1e-4  # from here on down the power of ten again
P_SMALLEST: Final = 1e-4  # smaller ones are printed as a bound: their digits depend on tails nobody checked
ABSENT: Final = "–"

_BYTES: Final = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
_STEPS: Final = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs")),
    "B": _BYTES,
    "B/transaction": tuple((divisor, f"{unit}/transaction") for divisor, unit in _BYTES),
}
SHARE: Final = "share"  # `share of time` and the like are printed as percent
PERCENT: Final = "%"
_WHOLE: Final = {SHARE: 1.0, PERCENT: 100.0}  # of whose values what is left says as much


@dataclass(frozen=True)
class Scale:
    """How one metric's values are printed everywhere: divided by `divisor`, in `unit`, with `decimals`."""

    divisor: float
    unit: str
    decimals: int

    @property
    def difference_unit(self) -> str:
        """The unit of a difference in words: between 7 % and 15 % lie 8 percentage points, where 8 % would be a ratio.

        What the share is of stays: `percentage points of time`.
        """
        return self._in_points("percentage points")

    @property
    def brief_difference_unit(self) -> str:
        """The same for a table: `pp of time`."""
        return self._in_points("pp")

    def _in_points(self, points: str) -> str:
        return points + self.unit.removeprefix(PERCENT) if self.unit.split(maxsplit=1)[:1] == [PERCENT] else self.unit

    def value(self, value: float | None) -> str:
        """A value in this scale, with thousands separators; `–` if there is none."""
        if value is None or not math.isfinite(value):
            return ABSENT
        return f"{value / self.divisor:,.{self.decimals}f}"

    def interval(self, low: float | None, high: float | None) -> str:
        """`[low, high]`: brackets, because values may be negative."""
        if low is None or high is None:
            return ABSENT
        return f"[{self.value(low)}, {self.value(high)}]"


def scale(unit: str, values: Iterable[float | None]) -> Scale:
    """The scale that prints all `values` of one metric readably.

    The largest decides the unit and its own digits; the smallest gets more where it would be printed as nothing, and of
    shares what is left of the whole.
    """
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value)]
    largest = max(sizes, default=0.0)
    divisor, printed = next(((d, u) for d, u in _STEPS.get(unit, ()) if largest >= d), (1.0, unit))
    word = next(iter(unit.split(maxsplit=1)), "")
    if word == SHARE:
        divisor, printed = 0.01, PERCENT + unit.removeprefix(SHARE)
    digits = decimals(largest / divisor)
    left = [rest for value in sizes if (rest := _WHOLE.get(word, 0.0) - value) > 0]
    smallest = min((value for value in (*sizes, *left) if value), default=largest) / divisor
    for_smallest = decimals(smallest) - MEAN_DIGITS + SMALLEST_DIGITS
    return Scale(divisor=divisor, unit=printed, decimals=max(digits, min(for_smallest, digits + MORE_DECIMALS)))


def decimals(largest: float) -> int:
    """Decimals that give `MEAN_DIGITS` significant digits to a value of this size."""
    if largest == 0 or not math.isfinite(largest):
        return 0
    return max(0, MEAN_DIGITS - 1 - math.floor(math.log10(abs(largest))))


def ratio(value: float | None, *, decimals: int = RATIO_DECIMALS) -> str:
    """A ratio: `1.080`, `124`, `9.7e10`, `0.0512`, `7.6e-5`; `decimals` where it is neither large nor small."""
    if value is None or not math.isfinite(value):
        return ABSENT
    size = abs(value)
    if size >= RATIO_HUGE or 0 < size <= RATIO_TINY:
        return _power_of_ten(value)
    if 0 < size < RATIO_SMALL:
        return f"{value:.{RATIO_DIGITS - 1 - math.floor(math.log10(size))}f}"
    return f"{value:,.0f}" if size >= RATIO_LARGE else f"{value:.{decimals}f}"


def _power_of_ten(value: float, *, more: int = 0) -> str:
    """`9.7e10`, `7.6e-5`; `more` powers of ten than `value` has, which may lead beyond the largest float."""
    digits, _, exponent = f"{value:.1e}".partition("e")
    return f"{digits}e{int(exponent) + more}"


def ratio_interval(low: float | None, high: float | None) -> str:
    """`1.049 – 1.111`; `1.00008 – 1.00010`, because fewer decimals would make the ends alike."""
    if low is None or high is None:
        return ABSENT
    decimals = _ratio_decimals(low, high)
    return f"{ratio(low, decimals=decimals)} – {ratio(high, decimals=decimals)}"


def ratio_in(estimate: float | None, low: float | None, high: float | None) -> str:
    """A ratio with as many decimals as its interval is printed with."""
    decimals = RATIO_DECIMALS if low is None or high is None else _ratio_decimals(low, high)
    return ratio(estimate, decimals=decimals)


def ratio_and_interval(estimate: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """A ratio and its interval, with equally many decimals: what is inside is printed inside."""
    return ratio_in(estimate, low, high), ratio_interval(low, high)


def _ratio_decimals(low: float, high: float) -> int:
    """As many as tell the ends apart, and from 1 if the interval excludes it."""
    apart = (low, high, 1.0) if low > 1 or high < 1 else (low, high)
    for decimals in range(RATIO_DECIMALS, RATIO_MOST_DECIMALS):
        if len({ratio(each, decimals=decimals) for each in apart}) == len({*apart}):
            return decimals
    return RATIO_MOST_DECIMALS


def p_value(p: float | None) -> str:
    """`0.0312`, `< 0.0001`; `–` if there is none."""
    if p is None or not math.isfinite(p):
        return ABSENT
    return f"< {P_SMALLEST:.4f}" if p < P_SMALLEST else f"{p:.4f}"


def p_in_words(p: float) -> str:
    """`p = 0.0312`, `p < 0.0001`."""
    return f"p {p_value(p)}" if p < P_SMALLEST else f"p = {p_value(p)}"


def percent(share: float) -> str:
    """A share as percent without needless digits: `2 %`, `0.5 %`."""
    return f"{share * 100:g} %"


def percents(share: float) -> str:
    """A share as percent with one decimal: `3.1 %`, `1.0e100 %`; `–` if it is no number."""
    if not math.isfinite(share):
        return ABSENT
    huge = abs(share) >= RATIO_HUGE / 100
    return f"{_power_of_ten(share, more=2) if huge else f'{share * 100:.1f}'} %"


def change(ratio_value: float) -> str:
    """A ratio as a signed change: `+8.0 %`, `−3.1 %`; `–` if it is no number."""
    if not math.isfinite(ratio_value):
        return ABSENT
    moved = ratio_value - 1
    return f"{'+' if moved >= 0 else '−'}{percents(abs(moved))}"


def bytes_of(count: float) -> str:
    """A size: `1.94 GiB`."""
    chosen = scale("B", [count])
    return f"{chosen.value(count)} {chosen.unit}"
