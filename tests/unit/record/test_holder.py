"""Who runs a record, where another user's process is said to."""

from __future__ import annotations

import os
import subprocess
import tempfile
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
    *, owner: int, believed: bool
) -> None:
    with tempfile.TemporaryDirectory(prefix="ft-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        (directory / NAME).touch()
        os.chown(directory / NAME, owner, -1)
        with as_nobody():
            assert is_held(directory, INIT) is believed


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's process is needed: `make test` as root")
def test_a_process_that_nobody_waited_for_runs_no_record() -> None:
    with tempfile.TemporaryDirectory(prefix="ft-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        (directory / NAME).touch()
        dead = subprocess.Popen(["true"])
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
        with as_nobody():
            assert not is_held(directory, dead.pid)
        dead.wait()
