"""What a place was like right before a trial, which foretells part of its noise.

Owns `covariates.json` on the reading side; `run.trial.covariates` writes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fairtrial import foreign
from fairtrial.protocol.generated import Covariates

FILE: Final = "covariates.json"
LABELS: Final = {
    "calibration_loop_ns": "calibration loop",
    "time_since_boot_s": "time since boot",
    "memory_fragmentation": "fragmentation of free memory",
    "processor_frequency_hz": "processor frequency",
}


def compute(directory: Path) -> dict[str, float]:
    """The covariates of a trial that measured any, by name; those that its place does not tell are left out.

    Raises:
        RecordError: the file is damaged.
    """
    path = directory / FILE
    if not path.exists():
        return {}
    values = foreign.of_trial(path, Covariates).model_dump()
    return {name: float(value) for name, value in values.items() if value is not None}
