"""Running a plan: places opened, trials carried out, everything undone, the record written."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtrial.run.conducting import Conductor, Decision, StoppingRule
    from fairtrial.run.loop import Run
    from fairtrial.run.opening import opened
    from fairtrial.run.progress import Progress

__all__ = ["Conductor", "Decision", "Progress", "Run", "StoppingRule", "opened"]
_HOMES = {
    "Conductor": "conducting",
    "Decision": "conducting",
    "Progress": "progress",
    "StoppingRule": "conducting",
    "opened": "opening",
}


def __getattr__(name: str) -> Any:
    """Loads the loop of trials on first use (PEP 562): a governor beside a server runs none, and need not wait."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES.get(name, 'loop')}"), name)
