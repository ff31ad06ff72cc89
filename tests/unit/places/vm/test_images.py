"""A disk that mkfs fills with prepared data: all of them as they are, or no disk."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.machines.places import place_here

from fairtrial.errors import PlaceError
from fairtrial.places.vm import images

KEY, SIZE = "0123456789abcdef", 512 << 20


def prepared(state: Path) -> Path:
    directory = state / "prepared" / KEY
    (directory / "data/empty").mkdir(parents=True)
    (directory / "manifest.json").write_text("{}")
    (directory / "data/rows").write_bytes(b"row" * 5000)
    (directory / "data/rows").chmod(0o640)
    (directory / "data").chmod(0o700)
    return directory


def test_every_entry_is_listed_with_its_owner_and_permissions_and_where_its_bytes_are(tmp_path: Path) -> None:
    directory = prepared(tmp_path)
    owner = f"{directory.stat().st_uid} {directory.stat().st_gid}"
    assert images.listing(directory, below=("prepared", KEY)) == [
        str(directory),
        "0 0",
        "d--755 0 0",
        "prepared d--755 0 0",
        f"{KEY} d--755 0 0",
        f"data d--700 {owner}",
        f"empty d--755 {owner}",
        "$",
        f"rows ---640 {owner} {directory}/data/rows",
        "$",
        f"manifest.json ---644 {owner} {directory}/manifest.json",
        *["$"] * 3,
    ]


def test_what_mkfs_would_misread_is_not_listed(tmp_path: Path) -> None:
    directory = prepared(tmp_path)
    strange = directory / "data/two words"
    strange.touch()
    assert images.listing(directory, below=()) is None
    strange.unlink()
    strange = directory / "data/link"
    strange.symlink_to("rows")
    assert images.listing(directory, below=()) is None
    strange.unlink()
    (directory / "data/rows").chmod(0o4755)
    assert images.listing(directory, below=()) is None
    (directory / "data/rows").chmod(0o755)
    assert images.listing(directory, below=()) is not None


def test_a_file_that_mkfs_cannot_read_whole_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = prepared(tmp_path)
    monkeypatch.setattr(images, "MOST_FILE_BYTES", 14_999)
    assert images.listing(directory, below=()) is None
    monkeypatch.setattr(images, "MOST_FILE_BYTES", 15_000)
    assert images.listing(directory, below=()) is not None


def test_the_disk_is_a_file_system_with_the_data_and_shared_blocks(tmp_path: Path) -> None:
    state = tmp_path / "state"
    prepared(state)
    with place_here(tmp_path) as host:
        assert images.make(host, state / "vm", key=KEY, size=SIZE)
        disk = images.path(state / "vm", key=KEY, size=SIZE)
        found = host.require(["xfs_db", "-r", "-c", f"ls /prepared/{KEY}/data", "-c", "version", str(disk)], hint="")
        host.require(["xfs_repair", "-n", str(disk)], hint="")
    assert {"rows", "empty"} <= set(found.split())
    assert "REFLINK" in found
    assert disk.stat().st_size == SIZE
    assert not list((state / "vm/running").iterdir())


def test_a_disk_that_is_too_small_is_an_error_and_no_disk(tmp_path: Path) -> None:
    state = tmp_path / "state"
    big = prepared(state) / "data/big"
    subprocess.run(["fallocate", "-l", "400M", str(big)], check=True)
    with place_here(tmp_path) as host, pytest.raises(PlaceError, match=r"mkfs\.xfs") as refused:
        images.make(host, state / "vm", key=KEY, size=320 << 20)
    assert "place.vm.disk" in refused.value.hint
    assert not list((state / "vm/data").iterdir())
    assert not list((state / "vm/running").iterdir())
