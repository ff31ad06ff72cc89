"""Packages in a shared cache: unpacked once, whoever was first, and for their owner alone to change."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fairtrial import debian, disks

CONTROL = "Package: a\nVersion: 1\nArchitecture: all\nMaintainer: A Test <test@example.org>\nDescription: a\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tree, archive = tmp_path / "tree", tmp_path / "a_1_all.deb"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(CONTROL, encoding="utf-8")
    (tree / "lib/modules").mkdir(parents=True)
    (tree / "lib/modules/loop.ko").write_text("module", encoding="utf-8")
    subprocess.run(["dpkg-deb", "--build", str(tree), str(archive)], check=True, capture_output=True)
    monkeypatch.setattr(debian, "downloaded", lambda _, directory: Path(shutil.copy(archive, directory / archive.name)))
    return tmp_path / "cache"


def test_whoever_comes_second_has_what_the_first_has_unpacked(cache: Path) -> None:
    first, second = debian.unpacked("a", cache), debian.unpacked("a", cache)
    assert first == second == cache / "a_1_all"
    assert [path.name for path in cache.iterdir()] == ["a_1_all"]


def test_a_package_is_on_the_disk_before_it_has_its_name(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []

    def sync(files: Path) -> None:
        assert not (cache / "a_1_all").exists()
        synced.append((files / "lib/modules/loop.ko").read_text())

    monkeypatch.setattr(disks, "sync_around", sync)
    debian.unpacked("a", cache)
    assert synced == ["module"]


@pytest.mark.parametrize("umask", [0, 0o077])
def test_no_other_user_can_change_a_part_of_it_whatever_the_umask(cache: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        found = debian.unpacked("a", cache)
    finally:
        os.umask(before)
    assert (found / "lib/modules/loop.ko").is_file()
    for path in (found, *found.rglob("*")):
        assert path.stat().st_mode & 0o022 == 0, path
        assert path.stat().st_mode & 0o005 == 0o005 or path.is_file(), path
