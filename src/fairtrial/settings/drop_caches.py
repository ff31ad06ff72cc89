"""`drop_caches`: empties the page cache right before ramp-up (/proc/sys/vm/drop_caches)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fairtrial.settings.setting import Setting
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect
from fairtrial.settings.steps.shared import trigger
from fairtrial.wire.facts import Facts

CacheKinds = Literal["nothing", "page_cache", "slab", "all"]
Caches = Annotated[
    CacheKinds,
    Field(description="What is dropped right before ramp-up: page cache, slab objects (dentries, inodes), or both."),
]
CODES = {"page_cache": "1", "slab": "2", "all": "3"}


class DropCachesSetting(Setting[CacheKinds]):
    """One write that cannot be read back or undone."""

    name = "drop_caches"
    summary = (
        "Caches dropped once the server is up, right before ramp-up. Where the agent is root, clean caches are dropped "
        "before the server starts anyway."
    )
    model = Caches
    example = "all"
    privilege = "user 0"

    def effect(self, _facts: Facts, _trial: TrialContext) -> Effect:
        """The write, or nothing."""
        if self.value == "nothing":
            return Effect()
        dropped = trigger("/proc/sys/vm/drop_caches", CODES[self.value], name="drop_caches")
        return Effect(steps=(("before_ramp_up", dropped),))
