"""claims.yaml: what a publication prints, in which place, and where its raw data are.

Printed figures are text, so that no digit is lost.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, FiniteFloat, model_validator

from fairtrial.audit.models import Levels, Order
from fairtrial.audit.printed import Printed, RequiredFigure, read
from fairtrial.study.catalogue import Better
from fairtrial.study.file_model import Names
from fairtrial.study.tree.problems import did_you_mean, listed

Bounds = tuple[RequiredFigure, RequiredFigure]  # low, high
Test = Literal["welch", "student", "paired"]

STATISTICS: Final = ("mean", "median", "sd", "standard_error", "smallest", "largest", "count", "sum")
_PERCENTILE: Final = re.compile(r"p(?P<percent>\d{1,2}(\.\d+)?|100)")


def _confidence(text: str) -> str:
    """In percent. A share is refused: 0.99 for 99 % would be a level of 1 %."""
    if not 0.5 <= share(text) < 1:  # noqa: PLR2004 - of an interval that anybody prints
        expected = "expected a confidence level in percent, from 50 to below 100 in double precision, such as 99"
        raise ValueError(f"{expected}; found {text}")
    return text


def _statistic(name: str) -> str:
    if name not in STATISTICS and percentile(name) is None:
        hint = did_you_mean(name, STATISTICS)
        expected = f"expected one of {listed(STATISTICS)}, or a percentile such as `p95`"
        raise ValueError(f"unknown statistic `{name}`; {expected}" + (f"; {hint}" if hint else ""))
    return name


def _best_first(levels: list[str]) -> list[str]:
    if not levels or len(set(levels)) < len(levels):
        raise ValueError(f"expected one level or more, each once, best first; found {listed(levels)}")
    return levels


def percentile(statistic: str) -> float | None:
    """95 of `p95`; None of a statistic that is not a percentile."""
    match = _PERCENTILE.fullmatch(statistic)
    return float(match["percent"]) if match else None


Confidence = Annotated[str, AfterValidator(_confidence)]
Statistic = Annotated[str, AfterValidator(_statistic)]


def share(confidence: str) -> float:
    """0.99 of a confidence level of 99 %."""
    return float(read(confidence).value / 100)


class ClaimModel(BaseModel):
    """Frozen, and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CellClaim(ClaimModel):
    """Figures printed for one comparison.

    Attributes:
        at: levels of the other factors.
        second: the level compared with the contrast's first; empty where there is only one other.
        test: the t test that the figures of a test are of: Welch's, Student's with one spread for both, or the paired
            one over blocks.
        confidence: level of `interval`, `percent` and `significant`, in percent.
        means, medians: of the contrast's first and second level.
        difference: second minus first, of the means; of the trials of common blocks if the test is paired.
        interval: of that difference.
        percent: the same in percent of the first mean.
        pairs: percentages by trial.
        change: second mean over first, as a change in percent.
        ratio: second mean over first.
        t, df, p, standard_error: of the test; p is two-sided, and the sign of t is not compared.
        significant: whether it is called so.
    """

    at: Levels = {}
    second: str = ""
    test: Test = "welch"
    confidence: Confidence = "95"
    change: Printed = ""
    ratio: Printed = ""
    difference: Printed = ""
    standard_error: Printed = ""
    t: Printed = ""
    df: Printed = ""
    p: Printed = ""
    significant: bool | None = None
    means: Bounds | None = None
    medians: Bounds | None = None
    interval: Bounds | None = None
    percent: Bounds | None = None
    pairs: list[RequiredFigure] = []


class Arithmetic(ClaimModel):
    """A figure that follows from others the publication prints.

    Attributes:
        of: what it is a figure of.
        than: `more` or `less` where the publication gives a bound.
    """

    printed: RequiredFigure
    is_: tuple[FiniteFloat, Literal["/", "*", "+", "-", "% over", "% of"], FiniteFloat]
    of: str = ""
    than: Literal["more", "less", ""] = ""

    model_config = ConfigDict(alias_generator=lambda name: name.rstrip("_"))


class ValueClaim(ClaimModel):
    """One arm's figure: a table cell. `at` may leave factors out: then their trials are taken together."""

    at: Levels = {}
    statistic: Statistic = "mean"
    printed: RequiredFigure


class IntervalClaim(ClaimModel):
    """One arm's interval: of a percentage of its trials' values, or a confidence interval of their mean or median.

    Attributes:
        percentiles: of the values, low and high, such as 5 and 95.
        confidence: level of a confidence interval, in percent.
        of: what that interval is of.
        printed: low and high.
        plus_minus: half the width, for what is printed as `1000 ± 12`.
    """

    at: Levels = {}
    percentiles: Bounds | None = None
    confidence: Confidence | None = None
    of: Literal["mean", "median"] = "mean"
    printed: Bounds | None = None
    plus_minus: Printed = ""

    @model_validator(mode="after")
    def _one_of_each(self) -> IntervalClaim:
        if (self.percentiles is None) == (self.confidence is None):
            raise ValueError("expected `percentiles: [5, 95]` or `confidence: 95`, and only one of them")
        if (self.printed is None) != bool(self.plus_minus):
            raise ValueError("expected `printed: [LOW, HIGH]` or `plus_minus: HALF`, and only one of them")
        if self.percentiles is not None:
            low, high = (read(each).value for each in self.percentiles)
            if not 0 <= low < high <= 100:  # noqa: PLR2004 - percent
                raise ValueError(f"expected two percentiles from 0 to 100, the lower one first; found {low} and {high}")
            if self.plus_minus:
                raise ValueError("percentiles need `printed: [LOW, HIGH]`: they lie at unequal distances from the mean")
        elif self.of == "median" and self.plus_minus:
            raise ValueError("`of: median` needs `printed: [LOW, HIGH]`: its ends lie at unequal distances from it")
        return self


class OrderClaim(ClaimModel):
    """Levels of the contrast, best first. With one level only: that one is better than every other.

    Attributes:
        at: levels of the other factors; what is left out is claimed at each of its levels.
    """

    at: Levels = {}
    best_first: Annotated[list[str], AfterValidator(_best_first)]


class UncheckedClaim(ClaimModel):
    """A claim that no data can be held against, and why."""

    what: str
    printed: str = ""
    because: str


class Claim(ClaimModel):
    """Figures printed in one place.

    Attributes:
        values, intervals, orders: of single arms.
        unchecked: claims without data.
        says: the word that gives a percentage its direction.
        rest: what the place says about every comparison it does not list.
        pair_range: smallest and largest percentage by trial.
        milder_at: factor and level at which the contrast is said to cost less than at the factor's other levels, or to
            gain less where it gains.
        configurations, values_each: how many cells there are, and values in each.
    """

    where: str
    metric: str = ""
    contrast: str = ""
    says: Literal["higher", ""] = ""
    cells: list[CellClaim] = []
    values: list[ValueClaim] = []
    intervals: list[IntervalClaim] = []
    orders: list[OrderClaim] = []
    unchecked: list[UncheckedClaim] = []
    rest: Literal["not significant", ""] = ""
    pair_range: Bounds | None = None
    milder_at: Levels = {}
    configurations: Printed = ""
    values_each: Printed = ""
    arithmetic: list[Arithmetic] = []


class AuditedMetric(ClaimModel):
    """A metric of a claims file that describes its own data."""

    unit: str = ""
    better: Better = "higher"


class ClaimsFile(ClaimModel):
    """claims.yaml: what a publication prints, and where its raw data are.

    Either `description` names a file as `publication.yaml`, or the keys below it describe the data. All files are
    beside this one.

    Attributes:
        data: CSV of the raw values, a row per trial; several files are read one after the other.
        description: a `PublicationDescription`.
        r_output: CSV of `ROutput`.
        factors: levels by column, baseline first.
        metrics: by column.
        order, block: see `PublicationDescription`.
        notes: what else the publication says about its own figures.
    """

    title: str = ""
    source: str = ""
    data: Names = []
    description: str = ""
    r_output: str = ""
    factors: dict[str, list[str]] = {}
    metrics: dict[str, AuditedMetric] = {}
    order: Order = "unknown"
    block: str = ""
    notes: list[str] = []
    claims: list[Claim]
