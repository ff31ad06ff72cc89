"""`purge_governor`: InnoDB's purge, adapted to the checkpoint age from outside of the server (MDEV-26356).

It runs beside the server (`run.trial.governing`), from before the ramp-up until the drive has ended.
"""

from __future__ import annotations

from types import MappingProxyType

from fairtrial.settings.setting import Setting
from fairtrial.settings.steps.context import TrialContext
from fairtrial.settings.steps.effect import Effect
from fairtrial.settings.steps.purge import PurgeGovernor
from fairtrial.wire.facts import Facts


class PurgeGovernorSetting(Setting[PurgeGovernor]):
    """A governor beside the server."""

    name = "purge_governor"
    summary = (
        "Adapts InnoDB's purge to the checkpoint age while the load runs, and restores what it found; of MariaDB and "
        "MySQL. See [Purge governor](../guides/settings.md#purge-governor)."
    )
    model = PurgeGovernor
    example = MappingProxyType({"period": "50ms", "threads": {"max": 4}})
    privilege = "none"
    systems = frozenset({"mariadb", "mysql"})

    def effect(self, _facts: Facts, _trial: TrialContext) -> Effect:
        """The governor's parameters."""
        return Effect(governor=self.value)
