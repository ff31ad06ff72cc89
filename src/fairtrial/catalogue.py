"""All kinds put together, for the study language and its reference page."""

from __future__ import annotations

from fairtrial import places, settings, systems, workloads
from fairtrial.metrics import drive, telemetry
from fairtrial.metrics.telemetry import shutdown
from fairtrial.study.catalogue import Catalogue


def catalogue() -> Catalogue:
    """Every place, system, workload and setting that this version knows."""
    return Catalogue(
        places={name: places.kind_of(place) for name, place in places.PLACES.items()},
        systems={name: systems.kind_of(system) for name, system in systems.SYSTEMS.items()},
        workloads={name: workloads.kind_of(workload) for name, workload in workloads.WORKLOADS.items()},
        settings={name: settings.kind_of(setting) for name, setting in settings.SETTINGS.items()},
        telemetry_metrics={**telemetry.DEFINITIONS, **shutdown.DEFINITIONS},
        window_metrics=telemetry.DEFINITIONS.keys(),
        server_metrics={
            *(name for name in telemetry.DEFINITIONS if name.startswith("server_")),
            *shutdown.DEFINITIONS,
            *drive.OF_CLIENTS,
        },
        check_settings=settings.check,
    )
