"""The files that describe a publication: `publication.yaml`, `claims.yaml`, `rerun.yaml`, lines of `r_output.csv`.

Printed figures are text, so that no digit is lost.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from fairtrial.analyse.publications.printed import Printed, RequiredFigure
from fairtrial.study.catalogue import Better

Bounds = tuple[RequiredFigure, RequiredFigure]  # low, high
Levels = dict[str, str]  # level by factor
Order = Literal["sequential", "rows", "unknown"]


class Described(BaseModel):
    """Frozen, and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FactorDescription(Described):
    """A factor: its name in prose, and its levels in order, baseline first, with what they mean."""

    label: str
    levels: dict[str, str]


class MetricDescription(Described):
    """A metric, and with how many decimals the publication prints it."""

    label: str
    unit: str
    better: Better
    mean_decimals: int
    interval_decimals: int


class TableDescription(Described):
    """One table: the contrast inside each of its fields, factors of its rows and columns.

    Attributes:
        columns: None if there is one condition only.
        pairs: whether the publication sets trials of equal number side by side and prints a percentage for each.
    """

    name: str
    metric: str
    contrast: str
    rows: str
    columns: str | None = None
    pairs: bool = False


class PublicationDescription(Described):
    """publication.yaml.

    Attributes:
        script_labels: by contrast, how the publication's script names its output lines; `{factor}` is the level's
            number from 1.
        order: how trials were ordered, as far as the publication says; `rows` if the rows of the data are.
        notes: what else the publication says about its own figures.
    """

    title: str
    source: str
    arm: str
    factors: dict[str, FactorDescription]
    metrics: dict[str, MetricDescription]
    tables: list[TableDescription]
    script_labels: dict[str, str]
    order: Order
    notes: list[str] = []


class CellClaim(Described):
    """Figures printed for one comparison.

    Attributes:
        at: levels of the other factors.
        second: the level compared with the contrast's first; empty where there is only one other.
        means: of the contrast's first and second level.
        interval: of second minus first.
        percent: the same in percent of the first.
        pairs: percentages by trial.
        change: second mean over first, as a change in percent.
        ratio: second mean over first.
        p: two-sided, of Welch's test.
        significant: whether it is called so.
    """

    at: Levels = {}
    second: str = ""
    change: Printed = ""
    ratio: Printed = ""
    p: Printed = ""
    significant: bool | None = None
    means: Bounds | None = None
    interval: Bounds | None = None
    percent: Bounds | None = None
    pairs: list[Printed] = []


class Arithmetic(Described):
    """A figure that follows from others the publication prints.

    Attributes:
        of: what it is a figure of.
        than: `more` or `less` where the publication gives a bound.
    """

    printed: Printed
    is_: tuple[float, Literal["/", "*", "+", "-", "% over", "% of"], float]
    of: str = ""
    than: Literal["more", "less", ""] = ""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=lambda name: name.rstrip("_"))


class ValueClaim(Described):
    """One arm's figure: a table cell. `at` may leave factors out: then their trials are taken together."""

    at: Levels = {}
    statistic: Literal["mean", "median", "sd", "smallest", "largest", "count", "sum"] = "mean"
    printed: Printed


class OrderClaim(Described):
    """Levels of the contrast, best first. With one level only: that one is better than every other.

    Attributes:
        at: levels of the other factors; what is left out is claimed at each of its levels.
    """

    at: Levels = {}
    best_first: list[str]


class Unchecked(Described):
    """A claim that no data can be held against, and why."""

    what: str
    printed: str = ""
    because: str


class Claim(Described):
    """Figures printed in one place.

    Attributes:
        values, orders: of single arms.
        unchecked: claims without data.
        says: the word that gives a percentage its direction.
        rest: what the place says about every comparison it does not list.
        pair_range: smallest and largest percentage by trial.
        milder_at: factor and level at which the contrast is said to cost less than at the factor's other levels.
        configurations, values_each: how many cells there are, and values in each.
    """

    where: str
    metric: str = ""
    contrast: str = ""
    says: Literal["higher", ""] = ""
    cells: list[CellClaim] = []
    values: list[ValueClaim] = []
    orders: list[OrderClaim] = []
    unchecked: list[Unchecked] = []
    rest: Literal["not significant", ""] = ""
    pair_range: Bounds | None = None
    milder_at: Levels = {}
    configurations: Printed = ""
    values_each: Printed = ""
    arithmetic: list[Arithmetic] = []


class ROutput(Described):
    """One test as R printed it; R subtracts the second mean from the first.

    Attributes:
        at: `factor=level;factor=level`.
        percent_low, percent_high: empty where the script printed "no significance".
        label: how the output names the test.
    """

    metric: str
    contrast: str
    first: str
    second: str
    at: str
    t: str
    df: str
    p: str
    low: str
    high: str
    mean_first: str
    mean_second: str
    percent_low: str
    percent_high: str
    label: str

    @property
    def levels(self) -> Levels:
        """`at` as a mapping."""
        return dict(pair.split("=", 1) for pair in self.at.split(";"))


class AuditedMetric(Described):
    """A metric of a claims file that describes its own data."""

    unit: str = ""
    better: Better = "higher"


class ClaimsFile(Described):
    """claims.yaml: what a publication prints, and where its raw data are.

    Either `description` names a file as `publication.yaml`, or the keys below it describe the data. All files are
    beside this one.

    Attributes:
        data: CSV of the raw values, a row per trial; empty if there are none.
        description: a `PublicationDescription`.
        r_output: CSV of `ROutput`.
        factors: levels by column, baseline first.
        metrics: by column.
        order: see `PublicationDescription`.
        notes: what else the publication says about its own figures.
    """

    title: str = ""
    source: str = ""
    data: str = ""
    description: str = ""
    r_output: str = ""
    factors: dict[str, list[str]] = {}
    metrics: dict[str, AuditedMetric] = {}
    order: Order = "unknown"
    notes: list[str] = []
    claims: list[Claim]


class RerunFactor(Described):
    """What the study calls a factor of the publication, and its levels by the publication's."""

    name: str
    levels: dict[str, str]


class Rerun(Described):
    """rerun.yaml: how a study of this repository names what the publication varied and measured.

    Attributes:
        study: its name.
        factors: by the publication's name.
        metrics: by the publication's metric, those of the study that stand beside it, the same quantity first.
        notes: why the two need not agree.
    """

    study: str
    factors: dict[str, RerunFactor]
    metrics: dict[str, list[str]]
    notes: list[str] = []

    def levels(self, published: Levels) -> Levels:
        """The publication's levels in the study's words."""
        return {self.factors[factor].name: self.factors[factor].levels[level] for factor, level in published.items()}
