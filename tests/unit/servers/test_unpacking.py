"""Archives that try to get out of the directory they are unpacked into."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fairtrial import debian, unpacking
from fairtrial.errors import PlaceError
from fairtrial.servers import archives
from fairtrial.unpacking import Tarball, Unpacking

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


def tarball(path: Path, *members: Member) -> Path:
    with tarfile.open(path, "w:gz") as file:
        for info, content in members:
            file.addfile(info, io.BytesIO(content))
    return path


def unpacked(directory: Path, members: Sequence[Member]) -> Path:
    archive = tarball(directory / "archive.tar", *members)
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


def test_hard_links_take_no_room(tmp_path: Path) -> None:
    into = unpacked(tmp_path, [member("a", content=b"run"), member("b", kind=tarfile.LNKTYPE, link="a")])
    assert (into / "a").samefile(into / "b"), "a thousand links to a gigabyte would be a terabyte of copies"


@pytest.mark.parametrize(
    "members",
    [
        [member("a", content=b"file"), member("a/b", content=b"below it")],
        [member("a/b"), member("a")],
        [member("a"), member("a", kind=tarfile.DIRTYPE)],
        [symlink("a", "nowhere"), member("a", kind=tarfile.DIRTYPE)],
        [member("n" * 256)],
        [member("n" * 256, kind=tarfile.DIRTYPE)],
        [symlink("a", "a"), member("a/b/c")],
    ],
)
def test_names_that_cannot_be_beside_each_other_refuse_the_archive(tmp_path: Path, members: list[Member]) -> None:
    with pytest.raises(PlaceError, match="cannot be made"):
        archives.unpack(tarball(tmp_path / "a.tar.gz", *members), tmp_path / "out")


def test_a_link_to_nothing_refuses_the_archive(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="'a' is a link to nothing"):
        archives.unpack(tarball(tmp_path / "a.tar.gz", symlink("a", "")), tmp_path / "out")


def test_a_name_with_a_nul_refuses_the_archive(tmp_path: Path) -> None:
    named = tarfile.TarInfo("a")
    named.pax_headers = {"path": "a\0b"}
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as file:
        file.addfile(named)
    with pytest.raises(PlaceError, match="cannot be unpacked: embedded null byte"):
        archives.unpack(tmp_path / "a.tar", tmp_path / "out")


@pytest.mark.parametrize("other", [[], [symlink("l", "d")]])
def test_a_file_that_is_its_own_hard_link_stays(tmp_path: Path, other: list[Member]) -> None:
    again = member("d/a", kind=tarfile.LNKTYPE, link="l/a" if other else "d/a")
    into = unpacked(tmp_path, [member("d/a", content=b"run"), *other, again])
    assert (into / "d/a").read_bytes() == b"run"


def test_a_link_that_has_the_name_of_an_archive_is_none(tmp_path: Path) -> None:
    members = [member("run", content=b"run"), symlink("x.tgz", "nowhere"), symlink("y.tgz", "run")]
    archives.unpack(tarball(tmp_path / "a.tar.gz", *members), tmp_path / "out")
    assert (tmp_path / "out/run").read_bytes() == b"run"


def test_archives_in_an_archive_share_its_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tarball(tmp_path / "inner.tgz", member("a", content=b"\0" * 10_000)).read_bytes()
    jar = tmp_path / "a.jar"
    with zipfile.ZipFile(jar, "w") as file:
        for index in range(3):
            file.writestr(f"{index}.tgz", inner)
    monkeypatch.setattr(unpacking, "MOST_BYTES", 30_000)
    with pytest.raises(PlaceError, match="unpacks to more than 30,000 bytes"):
        archives.unpack(jar, tmp_path / "out")
    monkeypatch.setattr(unpacking, "MOST_BYTES", 30_000 + 3 * len(inner))
    archives.unpack(jar, tmp_path / "again")


def test_no_link_leads_out_by_a_later_archive(tmp_path: Path) -> None:
    first = tarball(tmp_path / "1.tgz", symlink("a", "b/../x"))
    second = tarball(tmp_path / "2.tgz", symlink("b", "."))
    jar = tmp_path / "a.jar"
    with zipfile.ZipFile(jar, "w") as file:
        file.write(first, first.name)
        file.write(second, second.name)
    archives.unpack(jar, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b"]


LONG = {"comment": "x" * unpacking.HEADER_BYTES}


@pytest.mark.parametrize("before", [[], [member("a", content=b"run")]])
@pytest.mark.parametrize("headers", [{"pax_headers": LONG}, {"own": LONG}, {"name": "n" * unpacking.HEADER_BYTES}])
def test_headers_that_would_fill_the_memory_refuse_the_archive(
    tmp_path: Path, headers: dict[str, Any], before: list[Member]
) -> None:
    archive = tmp_path / "a.tgz"
    kind = tarfile.GNU_FORMAT if "name" in headers else tarfile.PAX_FORMAT
    with tarfile.open(archive, "w:gz", format=kind, pax_headers=headers.get("pax_headers")) as file:
        for info, content in before:
            file.addfile(info, io.BytesIO(content))
        long, _ = member(headers.get("name", "b"))
        long.pax_headers = headers.get("own", {})
        file.addfile(long)
    with pytest.raises(PlaceError, match="more than 1,048,576 bytes of headers"):
        archives.unpack(archive, tmp_path / "out")


def test_headers_of_a_package_are_bounded_too(tmp_path: Path) -> None:
    info, _ = member("a")
    info.pax_headers = LONG
    with pytest.raises(PlaceError, match="bytes of headers"):
        archives.unpack(package(tmp_path, (info, b"")), tmp_path / "out")


def test_thousands_of_headers_before_one_member_refuse_the_archive(tmp_path: Path) -> None:
    header, _ = member("x", kind=tarfile.XHDTYPE)
    (tmp_path / "a.tar").write_bytes(header.tobuf(tarfile.PAX_FORMAT) * 1500)
    with pytest.raises(PlaceError, match="cannot be unpacked"):
        archives.unpack(tmp_path / "a.tar", tmp_path / "out")


def test_headers_of_members_that_were_unpacked_are_not_kept(tmp_path: Path) -> None:
    archive = tarball(tmp_path / "a.tgz", *[member(f"{index}") for index in range(5)])
    into = tmp_path / "into"
    into.mkdir()
    with archive.open("rb") as packed, Tarball.open(fileobj=packed) as file:
        Unpacking(archive, into).tar(file)
        assert file.getmembers() == []
    assert len(list(into.iterdir())) == 5


def test_a_zip_with_a_password_is_told(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a", b"run")
    content = bytearray(archive.read_bytes())
    content[6] |= 1  # the flag of encryption, in the local header and in the directory
    content[content.index(b"PK\1\2") + 8] |= 1
    archive.write_bytes(content)
    with pytest.raises(PlaceError, match=r"cannot be unpacked: .*password"):
        archives.unpack(archive, tmp_path / "out")


def package(directory: Path, *members: Member) -> Path:
    """A Debian package with any members: dpkg-deb itself would not make all of them."""
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": tarball(directory / "control", member("./control", content=b"Package: a\n")).read_bytes(),
        "data.tar.gz": tarball(directory / "data", *members).read_bytes(),
    }
    archive = directory / "a_1_all.deb"
    with archive.open("wb") as file:
        file.write(b"!<arch>\n")
        for name, content in parts.items():
            file.write(f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode())
            file.write(content + b"\n" * (len(content) % 2))
    return archive


def test_a_debian_package_is_held_to_the_same_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archives.unpack(package(tmp_path, member("./bin/a", mode=0o6755), symlink("./l", "/etc")), tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out/bin/a").stat().st_mode) == 0o755
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["bin"]
    with pytest.raises(PlaceError, match="leads out"):
        archives.unpack(package(tmp_path, member("../outside")), tmp_path / "second")
    monkeypatch.setattr(unpacking, "MOST_BYTES", 1 << 20)
    with pytest.raises(PlaceError, match="unpacks to more than 1,048,576 bytes"):
        archives.unpack(package(tmp_path, member("./a", content=b"\0" * (64 << 20))), tmp_path / "third")


@pytest.mark.parametrize("keep", [10, 600, 0.5, 0.9])
def test_a_package_that_is_cut_is_called_damaged(tmp_path: Path, keep: float) -> None:
    archive = package(tmp_path, *[member(f"./{index}", content=os.urandom(3000)) for index in range(20)])
    content = archive.read_bytes()
    archive.write_bytes(content[: int(keep if keep > 1 else keep * len(content))])
    (tmp_path / "out").mkdir()
    with pytest.raises(PlaceError, match="cannot be unpacked"):
        debian.extract(archive, Unpacking(archive, tmp_path / "out"))
