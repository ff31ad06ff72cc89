"""Directories at a place: filled, fetched and removed, and never outside the place's own."""

from pathlib import Path, PurePosixPath

import pytest
from support.places import place_here, place_in_memory

from fairtrial.errors import PlaceError
from fairtrial.run import workspace
from fairtrial.wire.fake import Ran

SOCKET_PATH_BYTES = 107  # unix(7)


def test_what_lies_at_the_place_is_fetched_with_its_folders(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        directory = workspace.work_directory(place, "run", "trial")
        workspace.make(place, directory / "out" / "log")
        place.agent.put(str(directory / "out" / "log" / "a b.log"), b"said")
        place.agent.put(str(directory / "out" / "empty"), b"")
        workspace.fetch(place, directory / "out", tmp_path / "local")
        assert (tmp_path / "local" / "log" / "a b.log").read_bytes() == b"said"
        assert (tmp_path / "local" / "empty").read_bytes() == b""
        workspace.remove(place, directory)
        workspace.remove(place, directory)  # it need not exist
        assert not Path(directory).exists()


@pytest.mark.parametrize("name", ["../outside", "log/../../outside", ".."])
def test_a_place_cannot_write_outside_the_trial(tmp_path: Path, name: str) -> None:
    local = tmp_path / "trial"
    with place_in_memory(lambda _spawn: Ran(stdout=[name])) as (place, fake):
        fake.files[f"/var/lib/fairtrial/work/x/{name}"] = b"evil"
        with pytest.raises(PlaceError, match="offers a file named"):
            workspace.fetch(place, PurePosixPath("/var/lib/fairtrial/work/x"), local)
    assert list(tmp_path.rglob("outside")) == []


@pytest.mark.parametrize("directory", ["/", "/home", "/var/lib/fairtrial", "/var/lib/fairtrial-other/x"])
def test_nothing_outside_the_state_directory_is_ever_removed(directory: str) -> None:
    with place_in_memory() as (place, fake):
        before = len(fake.requests)
        with pytest.raises(AssertionError, match="refusing to remove"):
            workspace.remove(place, PurePosixPath(directory))
        assert len(fake.requests) == before


def test_directories_of_trials_differ_and_leave_room_for_sockets() -> None:
    with place_in_memory() as (place, _fake):
        first = workspace.work_directory(place, "run-" + "x" * 200, "cell.b01.a")
        second = workspace.work_directory(place, "run-" + "x" * 200, "cell.b01.b")
    assert first != second
    assert len(str(first / "server" / "mysqld.sock").encode()) <= SOCKET_PATH_BYTES


def test_a_place_that_cannot_make_a_directory_says_why() -> None:
    with (
        place_in_memory(lambda _spawn: Ran(code=1, stderr=["install: no space"])) as (place, _fake),
        pytest.raises(PlaceError, match="install: no space"),
    ):
        workspace.make(place, PurePosixPath("/var/lib/fairtrial/work/x"))
