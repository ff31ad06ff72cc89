"""What the load generator says of a drive, whole, for tests that name the part they are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairtrial.protocol import generated as wire
from fairtrial.wire.fake import USAGE

WINDOW = {"start_ns": 10, "end_ns": 20}
NOTHING = {"committed": 0, "rolled_back": 0, "failed": 0, "retried": 0}


def driven_of(*, transactions: Mapping[str, Mapping[str, int]] | None = None, **changes: Any) -> wire.Driven:
    """A drive whose transactions ended as told, by type; what is not told is 0 or empty."""
    outcomes = {name: {**NOTHING, **each} for name, each in (transactions or {}).items()}
    whole = {"window": WINDOW, "errors": [], "drawn": {}, "effective": {}, "client": USAGE, "transactions": outcomes}
    return wire.Driven.model_validate({**whole, **changes})
