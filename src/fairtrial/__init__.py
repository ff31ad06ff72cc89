"""fairtrial: controlled performance experiments, with verdicts a sceptic can re-run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairtrial.api import RunFrames, read

__all__ = ["RunFrames", "__version__", "read"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Loads the Python API on first use (PEP 562): `fairtrial --help` must not wait for Polars."""
    if name not in ("RunFrames", "read"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fairtrial import api  # noqa: PLC0415

    return getattr(api, name)
