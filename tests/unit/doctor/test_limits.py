"""Limits that end a trial in the middle of it."""

from __future__ import annotations

import pytest
from support.seen import seen

from fairtrial.doctor.limits import aio, open_files


def files(soft: str, hard: str) -> dict[str, str]:
    return {
        "/proc/self/limits": "Limit                     Soft Limit           Hard Limit           Units     \n"
        f"Max open files            {soft:<20} {hard:<20} files     "
    }


@pytest.mark.parametrize(
    ("soft", "hard", "grade"),
    [
        ("1024", "1048576", "fine"),
        ("1024", "unlimited", "fine"),
        ("1024", "4096", "caution"),
        ("512", "512", "unfit"),
    ],
)
def test_the_hard_limit_decides_since_servers_raise_the_soft_one(soft: str, hard: str, grade: str) -> None:
    found = open_files(seen(files(soft, hard)))
    assert (found.grade, found.value) == (grade, f"{soft}, can be raised to {hard}")


def test_asynchronous_requests_that_others_hold_are_missing() -> None:
    most, used = "/proc/sys/fs/aio-max-nr", "/proc/sys/fs/aio-nr"
    assert aio(seen({most: "1048576", used: "0"})).grade == "fine"
    few = aio(seen({most: "65536", used: "2048"}))
    assert (few.grade, few.value) == ("caution", "63488 of 65536 requests left")
    assert "sysctl" in few.fix


def test_limits_that_cannot_be_read_are_unknown() -> None:
    assert open_files(seen()).grade == aio(seen()).grade == "unknown"
