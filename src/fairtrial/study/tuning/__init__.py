"""`tune:`, what a study searches instead of comparing levels: options with ranges, a budget, a confirmation.

Owns the section's model; `levels` makes a study's levels of it.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fairtrial.study.assignments import path_of
from fairtrial.study.tree.reading import LONGEST_SHOWN
from fairtrial.study.workload_place import PLACE
from fairtrial.words import cut

SECTION: Final = "tune"
ARM: Final = "options"
DEFAULT: Final = "default"
PROPOSAL: Final = "proposal"
TUNED: Final = ("system", "workload", "settings")
FEWEST_TRIALS: Final = 12  # a few proposals, and the best of them measured again
MOST_TRIALS: Final = 10_000
FEWEST_CONFIRMING: Final = 6  # fewer blocks claim nothing at 95 % confidence
LARGEST: Final = 1e100  # its digits can be counted
SIGNIFICANT_DIGITS: Final = 4  # of a proposed number: more only make it harder to copy

Value = bool | int | float | str
_QUANTITY: Final = re.compile(r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*([A-Za-zµ%/]*)")


def _path(text: str) -> str:
    path = path_of(text)
    if path is None or path[0] not in TUNED or len(path) < (2 if path[0] == "settings" else 3) or path[1] == PLACE:
        raise ValueError(
            "expected the path of one value below `system`, `workload` or `settings`, such as "
            "`system.mariadb.options.innodb_io_capacity`"
        )
    return text


class TunedOption(BaseModel):
    """One option of the system, the workload or the settings, and the values that may be proposed for it."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    of: Annotated[str, AfterValidator(_path)] | None = Field(
        None,
        description="Path of the value, as with `--set`. Without it, the value replaces `{NAME}` wherever the base "
        "trial's texts name the option so.",
    )
    low: int | float | str | None = Field(
        None,
        alias="from",
        description="Smallest value: a number, with a unit if the option takes one (`32M`, `10ms`). Whole ends give "
        "whole numbers.",
    )
    high: int | float | str | None = Field(None, alias="to", description="Largest value, in the same unit.")
    scale: Literal["linear", "log"] = Field(
        "linear", description="Whether equal differences or equal ratios count the same."
    )
    choices: list[Value] | None = Field(None, min_length=2, description="Values to choose from, in place of a range.")
    default: Value | None = Field(None, description="Value in the default trial, of an option without `of`.")

    @model_validator(mode="after")
    def _range_or_choices(self) -> Self:
        if (self.choices is None) == (self.low is None and self.high is None):
            raise ValueError("expected either `from` and `to`, or `choices`")
        if (self.of is None) == (self.default is None):
            raise ValueError(
                "expected `default`, as there is no `of`"
                if self.of is None
                else "`default` is for options without `of`; write the default into the base trial"
            )
        if self.choices is not None:
            if self.scale != "linear":
                raise ValueError("`scale` has no effect with `choices`; leave it out")
            if len({repr(each) for each in self.choices}) != len(self.choices):
                raise ValueError("expected different `choices`")
        else:
            self._check_range()
        return self

    def _check_range(self) -> None:
        if self.low is None or self.high is None:
            raise ValueError("expected both `from` and `to`")
        (low, unit), (high, other) = _quantity(self.low), _quantity(self.high)
        if unit != other:
            raise ValueError(f"expected `from` and `to` in one unit, found {self.low!r} and {self.high!r}")
        if not low < high:
            raise ValueError(f"expected `from` below `to`, found {self.low!r} and {self.high!r}")
        if self.scale == "log" and low <= 0:
            raise ValueError(f"`scale: log` needs a range above 0, found `from: {self.low}`")

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the range, in its unit."""
        assert self.low is not None  # noqa: S101 - checked with the model
        assert self.high is not None  # noqa: S101 - the same
        return _quantity(self.low)[0], _quantity(self.high)[0]

    @property
    def unit(self) -> str:
        """Unit of the range, as written."""
        return "" if self.low is None else _quantity(self.low)[1]

    @property
    def whole(self) -> bool:
        """Whether values are whole numbers."""
        return all(isinstance(end, int) for end in self.ends)

    def value(self, number: float) -> Value:
        """A number of the range as the study says it, rounded as it is proposed."""
        low, high = self.ends
        digits = SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(abs(number))) if number else 0
        rounded: float = round(number) if self.whole else round(number, digits)
        rounded = min(max(rounded, low), high)
        return f"{Decimal(repr(rounded)):f}{self.unit}" if self.unit else rounded  # units take no exponent

    def number(self, value: Value) -> float | None:
        """The number of a value within the range; None if it is none of the range's values."""
        try:
            number, unit = _quantity(value)
        except ValueError:
            return None
        low, high = self.ends
        is_value = low <= number <= high and not (self.whole and number % 1)
        return number if unit == self.unit and is_value else None


def _quantity(value: Value) -> tuple[float, str]:
    """A number and its unit; whole numbers stay whole."""
    match = _QUANTITY.fullmatch(str(value).strip())
    if match is None or isinstance(value, bool):
        raise ValueError(f"expected a number, with or without a unit, found {value!r}")
    number = int(match[1]) if match[1].lstrip("-").isdigit() else float(match[1])
    if abs(number) > LARGEST:
        raise ValueError(f"expected a number up to {LARGEST:g}, found {cut(str(value), LONGEST_SHOWN)}")
    return number, match[2]


class Again(BaseModel):
    """How the best proposals of the search are measured once more."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    best: int | None = Field(None, ge=1, le=20, description="Number of proposals (default: by the budget).")
    blocks: int | None = Field(None, ge=2, le=100, description="Fresh blocks of each (default: by the budget).")


class Confirm(BaseModel):
    """How the best proposal is compared with the default."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    blocks: int | None = Field(
        None,
        ge=FEWEST_CONFIRMING,
        le=MOST_TRIALS,
        description="Blocks (default: as many as the gain and the noise seen need, from 6, or the fewest that can "
        "claim at the study's confidence, to `most`).",
    )
    most: int = Field(30, ge=FEWEST_CONFIRMING, le=MOST_TRIALS, description="Largest number of blocks planned.")


class Tuning(BaseModel):
    """A search for better values of options, and its confirmation (`fairtrial tune`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    options: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$", max_length=80)], TunedOption] = Field(
        min_length=1, max_length=100, description="Options, by name."
    )
    budget: int = Field(
        60,
        ge=FEWEST_TRIALS,
        le=MOST_TRIALS,
        description="Trials of the search, those of the default and of measuring again included. The confirmation "
        "comes on top.",
    )
    again: Again = Field(Again(), description="How the best proposals are measured once more.")
    confirm: Confirm = Field(Confirm(), description="How the best is compared with the default.")

    @model_validator(mode="after")
    def _one_option_per_path(self) -> Self:
        paths: dict[str, str] = {}
        for name, option in self.options.items():
            if option.of is not None and (other := paths.setdefault(option.of, name)) != name:
                raise ValueError(f"options `{other}` and `{name}` have the same path")
        return self
