"""`builds`: how the program of each arm is linked from its objects, in several random orders.

Owns what a study says. What links, and which block runs which order, is the plan's and the run's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from fairtrial.study.tree.problems import wrong_below
from fairtrial.study.tree.quantities import PLACEHOLDER, CommandLine

MOST_ORDERS: Final = 1000
ONE_OF: Final = ("objects", "sections")  # a link line needs one of them for the order to have any effect
KNOWN: Final = ("output", *ONE_OF)

Absolute = Annotated[str, StringConstraints(pattern=r"^/[^\n]*[^/\n]$")]
Patterns = Annotated[
    list[Absolute], BeforeValidator(lambda value: [value] if isinstance(value, str) else value), Field(min_length=1)
]


class Builds(BaseModel):
    """Programs that are linked at the place, so that a claim is not about one layout of each."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    program: Absolute = Field(
        description="Path at the place where each trial finds its arm's program, linked in the order of its block; the "
        "system or the workload runs it from there."
    )
    objects: dict[str, Patterns] = Field(
        description="Object files of each arm at the place: level of the arm → absolute path with `*`, one or a list."
    )
    link: CommandLine = Field(
        description="Command line that links a program: `{output}` is its path, `{objects}` the object files in random "
        "order, `{sections}` a file with the names of their `.text.*` sections in random order, for linkers that take "
        "one."
    )
    link_orders: int = Field(
        5, ge=1, le=MOST_ORDERS, description="Number of random orders. Each block runs one, all of them equally often."
    )

    @model_validator(mode="after")
    def _has_placeholders(self) -> Self:
        named = PLACEHOLDER.findall(self.link)
        if unknown := sorted(set(named) - set(KNOWN)):
            message = f"expected {{output}}, {{objects}} and {{sections}}, found {{{unknown[0]}}}"
            raise wrong_below("link", message=message)
        if "output" not in named or not set(named) & set(ONE_OF):
            message = "expected {output}, and {objects} or {sections}, as in `cc -o {output} {objects}`"
            raise wrong_below("link", message=message)
        return self

    def against_itself(self, arms: Sequence[str]) -> Builds:
        """The same objects for all of some arms, the first of which has them here."""
        return self.model_copy(update={"objects": dict.fromkeys(arms, self.objects[arms[0]])})
