"""A place without the room that a run needs is refused with both figures."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.facts import EMULATED, facts_of
from support.machines.places import place_here, place_in_memory
from support.records import section

from fairtrial.caching import CACHE_VARIABLE
from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.run import prepared
from fairtrial.run.feasibility import disk as room
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.systems import SYSTEMS
from fairtrial.wire.fake import FakeProgram
from fairtrial.workloads import WORKLOADS

MIB = 1 << 20


def trial(*, warehouses: int = 1, system: str = "sqlite", version: str | None = None) -> ResolvedTrial:
    own = {} if version is None else {"version": version}
    workload = section(WORKLOADS, "tpcc", duration="1s", warehouses=warehouses)
    return ResolvedTrial(place={"local": {}}, system=section(SYSTEMS, system, **own), workload=workload)


def holding(count: int | None) -> Callable[[wire.Spawn], FakeProgram]:
    """A place with as many bytes of prepared data."""

    def run(spawn: wire.Spawn) -> FakeProgram:
        if spawn.name == "sql":
            return FakeProgram(stdout=['{"columns": ["1", "2"], "rows": [["3.40", "2022"]]}'])
        return (
            FakeProgram(code=1, stderr=["du: none"]) if count is None else FakeProgram(stdout=[f"{count}\t/prepared"])
        )

    return run


def require(*, free: int, need: int, held: int | None = None) -> list[str]:
    with place_in_memory(holding(held), facts=facts_of(free_bytes=free)) as (place, fake):
        room.require(place, need, trials=[trial(), trial()])
        return [request.name for request in fake.requests if isinstance(request, wire.Spawn)]


def test_enough_is_enough_and_asks_nothing() -> None:
    assert require(free=MIB, need=MIB) == []


def test_too_little_is_refused_with_both_figures() -> None:
    with pytest.raises(PlaceError, match=r"needs about 512MiB .* /var/lib/fairtrial has 100MiB free$") as refused:
        require(free=100 * MIB + 17, need=512 * MIB)
    assert refused.value.exit_code == 3
    assert "state_directory" in refused.value.hint


def test_a_guest_gets_a_larger_disk_not_another_directory() -> None:
    facts = facts_of(free_bytes=MIB, guest=EMULATED)
    with (
        place_in_memory(holding(None), facts=facts) as (place, _fake),
        pytest.raises(PlaceError) as refused,
    ):
        room.require(place, 9 * MIB, trials=[])
    assert refused.value.hint.startswith("raise `place.vm.disk`")


def test_what_is_prepared_already_counts_as_room() -> None:
    assert require(free=100 * MIB, need=512 * MIB, held=412 * MIB) == ["sql", "du"]
    with pytest.raises(PlaceError, match="has 100MiB free, 411MiB of prepared data for it beside that"):
        require(free=100 * MIB, need=512 * MIB, held=411 * MIB)


def test_figures_are_told_in_whole_mebibytes_and_small_ones_exactly() -> None:
    with pytest.raises(PlaceError, match=r"needs about 3MiB .* has 1001B free$"):
        require(free=1001, need=3 * MIB + MIB - 1)
    with pytest.raises(PlaceError, match=r"needs about 2MiB .* has 1MiB free$"):
        require(free=MIB, need=2 * MIB)


def test_prepared_data_of_less_than_a_mebibyte_are_not_worth_a_word() -> None:
    with pytest.raises(PlaceError, match=r"has 1MiB free$"):
        require(free=MIB, need=9 * MIB, held=MIB - 1)
    with pytest.raises(PlaceError, match=r"has 1MiB free, 1MiB of prepared data for it beside that"):
        require(free=MIB, need=9 * MIB, held=MIB)


def test_one_byte_too_few_is_too_few() -> None:
    assert require(free=MIB - 1, need=MIB, held=1) == ["sql", "du"]
    with pytest.raises(PlaceError):
        require(free=MIB - 1, need=MIB, held=0)


def test_prepared_data_of_other_studies_are_no_room(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        place.facts = facts_of(free_bytes=MIB)
        (own,), (other,) = (prepared.directories(place, [trial(warehouses=count)]) for count in (1, 2))
        for directory in (own, other):
            Path(directory).mkdir(parents=True)
            (Path(directory) / "data").write_bytes(b"x" * 4 * MIB)
        room.require(place, 5 * MIB, trials=[trial()])
        with pytest.raises(PlaceError, match="has 1MiB free, 4MiB of prepared data for it"):
            room.require(place, 6 * MIB, trials=[trial()])
        room.require(place, 9 * MIB, trials=[trial(), trial(warehouses=2)])
        with pytest.raises(PlaceError, match=r"has 1MiB free$"):
            room.require(place, 2 * MIB, trials=[trial(warehouses=3)])


@pytest.mark.parametrize("version", ["5.5.34", None], ids=["would be downloaded", "missing"])
def test_a_server_that_is_not_there_has_nothing_prepared_and_is_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    with place_in_memory(lambda _spawn: FakeProgram(code=1), facts=facts_of(free_bytes=MIB)) as (place, fake):
        with pytest.raises(PlaceError, match=r"has 1MiB free$"):
            room.require(place, 2 * MIB, trials=[trial(system="mysql", version=version)])
        assert "du" not in [request.name for request in fake.requests if isinstance(request, wire.Spawn)]
    assert list(tmp_path.iterdir()) == []
