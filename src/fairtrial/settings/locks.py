"""`locks`: how the threads of the system's server wait for its mutexes, by the lock library preloaded into it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fairtrial.locks import Announcement
from fairtrial.settings.setting import Setting
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect
from fairtrial.wire.facts import Facts

LIBRARY = "libfairtrial_locks.so"
COUNTS = "lock-counts"
DEFAULT_SPINS: Mapping[str, int] = {"fast": 8, "fast-local": 8, "fast-constant": 8, "ticket": 100}


class LockPolicy(BaseModel):
    """How threads wait; docs/guides/locks.md says what each kind does."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["passthrough", "adaptive", "fast", "fast-local", "fast-constant", "ticket"] = Field(
        "passthrough", description="How a thread waits for a lock that is taken; `passthrough` is the control."
    )
    spins: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        None, description="Tries, or looks at the queue, before sleeping. Default: 8, of `ticket` 100."
    )
    count: bool = Field(
        default=False, description="Counts into the trial's raw files, which costs; not for trials that measure."
    )
    fast_mutex: Literal["as-shipped", "published", "off", "local", "constant"] | None = Field(
        None, description="What becomes of the fast mutex that MySQL 5.1 to 5.6 has of its own."
    )

    @model_validator(mode="after")
    def _can_be_meant(self) -> LockPolicy:
        if self.spins is not None and self.kind not in DEFAULT_SPINS:
            raise ValueError(f"`spins` is for kinds that spin, and {self.kind} does as glibc does")
        if self.fast_mutex not in (None, "as-shipped") and self.kind != "passthrough":
            raise ValueError("`fast_mutex` replaces one algorithm and `kind` another: leave one of them out")
        return self


class LocksSetting(Setting[LockPolicy]):
    """Variables for the server; the run puts the library at the place, and looks whether it is in effect."""

    name = "locks"
    summary = "How the threads of the server wait for its mutexes, by a library preloaded into it."
    model = LockPolicy
    example = MappingProxyType({"kind": "ticket", "spins": 50})
    privilege = "none"

    def effect(self, _facts: Facts, trial: TrialContext) -> Effect:
        """The variables, and what the library must announce."""
        kind, spins, fast_mutex = self.value.kind, self.value.spins, self.value.fast_mutex
        server = trial.directory / "server"
        variables = {"LD_PRELOAD": str(server / LIBRARY), "FAIRTRIAL_LOCK": kind}
        if spins is not None:
            variables["FAIRTRIAL_LOCK_SPINS"] = str(spins)
        if self.value.count:
            variables["FAIRTRIAL_LOCK_COUNT"] = str(server / COUNTS)
        if fast_mutex is not None:
            variables["FAIRTRIAL_LOCK_FASTMUTEX"] = fast_mutex
        expected = Announcement(
            kind=kind,
            spins=DEFAULT_SPINS.get(kind) if spins is None else spins,
            count=self.value.count,
            fastmutex=fast_mutex,
            refused=None,
        )
        return Effect(environment=variables, preloaded=expected)
