from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import Desk, desk
from support.shared import alone_in

from fairtrial.errors import PlaceError
from fairtrial.places.vm import kernels


@pytest.fixture
def here() -> Iterator[Desk]:
    with desk() as found:
        yield found
        assert found.processes() == {}, "processes were left behind"


@pytest.fixture(scope="session")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Debian's kernel, downloaded and unpacked once for all workers."""
    try:
        with alone_in(tmp_path_factory, "kernels") as cache:
            return kernels.find("debian-6.1", cache=cache).image
    except PlaceError as error:
        if "apt" not in str(error):  # what apt cannot do is the machine's; all else is ours
            raise
        pytest.skip(f"no kernel to boot: {error}")
