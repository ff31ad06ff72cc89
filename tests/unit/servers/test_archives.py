"""Archives of every kind, whole, careless and damaged."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest
from support.repository import tarred, zipped

from fairtrial.errors import PlaceError
from fairtrial.servers import archives

FILES = {"db/bin/mysqld": "#!/bin/sh\n", "db/share/english/errmsg.sys": "words", "db/libs/libaio.so.1": "library"}
UNNEEDED = {
    "db/bin/mysqld-debug": "x",
    "db/lib/libmysqld.a": "x",
    "db/mysql-test/t/a.test": "x",
    "db/man/man1/a.1": "x",
}


def contents(directory: Path) -> dict[str, str]:
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jar", zipped({**FILES, **UNNEEDED})),
        ("a.tar.xz", tarred({**FILES, **UNNEEDED})),
        ("a.tar.gz", tarred({**FILES, **UNNEEDED}, mode="w:gz")),
        ("a.tar", tarred({**FILES, **UNNEEDED}, mode="w")),
    ],
)
def test_all_that_a_server_needs_is_unpacked_for_everybody_to_read(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    archives.unpack(tmp_path / name, tmp_path / "out")
    assert contents(tmp_path / "out") == FILES
    for path in (tmp_path / "out").rglob("*"):
        assert path.stat().st_mode & 0o444 == 0o444, path
    assert os.access(tmp_path / "out/db/bin/mysqld", os.X_OK), "packers lose what a program is"
    assert (tmp_path / "out").stat().st_mode & 0o555 == 0o555


def test_an_archive_in_an_archive_is_unpacked_too(tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    inner = tmp_path / "postgres.txz"
    inner.write_bytes(tarred({"bin/postgres": "#!/bin/sh\n"}))
    with zipfile.ZipFile(jar, "w") as file:
        file.write(inner, "postgres-linux-x86_64.txz")
    archives.unpack(jar, tmp_path / "out")
    assert contents(tmp_path / "out") == {"bin/postgres": "#!/bin/sh\n"}


def test_a_debian_package_is_unpacked_and_not_installed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    control = "Package: a-server\nVersion: 1\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: a server\n"
    (tree / "DEBIAN/control").write_text(control, encoding="utf-8")
    (tree / "usr/sbin").mkdir(parents=True)
    (tree / "usr/sbin/mariadbd").write_text("#!/bin/sh\n", encoding="utf-8")
    archive = tmp_path / "a-server_1_all.deb"
    subprocess.run(["dpkg-deb", "--build", str(tree), str(archive)], check=True, capture_output=True)
    archives.unpack(archive, tmp_path / "out")
    assert contents(tmp_path / "out") == {"usr/sbin/mariadbd": "#!/bin/sh\n"}


@pytest.mark.parametrize("keep", [0.3, 0.9])
@pytest.mark.parametrize("name", ["a.tar.xz", "a.tar.gz"])
def test_a_tarball_that_is_cut_is_called_damaged(tmp_path: Path, name: str, keep: float) -> None:
    big = {f"db/share/{number}": os.urandom(4000).hex() for number in range(20)}
    content = tarred(big, mode="w:" + name[-2:])
    (tmp_path / name).write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(PlaceError, match=r"cannot be unpacked|is not an archive") as refused:
        archives.unpack(tmp_path / name, tmp_path / "out")
    assert name in str(refused.value)


def test_a_zip_whose_content_is_damaged_is_called_so(tmp_path: Path) -> None:
    content = bytearray(zipped({"bin/mysqld": "a" * 100}))
    content[60] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(PlaceError, match=r"a\.zip cannot be unpacked: Bad CRC-32"):
        archives.unpack(tmp_path / "a.zip", tmp_path / "out")


def test_a_tarball_whose_content_is_damaged_is_called_so(tmp_path: Path) -> None:
    content = bytearray(tarred({"bin/mysqld": "a" * 100}, mode="w:gz"))
    content[-8] ^= 0xFF  # of the checksum (RFC 1952)
    (tmp_path / "a.tar.gz").write_bytes(content)
    with pytest.raises(PlaceError, match=r"a\.tar\.gz cannot be unpacked: CRC check failed"):
        archives.unpack(tmp_path / "a.tar.gz", tmp_path / "out")


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz"])
def test_what_follows_a_packed_tarball_does_not_damage_it(tmp_path: Path, packing: str) -> None:
    """gzip(1): trailing garbage ignored."""
    (tmp_path / "a.tar").write_bytes(tarred({"bin/mysqld": "run"}, mode=f"w:{packing}") + b"signature")
    archives.unpack(tmp_path / "a.tar", tmp_path / "out")
    assert (tmp_path / "out/bin/mysqld").read_text() == "run"


def test_a_zip_whose_names_are_no_text_is_called_damaged(tmp_path: Path) -> None:
    content = zipped({"bin/mysqld-\N{DEGREE SIGN}": "a"})
    (tmp_path / "a.zip").write_bytes(content.replace("\N{DEGREE SIGN}".encode(), b"\xff\xff"))
    with pytest.raises(PlaceError, match=r"a\.zip cannot be unpacked: 'utf-8' codec can't decode"):
        archives.unpack(tmp_path / "a.zip", tmp_path / "out")


def test_a_zip_whose_members_are_elsewhere_is_called_damaged(tmp_path: Path) -> None:
    content = bytearray(zipped({"bin/mysqld": "a" * 100}))
    directory = content.index(b"PK\x05\x06") + 16  # where the list of members begins (APPNOTE 4.3.16)
    content[directory : directory + 4] = b"\xff\xff\xff\x7f"
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(PlaceError, match=r"a\.zip (cannot be unpacked|is not an archive)"):
        archives.unpack(tmp_path / "a.zip", tmp_path / "out")


@pytest.mark.parametrize("content", [b"", b"MZ not an archive", b"PK\x03\x04 cut"])
def test_anything_else_is_no_archive(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.bin").write_bytes(content)
    with pytest.raises(PlaceError, match=r"a\.bin is not an archive of a known format"):
        archives.unpack(tmp_path / "a.bin", tmp_path / "out")
