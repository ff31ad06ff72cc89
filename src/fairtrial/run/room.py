"""Whether a place has the disk space that a run needs."""

from __future__ import annotations

from fairtrial.doctor.storage import more_room
from fairtrial.errors import PlaceError
from fairtrial.study.quantities import format_bytes
from fairtrial.wire.open_place import OpenPlace

DU_S = 600.0  # a directory of many small files on a slow disk
_ROUND = 1 << 20  # figures of an estimate are told in MiB


def require(place: OpenPlace, need_bytes: int) -> None:
    """Refuses a place that is too small, before anything is started there.

    What was prepared there before counts as room: a run uses it instead of making it. Whose it is cannot be told yet,
    so that a place is rather believed than refused.

    Raises:
        PlaceError: less is free than needed, with both figures.
    """
    free = int(place.facts["free_bytes"])
    if free >= need_bytes:
        return
    prepared = _held_bytes(place)
    if free + prepared < need_bytes:
        kept = f", {_told(prepared)} of prepared data beside it" if prepared >= _ROUND else ""
        raise PlaceError(
            f"this run needs about {_told(need_bytes)} at the place, and the disk of {place.state_directory} has "
            f"{_told(free)} free{kept}",
            hint=more_room(place.facts),
        )


def _held_bytes(place: OpenPlace) -> int:
    """What prepared data take on the disk now; 0 where there are none."""
    counted = place.execute(["du", "-s", "-B1", str(place.state_directory / "prepared")], timeout_s=DU_S)
    return int(counted.output.split()[0]) if counted.code == 0 else 0


def _told(count: int) -> str:
    return format_bytes(count // _ROUND * _ROUND) if count >= _ROUND else format_bytes(count)
