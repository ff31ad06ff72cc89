"""Covariates of a trial, measured before anything of its arm is in effect: an arm that moved them would hide there."""

from __future__ import annotations

from pathlib import PurePosixPath

from fairtrial.metrics.covariates import FILE
from fairtrial.protocol.subcommands import COVARIATES
from fairtrial.record.models import PlannedMetrics
from fairtrial.wire.open_place import OpenPlace


def measure(place: OpenPlace, directory: PurePosixPath, metrics: PlannedMetrics) -> None:
    """Measures at the system's place and leaves the figures among the trial's raw files, if the study wants any."""
    if metrics.covariates:
        measured = place.native(COVARIATES, None)
        place.agent.put(str(directory / FILE), measured.model_dump_json().encode(), mode=0o644)
