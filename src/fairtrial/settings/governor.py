"""`governor`: how processors choose their frequency (Documentation/admin-guide/pm/cpufreq.rst)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fairtrial.settings.setting import Setting
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect, before_server
from fairtrial.settings.steps.shared import write_file
from fairtrial.wire.facts import Facts

FILE = "/sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor"
Governor = Annotated[
    str,
    Field(pattern=r"^[a-z_]+$", description="Such as `performance`; of every processor online that may be used."),
]


class GovernorSetting(Setting[str]):
    """One write per processor. Virtual machines have no such files: their host decides."""

    name = "governor"
    summary = "The frequency governor of every processor, set before the server starts."
    model = Governor
    example = "performance"
    privilege = "CAP_DAC_OVERRIDE"

    def effect(self, facts: Facts, _trial: TrialContext) -> Effect:
        """The writes."""
        return before_server(
            write_file(FILE.format(number=number), self.value, name=f"governor.{number}", normalise="trim")
            for number in facts.processors
        )
