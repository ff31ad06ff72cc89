"""Writing that survives kills, and the hashes of what was written."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.errors import PlaceError
from fairtrial.record import files


def test_a_replaced_file_has_the_new_content_and_no_other_file_is_left(tmp_path: Path) -> None:
    path = tmp_path / "places.json"
    path.write_bytes(b"old and longer")
    files.write_synced(path, b"new")
    assert path.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["places.json"]


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failure_before_the_rename_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")

    def fails(*_arguments: object) -> None:
        raise OSError(errno.EIO, "broken")

    if failing == "fsync":
        monkeypatch.setattr(os, "fsync", fails)
    else:
        monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="broken"):
        files.write_synced(path, b"new")
    assert path.read_bytes() == b"old"


def test_what_is_renamed_was_synced_before_and_its_directory_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a power cut could leave an empty file under the name, or none."""
    told: list[str] = []
    real_replace = Path.replace

    def synced(descriptor: int) -> None:
        told.append("directory" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")  # noqa: PTH112 - a descriptor

    def replaced(path: Path, target: Path) -> Path:
        told.append("rename")
        return real_replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    files.write_synced(tmp_path / "a", b"x")
    assert told == ["file", "rename", "directory"]


def test_every_file_and_directory_of_a_tree_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log" / "deep").mkdir(parents=True)
    for name in ("a", "log/b", "log/deep/c"):
        (tmp_path / name).write_text(name)
    synced: set[str] = set()

    def fsync(descriptor: int) -> None:
        synced.add(os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), tmp_path))  # noqa: PTH115 - a descriptor

    monkeypatch.setattr(os, "fsync", fsync)
    files.sync_tree(tmp_path)
    assert synced == {".", "log", "log/deep", "a", "log/b", "log/deep/c"}


@settings(max_examples=20, deadline=None)
@given(st.binary(max_size=3000))
def test_a_hash_is_that_of_the_whole_content(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("hash") / "file"
    path.write_bytes(content)
    assert files.sha256(path) == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_a_hash_does_not_stop_at_the_end_of_a_chunk(tmp_path: Path, extra: int) -> None:
    content = b"ab" * (files.HASH_CHUNK_BYTES + extra)
    (tmp_path / "large").write_bytes(content)
    assert files.sha256(tmp_path / "large") == hashlib.sha256(content).hexdigest()


def test_files_are_listed_by_relative_path_in_one_order(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "empty").mkdir()
    for name in ("z", "log/b", "a", "log/a", ".hidden"):
        (tmp_path / name).write_text(name)
    assert list(files.relative_files(tmp_path)) == [".hidden", "a", "log/a", "log/b", "z"]
    assert files.hashes(tmp_path)["log/a"] == hashlib.sha256(b"log/a").hexdigest()


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "no space left on the disk of"),
        (errno.EDQUOT, "no space left on the disk of"),
        (errno.EIO, "reports an error"),
        (errno.EROFS, "no longer accepts writes"),
    ],
)
def test_a_disk_that_is_full_or_broken_is_explained(tmp_path: Path, number: int, said: str) -> None:
    with pytest.raises(PlaceError, match=said) as caught, files.disk_explained(tmp_path):
        raise OSError(number, "by the disk")
    assert str(tmp_path) in str(caught.value)
    assert "--resume" in caught.value.hint
    assert isinstance(caught.value.__cause__, OSError), "a cause is never dropped"


def test_every_directory_that_is_made_has_a_name_that_survives_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync_directory", synced.append)
    files.make_directory(tmp_path / "a" / "runs")
    assert sorted(synced) == [tmp_path, tmp_path / "a"]
    files.make_directory(tmp_path / "a" / "runs")
    assert len(synced) == 2, "those that are there are left alone"
    with pytest.raises(FileExistsError):
        files.make_directory(tmp_path / "a" / "runs", fresh=True)


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "denied"), ValueError("else"), KeyboardInterrupt()])
def test_other_errors_stay_what_they_are(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, files.disk_explained(tmp_path):
        raise error
    assert caught.value is error
