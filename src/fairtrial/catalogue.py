"""All kinds put together, for the study language and its reference page."""

from __future__ import annotations

from fairtrial.metrics import telemetry
from fairtrial.metrics.telemetry import shutdown
from fairtrial.places import KINDS
from fairtrial.settings import SETTINGS
from fairtrial.study.catalogue import Catalogue
from fairtrial.systems import SYSTEMS
from fairtrial.workloads import WORKLOADS


def catalogue() -> Catalogue:
    """Every place, system, workload and setting that this version knows."""
    return Catalogue(
        places=dict(KINDS),
        systems={name: module.KIND for name, module in SYSTEMS.items()},
        workloads={name: module.KIND for name, module in WORKLOADS.items()},
        settings={name: module.KIND for name, module in SETTINGS.items()},
        telemetry_metrics={**telemetry.DEFINITIONS, **shutdown.DEFINITIONS},
    )
