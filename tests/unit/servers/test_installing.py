"""Servers in the cache: unpacked once, checked when they are met again."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.repository import PROGRAM, publish, served, zipped

from fairtrial import disks
from fairtrial.caching import CACHE_VARIABLE
from fairtrial.errors import PlaceError
from fairtrial.servers import ServerFiles, Source, cache_directory, install, installing, maven

NAMES = ("mariadbd", "mysqld")
NAME = "org.example:server:10.11.99"
PATH = "org/example/server/10.11.99/server-10.11.99.jar"
FILES = {"deep/down/linux/bin/mysqld": PROGRAM, "deep/down/linux/share/errmsg.sys": "words"}


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    digest = publish(tmp_path / "repository", PATH, zipped(FILES))
    with served(tmp_path / "repository") as address:
        monkeypatch.setenv(maven.REPOSITORY_VARIABLE, address)
        yield Source("maven", NAME, digest)


def archive(path: Path, files: dict[str, str]) -> Source:
    path.write_bytes(zipped(files))
    return Source("archive", str(path))


def test_a_server_is_where_its_program_is_wherever_an_archive_keeps_it(source: Source, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    installed = install(source, NAMES, cache=cache)
    assert installed.program == installed.base_directory / "bin/mysqld"
    assert installed.base_directory.parts[-3:] == ("deep", "down", "linux")
    assert installed.archive_sha256 == source.sha256
    assert installed.source == f"maven {NAME}"
    assert os.access(installed.program, os.X_OK)
    assert [path.name for path in cache.iterdir()] == ["maven-org.example_server_10.11.99"], "nothing half-done is left"


def test_a_server_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, synced = tmp_path / "cache", []

    def sync(whole: Path) -> None:
        assert [path.name[:5] for path in cache.iterdir()] == [".new-"]
        synced.extend(path.name for path in whole.rglob("*") if path.is_file())

    monkeypatch.setattr(disks, "sync_around", sync)
    install(archive(tmp_path / "server.zip", FILES), NAMES, cache=cache)
    assert {"mysqld", "errmsg.sys", installing.MANIFEST} <= set(synced)


def test_it_is_fetched_once(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = install(source, NAMES, cache=tmp_path / "cache")
    monkeypatch.setenv(maven.REPOSITORY_VARIABLE, "http://127.0.0.1:1")
    assert install(source, NAMES, cache=tmp_path / "cache") == first


def test_two_who_fetch_it_at_once_get_the_same(source: Source, tmp_path: Path) -> None:
    found: list[ServerFiles] = []
    threads = [
        threading.Thread(target=lambda: found.append(install(source, NAMES, cache=tmp_path / "cache")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len({each.model_dump_json() for each in found}) == 1
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_what_cannot_be_fetched_leaves_nothing(source: Source, tmp_path: Path) -> None:
    wrong = Source("maven", source.name, "0" * 64)
    with pytest.raises(PlaceError, match="does not match its sha256"):
        install(wrong, NAMES, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("harm", ["manifest", "program", "other", "shared"])
def test_what_is_not_what_was_unpacked_is_refused_with_the_way_out(source: Source, tmp_path: Path, harm: str) -> None:
    installed = install(source, NAMES, cache=tmp_path / "cache")
    if harm == "manifest":
        (tmp_path / "cache" / source.slug / installing.MANIFEST).write_text("{}", encoding="utf-8")
    if harm == "program":
        installed.program.unlink()
    if harm == "shared":
        (tmp_path / "cache" / source.slug).chmod(0o777)
    asked = Source("maven", source.name, "0" * 64) if harm == "other" else source
    with pytest.raises(PlaceError, match="differs from what was unpacked there") as refused:
        install(asked, NAMES, cache=tmp_path / "cache")
    assert "remove it" in refused.value.hint
    assert (installed.archive_sha256 in str(refused.value)) == (harm == "other")


@pytest.mark.parametrize("umask", [0, 0o077])
def test_the_umask_decides_neither_who_can_change_a_server_nor_who_can_run_it(tmp_path: Path, umask: int) -> None:
    given = archive(tmp_path / "server.zip", {"s/bin/mysqld": PROGRAM, "s/libs/libaio.so.1": "library"})
    before = os.umask(umask)
    try:
        install(given, NAMES, cache=tmp_path / "shared" / "servers")
    finally:
        os.umask(before)
    shared = tmp_path / "shared"
    for path in (shared, *shared.rglob("*")):
        assert path.stat().st_mode & 0o022 == 0, path
        assert path.stat().st_mode & 0o055 == 0o055 or path.is_file(), path
    assert next(shared.rglob("mysqld")).stat().st_mode & 0o777 == 0o755


def test_an_archive_goes_by_its_content_and_not_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "server.zip"
    one = install(archive(path, {"bin/mariadbd": PROGRAM}), NAMES, cache=tmp_path / "cache")
    two = install(archive(path, {"bin/mariadbd": PROGRAM + "# another\n"}), NAMES, cache=tmp_path / "cache")
    assert one.program != two.program
    assert one.program_sha256 != two.program_sha256


def test_the_preferred_program_nearest_to_the_root_counts(tmp_path: Path) -> None:
    files = {
        "a/b/bin/mariadbd": PROGRAM,
        "a/bin/mariadbd": PROGRAM,
        "bin/mysqld": PROGRAM,
        "share/mariadbd": "no program",
    }
    installed = install(archive(tmp_path / "server.zip", files), NAMES, cache=tmp_path / "cache")
    assert installed.program.parts[-3:] == ("a", "bin", "mariadbd")


def test_an_archive_without_a_server_is_refused_by_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match=r"does not contain mariadbd or mysqld in a directory bin, sbin"):
        install(archive(tmp_path / "client.zip", {"bin/mariadb": PROGRAM}), NAMES, cache=tmp_path / "cache")


def test_an_archive_with_another_hash_than_the_study_says_is_refused_with_its_own(tmp_path: Path) -> None:
    source = archive(tmp_path / "server.zip", {"bin/mariadbd": PROGRAM})
    digest = install(source, NAMES, cache=tmp_path / "cache").archive_sha256
    assert install(Source("archive", source.name, digest), NAMES, cache=tmp_path / "cache").archive_sha256 == digest
    with pytest.raises(PlaceError, match=f"has the SHA-256 {digest}: expected {'0' * 64}"):
        install(Source("archive", source.name, "0" * 64), NAMES, cache=tmp_path / "cache")


def test_an_archive_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match=r"/nowhere/server\.zip does not exist"):
        install(Source("archive", "/nowhere/server.zip"), NAMES, cache=tmp_path / "cache")


def test_the_cache_is_where_servers_of_other_users_can_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert cache_directory() == Path("/var/cache/fairtrial/servers")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/someone/.kept")
    assert cache_directory() == Path("/home/someone/.kept/fairtrial/servers")
    monkeypatch.setenv(CACHE_VARIABLE, "/elsewhere")
    assert cache_directory() == Path("/elsewhere/servers")
