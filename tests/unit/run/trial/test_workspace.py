"""Directories at a place: filled, fetched and removed, and never outside the place's own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest
from support.machines.places import place_here, place_in_memory

from fairtrial.errors import PlaceError
from fairtrial.run.trial import workspace
from fairtrial.wire import arriving
from fairtrial.wire.fake import FakeProgram, FakeTransport
from fairtrial.wire.open_place import OpenPlace

OUT = PurePosixPath("/var/lib/fairtrial/work/x/out")
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


def test_any_number_of_long_names_is_fetched(tmp_path: Path) -> None:
    names = [f"{index:03}-{'n' * 240}" for index in range(600)]  # 144 kB of names; output lines are cut at 64 KiB
    with place_here(tmp_path) as place:
        directory = workspace.work_directory(place, "run", "trial")
        workspace.make(place, directory / "out")
        for name in names:
            (Path(directory) / "out" / name).write_text(name, encoding="utf-8")
        workspace.fetch(place, directory / "out", tmp_path / "local")
    assert sorted(path.name for path in (tmp_path / "local").iterdir()) == names


@contextmanager
def offering(*names: str) -> Iterator[tuple[OpenPlace, FakeTransport]]:
    """A place that says it has these files below `OUT`."""
    with place_in_memory() as (place, fake):
        fake.files[f"{OUT}.list"] = b"".join(os.fsencode(name) + b"\0" for name in names)
        fake.files |= {f"{OUT / name}": b"evil" for name in names}
        yield place, fake


@pytest.mark.parametrize(
    "name", ["../outside", "log/../../outside", "..", "/{}/outside", "//{}/outside", "a\nb", "\udcff"]
)
def test_a_place_cannot_write_outside_the_trial(tmp_path: Path, name: str) -> None:
    with (
        offering(name.format(tmp_path)) as (place, _fake),
        pytest.raises(PlaceError, match="offers a file named"),
    ):
        workspace.fetch(place, OUT, tmp_path / "trial")
    assert list(tmp_path.rglob("outside")) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "trial").mkdir()
    (tmp_path / "trial" / "log").symlink_to(tmp_path / "outside")
    with offering("log") as (place, _fake), pytest.raises(PlaceError, match=r"'log', which cannot be made .* symbolic"):
        workspace.fetch(place, OUT, tmp_path / "trial")
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["a", "a/b"], "File exists"),
        (["a", "a/b/c"], "Not a directory"),
        (["a/b", "a"], "Is a directory"),
        (["a" * 255 + "/" + "/".join(["b" * 255] * 20)], "File name too long"),
        (["a/" * 65 + "b"], "more than 64 directories"),
        (["a/" * 3000 + "b"], "more than 64 directories"),
    ],
)
def test_names_that_cannot_be_beside_each_other_are_told(tmp_path: Path, names: list[str], why: str) -> None:
    with offering(*names) as (place, _fake), pytest.raises(PlaceError, match=why) as told:
        workspace.fetch(place, OUT, tmp_path / "trial")
    assert len(str(told.value)) < 400


def test_a_file_may_lie_deep(tmp_path: Path) -> None:
    with offering("a/" * 64 + "b") as (place, _fake):
        workspace.fetch(place, OUT, tmp_path)
    assert [path.read_bytes() for path in tmp_path.rglob("b")] == [b"evil"]


def test_bytes_and_files_are_capped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with offering("a", "b", "c") as (place, _fake):
        monkeypatch.setattr(arriving, "TRIAL_BYTES", 10)
        with pytest.raises(PlaceError, match=r"/c at the place is too large: expected at most 2 bytes, found 4"):
            workspace.fetch(place, OUT, tmp_path / "trial")
        monkeypatch.setattr(arriving, "FILE_BYTES", 3)
        with pytest.raises(PlaceError, match=r"/a at the place is too large: expected at most 3 bytes, found 4"):
            workspace.fetch(place, OUT, tmp_path / "trial")
        monkeypatch.setattr(arriving, "TRIAL_FILES", 2)
        with pytest.raises(PlaceError, match="left 3 files: at most 2 are taken"):
            workspace.fetch(place, OUT, tmp_path / "trial")


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
        place_in_memory(lambda _spawn: FakeProgram(code=1, stderr=["install: no space"])) as (place, _fake),
        pytest.raises(PlaceError, match="install: no space"),
    ):
        workspace.make(place, PurePosixPath("/var/lib/fairtrial/work/x"))
