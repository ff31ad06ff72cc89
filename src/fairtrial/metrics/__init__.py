"""A trial's scalars from its raw files, and the frames behind them.

Every scalar of a record is recomputable from the trial's other files; `fairtrial verify` does so. It must not know how
trials are compared. Submodules load when first used, because numpy and polars cost more than a command's help may.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fairtrial.record.models import Window

if TYPE_CHECKING:
    from fairtrial.metrics import (
        arrivals,
        consistency,
        contention,
        drive,
        fidelity,
        file_access,
        footprint,
        frames,
        goodput,
        hammerdb,
        latency,
        merged_latency,
        oltp,
        per_transaction,
        pgbench,
        search,
        sysbench,
        telemetry,
        timeline,
        tpcc,
    )

__all__ = [
    "arrivals",
    "compute",
    "consistency",
    "contention",
    "drive",
    "fidelity",
    "file_access",
    "footprint",
    "frames",
    "goodput",
    "hammerdb",
    "latency",
    "merged_latency",
    "oltp",
    "per_transaction",
    "pgbench",
    "search",
    "sysbench",
    "telemetry",
    "timeline",
    "tpcc",
]


def __getattr__(name: str) -> ModuleType:
    """Loads a submodule on first use (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def compute(directory: Path, *, window: Window | None, facts: Mapping[str, Any], workload: str) -> dict[str, float]:
    """Every scalar the raw files in `directory` give, by metric name.

    Args:
        directory: one trial's directory; files it does not hold give no metrics.
        window: the measured window; None for a trial that never measured, which has no scalars.
        facts: of the trial's place (`ticks_per_s`, `page_bytes`, `processors`, …).
        workload: the workload's kind.

    Raises:
        RecordError: a file is cut or damaged.
    """
    from fairtrial.metrics import latency, oltp, per_transaction, telemetry, tpcc  # noqa: PLC0415 - see the docstring above

    if window is None:
        return {}
    own = {}
    if workload == "tpcc":
        own = tpcc.compute(directory, window=window)
    if workload in {"oltp", "script"}:
        own = oltp.compute(directory, window=window)
    own |= latency.compute(directory, by_type=workload != "oltp")
    return per_transaction.joined(telemetry.compute(directory, window=window, facts=facts), own)
