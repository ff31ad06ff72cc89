"""A place without the room that a run needs is refused with both figures."""

import pytest
from support.places import FACTS, place_in_memory

from fairtrial.errors import PlaceError
from fairtrial.run import room
from fairtrial.wire import generated as wire
from fairtrial.wire.fake import Ran

MIB = 1 << 20


def holding(count: int | None) -> Ran:
    return Ran(code=1, stderr=["du: no such directory"]) if count is None else Ran(stdout=[f"{count}\t/prepared"])


def require(*, free: int, need: int, prepared: int | None = None) -> list[str]:
    with place_in_memory(lambda _spawn: holding(prepared), facts={**FACTS, "free_bytes": free}) as (place, fake):
        room.require(place, need)
        return [request.name for request in fake.requests if isinstance(request, wire.Spawn)]


def test_enough_is_enough_and_asks_nothing() -> None:
    assert require(free=MIB, need=MIB) == []


def test_too_little_is_refused_with_both_figures() -> None:
    with pytest.raises(PlaceError, match=r"needs about 512MiB .* /var/lib/fairtrial has 100MiB free$") as refused:
        require(free=100 * MIB + 17, need=512 * MIB)
    assert refused.value.exit_code == 3
    assert "state_directory" in refused.value.hint


def test_a_guest_gets_a_larger_disk_not_another_directory() -> None:
    facts = {**FACTS, "free_bytes": MIB, "accelerator": "tcg"}
    with (
        place_in_memory(lambda _spawn: holding(None), facts=facts) as (place, _fake),
        pytest.raises(PlaceError) as refused,
    ):
        room.require(place, 9 * MIB)
    assert refused.value.hint.startswith("raise `place.vm.disk`")


def test_what_is_prepared_already_counts_as_room() -> None:
    assert require(free=100 * MIB, need=512 * MIB, prepared=412 * MIB) == ["du"]
    with pytest.raises(PlaceError, match="has 100MiB free, 411MiB of prepared data beside it"):
        require(free=100 * MIB, need=512 * MIB, prepared=411 * MIB)


def test_figures_are_told_in_whole_mebibytes_and_small_ones_exactly() -> None:
    with pytest.raises(PlaceError, match=r"needs about 3MiB .* has 1001B free$"):
        require(free=1001, need=3 * MIB + MIB - 1)
    with pytest.raises(PlaceError, match=r"needs about 2MiB .* has 1MiB free$"):
        require(free=MIB, need=2 * MIB)


def test_prepared_data_of_less_than_a_mebibyte_are_not_worth_a_word() -> None:
    with pytest.raises(PlaceError, match=r"has 1MiB free$"):
        require(free=MIB, need=9 * MIB, prepared=MIB - 1)
    with pytest.raises(PlaceError, match=r"has 1MiB free, 1MiB of prepared data beside it"):
        require(free=MIB, need=9 * MIB, prepared=MIB)


def test_one_byte_too_few_is_too_few() -> None:
    assert require(free=MIB - 1, need=MIB, prepared=1) == ["du"]
    with pytest.raises(PlaceError):
        require(free=MIB - 1, need=MIB, prepared=0)
