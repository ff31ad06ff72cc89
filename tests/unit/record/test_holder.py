"""Who runs a record, where another user's process is said to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairtrial.record.journal import NAME, is_held

NOBODY = 65534
INIT = 1  # root's, and no other user may see what it has open


@contextmanager
def as_nobody() -> Iterator[None]:
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's process is needed: `make test` as root")
@pytest.mark.parametrize(("owner", "believed"), [(0, True), (NOBODY, False)])
def test_a_process_that_cannot_be_looked_into_is_believed_of_its_own_users_record(
    tmp_path: Path, *, owner: int, believed: bool
) -> None:
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    (tmp_path / NAME).touch()
    os.chown(tmp_path / NAME, owner, -1)
    with as_nobody():
        assert is_held(tmp_path, INIT) is believed
