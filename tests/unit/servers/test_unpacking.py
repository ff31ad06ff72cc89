"""Archives that try to get out of the directory they are unpacked into."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairtrial import unpacking
from fairtrial.errors import PlaceError
from fairtrial.unpacking import Unpacking

Member = tuple[tarfile.TarInfo, bytes]


def member(
    name: str, *, kind: bytes = tarfile.REGTYPE, link: str = "", content: bytes = b"", mode: int = 0o644
) -> Member:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size = kind, link, mode, len(content)
    info.uid = info.gid = 12345
    return info, content


def symlink(name: str, target: str) -> Member:
    return member(name, kind=tarfile.SYMTYPE, link=target)


def unpacked(directory: Path, members: Sequence[Member]) -> Path:
    archive = directory / "archive.tar"
    with tarfile.open(archive, "w") as file:
        for info, content in members:
            file.addfile(info, io.BytesIO(content))
    into = directory / "into"
    into.mkdir()
    with tarfile.open(archive) as file:
        Unpacking(archive, into).tar(file)
    return into


def test_what_is_inside_is_unpacked(tmp_path: Path) -> None:
    into = unpacked(
        tmp_path,
        [
            member("./bin", kind=tarfile.DIRTYPE, mode=0o755),
            member("./bin/server", content=b"run", mode=0o755),
            symlink("bin/alias", "server"),
            member("bin/twin", kind=tarfile.LNKTYPE, link="bin/server"),
            symlink("deep/er/up", "../../bin"),
        ],
    )
    assert (into / "bin" / "alias").read_bytes() == (into / "bin" / "twin").read_bytes() == b"run"
    assert os.access(into / "bin" / "twin", os.X_OK)
    assert (into / "deep" / "er" / "up" / "server").read_bytes() == b"run"


@pytest.mark.parametrize("asked", [0o6755, 0o1777, 0o666, 0o000])
def test_owner_and_special_permissions_are_not_the_archives(tmp_path: Path, asked: int) -> None:
    into = unpacked(tmp_path, [member("program", content=b"run", mode=asked)])
    found = (into / "program").stat()
    assert found.st_uid == os.geteuid()
    assert stat.S_IMODE(found.st_mode) == (asked & 0o755) | 0o600


@pytest.mark.parametrize(
    "members",
    [
        [member("../outside", content=b"evil")],
        [member("/tmp/../{}/outside", content=b"evil")],
        [member("in/../../outside", content=b"evil")],
        [symlink("out", ".."), member("out/outside", content=b"evil")],
        [symlink("x", "up/.."), symlink("up", "."), member("x/outside", content=b"evil")],
        [member("twin", kind=tarfile.LNKTYPE, link="../archive.tar")],
        [member("twin", kind=tarfile.LNKTYPE, link="/etc/passwd")],
        [symlink("a", "../archive.tar"), member("twin", kind=tarfile.LNKTYPE, link="a")],
        [member("null", kind=tarfile.CHRTYPE)],
        [member("pipe", kind=tarfile.FIFOTYPE)],
    ],
)
def test_what_leads_out_refuses_the_archive(tmp_path: Path, members: list[Member]) -> None:
    with pytest.raises(PlaceError, match="is not unpacked"):
        unpacked(tmp_path, members)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive.tar", "into"]


def test_a_file_replaces_a_link_and_is_not_written_through_it(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"mine")
    into = unpacked(tmp_path, [symlink("file", "../outside"), member("file", content=b"evil")])
    assert (tmp_path / "outside").read_bytes() == b"mine"
    assert (into / "file").read_bytes() == b"evil"


def test_links_that_lead_out_are_left_out(tmp_path: Path) -> None:
    into = unpacked(
        tmp_path,
        [
            symlink("a", "/etc/passwd"),
            symlink("b", "../outside"),
            symlink("x", "up/.."),
            symlink("up", "."),
            symlink("c", "up"),
        ],
    )
    assert {path.name for path in into.iterdir()} == {"up", "c"}


def test_members_and_bytes_are_limited(tmp_path: Path) -> None:
    archive = tmp_path / "bomb.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for index in range(3):
            file.writestr(f"{index}", b"\0" * 10_000)
    with zipfile.ZipFile(archive) as file:
        with pytest.raises(PlaceError, match="unpacks to more than"):
            Unpacking(archive, tmp_path, bytes_left=25_000).zip(file)
        with pytest.raises(PlaceError, match="more than 200,000 members"):
            Unpacking(archive, tmp_path, members_left=2).zip(file)
    assert unpacking.MOST_MEMBERS == 200_000


@pytest.mark.parametrize("name", ["../outside", "/outside", "a/../../outside"])
def test_a_zip_cannot_lead_out(tmp_path: Path, name: str) -> None:
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(zipfile.ZipInfo(name), b"evil")
    (tmp_path / "into").mkdir()
    with zipfile.ZipFile(archive) as file, pytest.raises(PlaceError, match="leads out"):
        Unpacking(archive, tmp_path / "into").zip(file)
    assert not (tmp_path / "outside").exists()
