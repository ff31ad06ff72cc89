"""A design that screens many options: what plan.json says of it beside its trials, each of which is one row."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

ROW: Final = "row"  # the factor whose levels are the rows of the design
TWO_LEVELS: Final = 2
DESIGNS: Final = {
    "plackett_burman": "Plackett-Burman design",
    "fractional": "fractional factorial design",
    "definitive": "definitive screening design",
}


class Aliasing(BaseModel):
    """What the main effect of an option is mixed with, of interactions of two others.

    Attributes:
        whole: interactions that cannot be told from it, each as its two options; `-` before them: with opposite sign.
        partial: how many more are in it with a share of themselves.
        share: the largest of those shares.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    whole: list[str] = []
    partial: int = 0
    share: float = 0.0


class Screening(BaseModel):
    """The matrix of a screening.

    Attributes:
        options: names of levels by option, low first; the first is the baseline.
        rows: by row, the code of each option's level: -1 is low, 0 the middle of three, 1 high.
        resolution: 3 where main effects are mixed with interactions of two options, 4 where only such interactions are
            mixed with each other, 5 where not even they are.
        folded: whether every row has its mirror image among the others.
        generators: of a fraction: options whose column is the product of others', as `a = b × c`.
        aliases: by option.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    design: Literal["plackett_burman", "fractional", "definitive"]
    options: dict[str, list[str]]
    rows: dict[str, list[int]]
    resolution: int
    folded: bool
    generators: list[str] = []
    aliases: dict[str, Aliasing] = {}

    def levels(self, row: str) -> dict[str, str]:
        """The level of every option in a row."""
        return {
            option: names[(code + 1) // 2 if len(names) == TWO_LEVELS else code + 1]
            for (option, names), code in zip(self.options.items(), self.rows[row], strict=True)
        }
