import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Desk, desk
from support.guests import unpack_once

from fairtrial.errors import PlaceError


@pytest.fixture
def here() -> Iterator[Desk]:
    with desk() as found:
        yield found
        assert found.processes() == {}, "processes were left behind"


@pytest.fixture(scope="session")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Debian's kernel, downloaded and unpacked once for all workers."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    try:
        return unpack_once("debian-6.1", shared / "kernels")
    except PlaceError as error:
        if "apt" not in str(error):  # what apt cannot do is the machine's; all else is ours
            raise
        pytest.skip(f"no kernel to boot: {error}")
