"""The files that describe a publication: `publication.yaml`, `claims.yaml` and the lines of `r_output.csv`.

Printed figures are text, so that no digit is lost.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from fairtrial.study.catalogue import Better

Bounds = tuple[str, str]  # low, high, as printed
Levels = dict[str, str]  # level by factor


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
        order: how trials were ordered, as far as the publication says.
        notes: what else the publication says about its own figures.
    """

    title: str
    source: str
    arm: str
    factors: dict[str, FactorDescription]
    metrics: dict[str, MetricDescription]
    tables: list[TableDescription]
    script_labels: dict[str, str]
    order: Literal["sequential", "unknown"]
    notes: list[str] = []


class CellClaim(Described):
    """Figures printed for one comparison.

    Attributes:
        means: of the contrast's first and second level.
        interval: of second minus first.
        percent: the same in percent of the first.
        pairs: percentages by trial.
    """

    at: Levels
    means: Bounds | None = None
    interval: Bounds | None = None
    percent: Bounds | None = None
    pairs: list[str] = []


class Arithmetic(Described):
    """A figure that follows from others the publication prints."""

    printed: str
    is_: tuple[float, Literal["/", "*", "+", "% over"], float]

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=lambda name: name.rstrip("_"))


class Claim(Described):
    """Figures printed in one place.

    Attributes:
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
    rest: Literal["not significant", ""] = ""
    pair_range: Bounds | None = None
    milder_at: Levels = {}
    configurations: str = ""
    values_each: str = ""
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
