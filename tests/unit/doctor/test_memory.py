"""Memory: pressure, what is left, swap and huge pages, each at and around its limits."""

from __future__ import annotations

import pytest
from support.seen import sampled, seen

from fairtrial.doctor.looking import PlaceObservation
from fairtrial.doctor.memory import huge_pages, memory_available, memory_pressure, swap

GIB_KIB = 1 << 20


def meminfo(*, available: float = 15, swap_total: float = 0, swap_free: float | None = None) -> dict[str, str]:
    """Of a machine of 16 GiB; figures in GiB."""
    left = swap_total if swap_free is None else swap_free
    rows = {"MemTotal": 16.0, "MemAvailable": available, "SwapTotal": swap_total, "SwapFree": left}
    return {"/proc/meminfo": "\n".join(f"{name}:  {int(value * GIB_KIB)} kB" for name, value in rows.items())}


def pressure(average: float) -> dict[str, str]:
    return {
        "/proc/pressure/memory": f"some avg10={average:.2f} avg60=9.00 avg300=0.00 total=1\n"
        "full avg10=99.00 avg60=0.00 avg300=0.00 total=0"
    }


@pytest.mark.parametrize(
    ("average", "grade"), [(0.0, "fine"), (0.99, "fine"), (1.0, "caution"), (9.9, "caution"), (10.0, "unfit")]
)
def test_pressure_is_the_share_of_ten_seconds_in_which_some_task_waited(average: float, grade: str) -> None:
    found = memory_pressure(seen(pressure(average)))
    assert (found.grade, found.biases) == (grade, True)
    assert found.value == f"{average:g} % of the last 10 s"


def test_a_kernel_without_pressure_says_how_to_get_it() -> None:
    found = memory_pressure(seen())
    assert found.grade == "unknown"
    assert "psi=1" in found.fix


@pytest.mark.parametrize(("gib", "grade", "doubt"), [(15, "fine", False), (3, "caution", False), (0.5, "unfit", True)])
def test_memory_that_is_taken_leaves_the_study_too_little(gib: float, grade: str, *, doubt: bool) -> None:
    found = memory_available(seen(meminfo(available=gib)))
    assert (found.grade, found.biases) == (grade, doubt)
    assert found.value == f"{gib:g} GiB of 16 GiB"


def swapping(pages_in: int, pages_out: int, files: dict[str, str]) -> PlaceObservation:
    before, after = "pswpin 1000\npswpout 500", f"pswpin {1000 + pages_in}\npswpout {500 + pages_out}"
    return sampled({"/proc/vmstat": before}, {"/proc/vmstat": after}, files)


def test_no_swap_and_swap_that_nobody_uses_are_fine() -> None:
    assert swap(swapping(0, 0, meminfo())).value == "none"
    unused = swap(swapping(0, 0, meminfo(swap_total=8)))
    assert (unused.grade, unused.value) == ("fine", "0 GiB of 8 GiB used")


def test_what_was_put_away_long_ago_is_fine_and_more_is_a_caution() -> None:
    assert swap(swapping(0, 0, meminfo(swap_total=8, swap_free=7.9))).grade == "fine"
    much = swap(swapping(0, 0, meminfo(swap_total=8, swap_free=6)))
    assert (much.grade, much.value, much.biases) == ("caution", "2 GiB of 8 GiB used", False)
    assert "swapoff" in much.fix


def test_pages_that_move_now_make_a_place_unfit() -> None:
    found = swap(swapping(7, 2, meminfo(swap_total=8, swap_free=6)))
    assert (found.grade, found.biases) == ("unfit", True)
    assert found.value == "2 GiB of 8 GiB used, 7 pages in and 2 out within a second"


@pytest.mark.parametrize(
    ("enabled", "grade", "value"),
    [
        ("always [madvise] never", "fine", "madvise"),
        ("always madvise [never]", "fine", "never"),
        ("[always] madvise never", "caution", "always"),
    ],
)
def test_huge_pages_that_come_unasked_are_a_caution(enabled: str, grade: str, value: str) -> None:
    found = huge_pages(seen({"/sys/kernel/mm/transparent_hugepage/enabled": enabled}))
    assert (found.grade, found.value) == (grade, value)


def test_what_cannot_be_read_is_unknown_but_a_kernel_without_huge_pages_has_none() -> None:
    assert memory_available(seen()).grade == swap(seen()).grade == "unknown"
    assert huge_pages(seen()).grade == "fine"
