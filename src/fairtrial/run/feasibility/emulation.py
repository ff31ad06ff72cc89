"""What may be measured where a processor is only imitated."""

from __future__ import annotations

from fairtrial.errors import PlaceError
from fairtrial.record.models import Plan


def require_counts(plan: Plan, *, emulated: bool) -> None:
    """A verdict under emulation rests on counts: what takes long there is not what takes long on a processor.

    Raises:
        PlaceError: a primary metric is a time or a rate.
    """
    if not emulated:
        return
    clocks = [name for name in plan.metrics.primary if plan.metrics.definitions[name].kind == "wall_clock"]
    if clocks:
        raise PlaceError(
            f"this place runs under software emulation, where {', '.join(clocks)} cannot be primary",
            hint="make counts primary, such as server_major_faults_per_transaction, or use a machine with KVM",
        )
