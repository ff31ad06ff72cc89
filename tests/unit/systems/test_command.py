"""A program as the system under test, started by a real agent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support.command_line import eventually, shell_program
from support.machines.places import place_here

from fairtrial.errors import PlaceError, SystemStartError
from fairtrial.record.files import sha256
from fairtrial.systems import Launch, System
from fairtrial.systems.command import CommandSystem, CommandSystemParameters
from fairtrial.systems.files import Files, FilesParameters
from fairtrial.systems.service import Service
from fairtrial.systems.service.parameters import ServiceParameters
from fairtrial.systems.sqlite import Sqlite, SqliteParameters
from fairtrial.wire.open_place import OpenPlace


@pytest.fixture
def place(tmp_path: Path) -> Iterator[OpenPlace]:
    with place_here(tmp_path) as found:
        yield found


def command(**given: Any) -> CommandSystem:
    return CommandSystem(CommandSystemParameters.model_validate(given))


def launch(directory: Path, **given: Any) -> Launch:
    here = PurePosixPath(directory)
    return Launch(data_directory=here, work_directory=here, log_path=here / "server.log", **given)


def test_no_program_is_no_process(place: OpenPlace, tmp_path: Path) -> None:
    assert command().identity(place).sha256 == ""
    instance = command().start(place, launch(tmp_path))
    assert (instance.endpoint, instance.process) == (None, None)
    command().stop(place, instance, settled=False)


@pytest.mark.parametrize("system", [command(), Files(FilesParameters()), Sqlite(SqliteParameters())])
def test_what_has_no_server_works_in_directories_of_the_agents_own_user(place: OpenPlace, system: System[Any]) -> None:
    place.server_user = "nobody"
    assert system.user(place) is None


def test_a_program_is_known_by_its_path_hash_and_own_words(place: OpenPlace) -> None:
    found = command(run="sh -c true", version="echo version 7").identity(place)
    binary = Path(found.facts["binary"])
    assert binary.name == "sh"
    assert found.sha256 == sha256(binary)
    assert found.version == "version 7"


def test_a_missing_program_is_named(place: OpenPlace) -> None:
    with pytest.raises(PlaceError, match="no-such-server") as missing:
        command(run="no-such-server --fast").identity(place)
    assert "install no-such-server" in missing.value.hint


def test_it_is_waited_for_until_its_ready_command_succeeds(place: OpenPlace, tmp_path: Path) -> None:
    script = "echo $COLOUR; sleep 0.2; touch ready; exec sleep 1000"
    given = command(run=f"sh -c '{script}'", ready=f"test -e {tmp_path}/ready")
    instance = given.start(place, launch(tmp_path, environment={"COLOUR": "green"}))
    assert (tmp_path / "ready").exists(), "started in its work directory, and waited for"
    assert (tmp_path / "server.log").read_text() == "green\n"
    assert instance.process is not None
    command().stop(place, instance, settled=False)
    assert instance.process.exited is not None
    assert instance.process.exited.signal == 15


def test_one_that_ends_before_it_is_ready_shows_its_last_lines(place: OpenPlace, tmp_path: Path) -> None:
    given = command(run="sh -c 'echo no licence; exit 3'", ready="false")
    with pytest.raises(SystemStartError, match=r"exited during startup; the end of its log:\nno licence"):
        given.start(place, launch(tmp_path))


def test_one_that_is_never_ready_is_given_up_and_stopped(place: OpenPlace, tmp_path: Path) -> None:
    given = command(run="sh -c 'echo $$ >pid; exec sleep 1000'", ready="false", ready_timeout="8s")
    with pytest.raises(SystemStartError, match="did not answer within 8 s"):
        given.start(place, launch(tmp_path))
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not Path(f"/proc/{pid}").exists(), "the program that was given up still runs")


def test_what_it_started_ends_with_it(place: OpenPlace, tmp_path: Path) -> None:
    given = command(run="sh -c 'sleep 1000 & echo $! >child; wait'", ready=f"test -s {tmp_path}/child")
    instance = given.start(place, launch(tmp_path))
    child = int((tmp_path / "child").read_text())
    assert Path(f"/proc/{child}").exists()
    command().stop(place, instance, settled=False)
    eventually(lambda: not Path(f"/proc/{child}").exists(), "a child of the stopped program still runs")


def test_a_service_is_known_by_the_program_on_its_own_search_path(place: OpenPlace, tmp_path: Path) -> None:
    for number in ("1", "2"):
        shell_program(tmp_path / number / "stored", f"echo version {number}")
    given = {"run": "stored", "version": "stored", "environment": {"PATH": f"{tmp_path}/2"}}
    found = Service(ServiceParameters.model_validate(given)).identity(place)
    assert (found.facts["binary"], found.version) == (f"{tmp_path}/2/stored", "version 2")
    assert found.sha256 == sha256(tmp_path / "2" / "stored")
    through_a_shell = Service(ServiceParameters.model_validate({**given, "version": "sh -c 'stored | cat'"}))
    assert through_a_shell.identity(place).version == "version 2", "its path has no shell"


def test_a_search_path_decides_nothing_beside_a_full_path(place: OpenPlace) -> None:
    given = {"run": "/bin/sh -c true", "version": "sh -c 'echo 2'", "environment": {"PATH": "{work}"}}
    assert Service(ServiceParameters.model_validate(given)).identity(place).version == "2"
