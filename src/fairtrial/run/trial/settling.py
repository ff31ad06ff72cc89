"""Bringing the page cache to rest before a trial."""

from __future__ import annotations

from typing import Final

from fairtrial.protocol.generated import Settle
from fairtrial.protocol.subcommands import SETTLE
from fairtrial.record.models import SettleResult
from fairtrial.wire.open_place import OpenPlace

REST_DIRTY_BYTES: Final = 4 << 20  # dirty plus writeback below this is rest: a second of the slowest disk's writing
LIMIT_S: Final = 60.0
GRACE_S: Final = 600.0  # sync(2) itself has no limit on a slow disk


def settled(kernel: OpenPlace) -> SettleResult:
    """Waits until a kernel has written its dirty pages, and drops the others where it may."""
    request = Settle(dirty_bytes=REST_DIRTY_BYTES, timeout_s=LIMIT_S, drop_caches=kernel.facts.user_id == 0)
    result = kernel.native(SETTLE, request, timeout_s=LIMIT_S + GRACE_S)
    return SettleResult(**result.model_dump(), at_rest=result.dirty_bytes <= REST_DIRTY_BYTES)
