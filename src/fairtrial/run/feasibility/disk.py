"""Whether a place has the disk space that a run needs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from fairtrial.doctor.storage import more_room
from fairtrial.errors import PlaceError
from fairtrial.run import prepared
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.study.tree.quantities import format_bytes
from fairtrial.wire.open_place import OpenPlace

DU_S = 600.0  # a directory of many small files on a slow disk
_ROUND = 1 << 20  # figures of an estimate are told in MiB


def require(place: OpenPlace, need_bytes: int, *, trials: Iterable[ResolvedTrial]) -> None:
    """Refuses a place that is too small, before anything is started there.

    Data that were prepared there before for these very trials count as room: the run uses them instead of making them.
    Those of other studies do not.

    Raises:
        PlaceError: less is free than needed, with both figures.
    """
    free = place.facts.free_bytes
    if free >= need_bytes:
        return
    held = sum(_held_bytes(place, directory) for directory in prepared.directories(place, trials))
    if free + held < need_bytes:
        kept = f", {_rounded(held)} of prepared data for it beside that" if held >= _ROUND else ""
        raise PlaceError(
            f"this run needs about {_rounded(need_bytes)} at the place, and the disk of {place.state_directory} has "
            f"{_rounded(free)} free{kept}",
            hint=more_room(place.facts),
        )


def _held_bytes(place: OpenPlace, directory: PurePosixPath) -> int:
    """What prepared data take on the disk now; 0 where there are none."""
    counted = place.execute(["du", "-s", "-B1", str(directory)], timeout_s=DU_S)
    return int(counted.output.split()[0]) if counted.code == 0 else 0


def _rounded(count: int) -> str:
    return format_bytes(count // _ROUND * _ROUND) if count >= _ROUND else format_bytes(count)
