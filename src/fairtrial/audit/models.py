"""The files that describe a publication: `publication.yaml`, `rerun.yaml`, lines of `r_output.csv`.

What it claims is in `claims.models`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from fairtrial.study.catalogue import Better

Levels = dict[str, str]  # level by factor
Order = Literal["sequential", "rows", "unknown"]


def _level_pairs(text: str) -> str:
    if not all("=" in pair for pair in text.split(";")):
        raise ValueError(f"expected `factor=level;factor=level`, found {text!r}")
    return text


class DescriptionModel(BaseModel):
    """Frozen, and refuses keys it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FactorDescription(DescriptionModel):
    """A factor: its name in prose, and its levels in order, baseline first, with what they mean."""

    label: str
    levels: dict[str, str]


class MetricDescription(DescriptionModel):
    """A metric, and with how many decimals the publication prints it."""

    label: str
    unit: str
    better: Better
    mean_decimals: int
    interval_decimals: int


class TableDescription(DescriptionModel):
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


class PublicationDescription(DescriptionModel):
    """publication.yaml.

    Attributes:
        script_labels: by contrast, how the publication's script names its output lines; `{factor}` is the level's
            number from 1.
        order: how trials were ordered, as far as the publication says; `rows` if the rows of the data are.
        block: column that says which trials belong together; empty if there is none.
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
    block: str = ""
    notes: list[str] = []


class ROutput(DescriptionModel):
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
    at: Annotated[str, AfterValidator(_level_pairs)]
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


class RerunFactor(DescriptionModel):
    """What the study calls a factor of the publication, and its levels by the publication's."""

    name: str
    levels: dict[str, str]


class Rerun(DescriptionModel):
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
