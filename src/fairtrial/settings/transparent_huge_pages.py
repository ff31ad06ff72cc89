"""`transparent_huge_pages` (Documentation/admin-guide/mm/transhuge.rst)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from fairtrial.settings.setting import Setting, shorthand
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect, before_server
from fairtrial.settings.steps.shared import write_file
from fairtrial.wire.facts import Facts

DIRECTORY = "/sys/kernel/mm/transparent_hugepage"
Enabled = Literal["always", "madvise", "never"]
Defrag = Literal["always", "defer", "defer+madvise", "madvise", "never"]


class HugePages(BaseModel):
    """When the kernel gives huge pages by itself, and how hard it tries."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: Enabled = Field(description="Who gets them.")
    defrag: Defrag | None = Field(None, description="Whether a page fault waits until one is free; else unchanged.")


class TransparentHugePagesSetting(Setting[HugePages]):
    """One write, or two; the kernel shows all words and brackets the one in effect."""

    name = "transparent_huge_pages"
    summary = "Transparent huge pages, set before the server starts."
    model = Annotated[HugePages, BeforeValidator(shorthand("enabled"), json_schema_input_type=HugePages | Enabled)]
    example = "never"
    privilege = "CAP_DAC_OVERRIDE"

    def effect(self, _facts: Facts, _trial: TrialContext) -> Effect:
        """The writes."""
        words = {"enabled": self.value.enabled, "defrag": self.value.defrag}
        return before_server(
            write_file(f"{DIRECTORY}/{name}", word, name=f"transparent_huge_pages.{name}", normalise="brackets")
            for name, word in words.items()
            if word is not None
        )
