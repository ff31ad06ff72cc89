"""Where data are kept: the file system, copies by reference, and room."""

from __future__ import annotations

import pytest
from support.seen import seen

from fairtrial.doctor.storage import disk_space, file_system, reflink

GIB_KIB = 1 << 20


def space(size_gib: float, available_gib: float) -> dict[str, str]:
    return {"size_kib": str(int(size_gib * GIB_KIB)), "available_kib": str(int(available_gib * GIB_KIB))}


def test_a_disk_is_fine_memory_is_a_caution_and_the_rest_is_unknown() -> None:
    assert file_system(seen()).value == "xfs"
    in_memory = file_system(seen(facts={"file_system": "tmpfs"}))
    assert (in_memory.grade, in_memory.value) == ("caution", "tmpfs, in memory")
    assert file_system(seen(facts={"file_system": "unknown"})).grade == "unknown"


def test_copies_by_reference_are_what_was_tried_not_what_a_name_promises() -> None:
    assert reflink(seen(state={"reflink": "yes"})).grade == "fine"
    refused = reflink(seen(state={"reflink": "no"}))  # XFS made without them
    assert refused.grade == "caution"
    assert "reflink=1" in refused.fix
    assert reflink(seen()).grade == "unknown"


@pytest.mark.parametrize(
    ("size", "available", "grade"),
    [
        (100, 50, "fine"),
        (100, 11, "fine"),
        (100, 9, "caution"),
        (100, 1.9, "unfit"),
        (0.25, 0.0625, "fine"),
        (0.25, 0.0605, "unfit"),
    ],
)
def test_room_is_a_share_of_the_disk_and_never_below_what_a_log_takes(
    size: float, available: float, grade: str
) -> None:
    found = disk_space(seen(state=space(size, available)))
    assert found.grade == grade
    assert found.value == f"{available:g} GiB free of {size:g} GiB"
    assert found.biases == (grade == "unfit")


def test_before_there_is_a_directory_the_facts_tell_what_is_free() -> None:
    assert disk_space(seen()).value == "100 GiB free"
    assert disk_space(seen(facts={"free_bytes": 10 << 20})).grade == "unfit"
    assert disk_space(seen(facts={"free_bytes": 0})).grade == "unknown"
