"""All kinds put together, for the study language and its reference page."""

from __future__ import annotations

from typing import Final

from fairtrial import places, settings, systems, workloads
from fairtrial.metrics import telemetry
from fairtrial.metrics.telemetry import shutdown
from fairtrial.study.catalogue import Catalogue

# How sources of metrics begin that need a server: its process, its counters, its end, and threads that wait for it.
_OF_SERVERS: Final = (
    "telemetry-process-server.parquet",
    "telemetry-server.parquet",
    "telemetry-governor.parquet",
    shutdown.FILE,
    "loops:",
)


def catalogue() -> Catalogue:
    """Every place, system, workload and setting that this version knows."""
    return Catalogue(
        places={name: places.kind_of(place) for name, place in places.PLACES.items()},
        systems={name: systems.kind_of(system) for name, system in systems.SYSTEMS.items()},
        workloads={name: workloads.kind_of(workload) for name, workload in workloads.WORKLOADS.items()},
        settings={name: settings.kind_of(setting) for name, setting in settings.SETTINGS.items()},
        telemetry_metrics={**telemetry.DEFINITIONS, **shutdown.DEFINITIONS},
        window_metrics=telemetry.DEFINITIONS.keys(),
        is_of_servers=lambda definition: definition.source.startswith(_OF_SERVERS),
        check_settings=settings.check,
    )
