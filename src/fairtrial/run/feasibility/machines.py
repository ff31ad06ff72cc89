"""Whether a place is still the machine that its run began on, booted as it was then."""

from __future__ import annotations

from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.places import boots_anew, is_booted, place_of
from fairtrial.record.models import PlaceOpened

OF_MACHINE: Final = ("machine", "processor_model", "memory_bytes", "user_id", "server_user")
OF_BOOT: Final = ("processors", "kernel_command_line")  # of a place that boots for a trial, its section decides these
OF_DISK: Final = ("file_system",)  # of a guest, its section decides it
MEMORY_TOLERANCE: Final = 0.05  # kernels keep differently much for themselves, and crash dumps take some


def require_same(opened: PlaceOpened, earlier: PlaceOpened | None) -> None:
    """Refuses a place that is another machine than it was earlier in this run, or was booted otherwise since.

    Args:
        opened: as it is now.
        earlier: as it was when it was opened last; None: it was not.

    Raises:
        PlaceError: the facts that differ, as they were and as they are.
    """
    if earlier is not None and (differ := differences(opened, earlier)):
        raise PlaceError(
            f"{place_of(opened.place).title} is not the machine that this run began on, or was booted differently: "
            + "; ".join(differ),
            hint="resume where the run began, as the same user, booted as it was then, or start a new run",
        )


def differences(opened: PlaceOpened, earlier: PlaceOpened) -> list[str]:
    """What a place is now and was not earlier, a fact each; empty: the same machine, booted and reached alike."""
    stays = not is_booted(opened.place) and not boots_anew(opened.place)  # as the machine of a container does
    names = (*OF_MACHINE, *(OF_BOOT if stays else ()), *(() if is_booted(opened.place) else OF_DISK))
    was, now = ({**each.facts, "server_user": each.server_user} for each in (earlier, opened))
    known = [name for name in names if name in was]
    return [f"{name} was {was[name]}, is {now[name]}" for name in known if not _is_same(name, was[name], now[name])]


def _is_same(name: str, was: object, now: object) -> bool:
    if name == "memory_bytes" and isinstance(was, int) and isinstance(now, int):
        return abs(now - was) <= MEMORY_TOLERANCE * was
    return was == now
