"""Limits of a container are read back where they are in effect."""

from __future__ import annotations

import pytest

from fairtrial.errors import PlaceError
from fairtrial.places.container import limits_in_effect
from fairtrial.places.container.parameters import ContainerParameters
from fairtrial.wire import Agent
from fairtrial.wire.fake import FakeTransport

MEMORY = 64 << 20
V1 = "/sys/fs/cgroup/memory/memory."
V2 = "/sys/fs/cgroup/memory."
SWAPS = {"/proc/swaps": "Filename Type Size Used Priority\n/dev/sda2 partition 1048572 0 -2\n"}
NO_SWAPS = {"/proc/swaps": "Filename Type Size Used Priority\n"}


def require(files: dict[str, str]) -> None:
    fake = FakeTransport(files={path: text.encode() for path, text in files.items()})
    with Agent(fake, holder="a test", lock=True) as agent:
        limits_in_effect.require(agent, ContainerParameters(image="i", memory=MEMORY))


@pytest.mark.parametrize(
    "files",
    [
        {f"{V1}limit_in_bytes": f"{MEMORY}\n"} | NO_SWAPS,
        {f"{V1}limit_in_bytes": f"{MEMORY}\n", f"{V1}memsw.limit_in_bytes": f"{MEMORY}\n"} | SWAPS,
        {f"{V2}max": f"{MEMORY}\n", f"{V2}swap.max": "0\n"} | SWAPS,
        {f"{V2}max": f"{MEMORY}\n"},
    ],
)
def test_a_limit_of_memory_holds_without_swap(files: dict[str, str]) -> None:
    require(files)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({f"{V1}limit_in_bytes": f"{MEMORY}\n"} | SWAPS, "no swap beyond it, .* says nothing"),
        (
            {f"{V2}max": f"{MEMORY}\n", f"{V2}swap.max": "max\n"} | SWAPS,
            "no swap beyond it, .* says max",
        ),
        (
            {f"{V1}limit_in_bytes": f"{MEMORY}\n", f"{V1}memsw.limit_in_bytes": f"{2 * MEMORY}\n"} | SWAPS,
            f"{MEMORY} bytes, swap included, the control group says {2 * MEMORY}",
        ),
    ],
)
def test_swap_beyond_a_limit_of_memory_is_refused(files: dict[str, str], said: str) -> None:
    with pytest.raises(PlaceError, match=said) as refused:
        require(files)
    assert "swapaccount=1" in refused.value.hint
