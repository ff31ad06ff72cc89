from collections.abc import Iterator

import pytest
from support.command_line import Desk, desk


@pytest.fixture
def here() -> Iterator[Desk]:
    with desk() as found:
        yield found
        assert found.processes() == {}, "processes were left behind"
