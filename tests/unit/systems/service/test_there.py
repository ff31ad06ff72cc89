"""A service that is there already: a real Redis, whose options come back whatever they were."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from support.machines.ssh_host import free_port
from support.skips import require

from fairtrial.errors import PlaceError, SystemStartError
from fairtrial.places import open_place
from fairtrial.systems.instance import Instance, Launch
from fairtrial.systems.service import Service, lock
from fairtrial.systems.service.parameters import ServiceAt, ServiceParameters
from fairtrial.wire.agent import Process
from fairtrial.wire.open_place import OpenPlace

pytestmark = pytest.mark.servers
CLIENT = "redis-cli -e -p {redis}"


class Redis:
    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, *words: str) -> str:
        argv = ["redis-cli", "-e", "-p", str(self.port), *words]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    def value(self, name: str) -> str:
        return self.ask("CONFIG", "GET", name).removesuffix("\n").split("\n")[1]


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    require("redis-server")
    port = free_port()
    directory = str(tmp_path_factory.mktemp("redis"))
    argv = ["redis-server", "--port", str(port), "--save", "", "--dir", directory]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as server:
        try:
            while subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True, check=False).returncode:
                time.sleep(0.05)
            yield Redis(port)
        finally:
            server.terminate()


@contextmanager
def place(state: Path) -> Iterator[OpenPlace]:
    with open_place("local", {"state_directory": str(state)}, holder="a test") as agent:
        yield OpenPlace(agent)


def service(redis: Redis, options: dict[str, Any], **more: str) -> Service:
    given = {
        "at": {"host": "127.0.0.1", "ports": {"redis": redis.port}},
        "options": options,
        "read_back": f"{CLIENT} CONFIG GET {{option}}",
        "set_by": f"{CLIENT} CONFIG SET {{option}} {{value}}",
        **more,
    }
    return Service(ServiceParameters.model_validate(given))


WORK = PurePosixPath("/nowhere")


def started(redis: Redis, there: OpenPlace, options: dict[str, Any], **more: str) -> Instance:
    return service(redis, options, **more).start(there, Launch(WORK, WORK, WORK))


@pytest.mark.parametrize("original", ["", " two  words ", 'it\'s "it" $HOME `id` \\n', "é 🎉"])
def test_an_option_comes_back_whatever_it_was(redis: Redis, tmp_path: Path, original: str) -> None:
    redis.ask("CONFIG", "SET", "masterauth", original)
    with place(tmp_path) as there:
        assert started(redis, there, {"masterauth": "ours"}).options == {"masterauth": "ours"}
        assert redis.value("masterauth") == "ours"
        assert there.agent.undo().failed == []
        assert redis.value("masterauth") == original
        assert list((tmp_path / "originals").iterdir()) == [], "it may hold a password"


def test_what_somebody_else_set_after_the_load_stays(redis: Redis, tmp_path: Path) -> None:
    redis.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    with place(tmp_path) as there:
        started(redis, there, {"maxmemory-policy": "allkeys-lru", "timeout": 7})
        redis.ask("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
    assert redis.value("maxmemory-policy") == "volatile-ttl"
    assert redis.value("timeout") == "0"


def test_what_another_arm_sets_is_read_and_not_changed_by_somebody_else(redis: Redis, tmp_path: Path) -> None:
    redis.ask("CONFIG", "SET", "timeout", "3")
    with place(tmp_path) as there:
        as_it_is = service(redis, {"maxmemory": 0})
        instance = as_it_is.start(there, Launch(WORK, WORK, WORK, watched=("timeout", "maxmemory")))
        assert instance.options == {"maxmemory": "0", "timeout": "3"}
        assert as_it_is.disturbance(there, instance) == ""
        redis.ask("CONFIG", "SET", "timeout", "0")
        assert as_it_is.disturbance(there, instance) == "changed by another process during the trial: timeout"
        there.agent.undo()
        for read_back in (None, {"maxmemory": "true"}):
            unread = service(redis, {}).parameters.model_copy(update={"read_back": read_back})
            watching = Launch(WORK, WORK, WORK, watched=("timeout",))
            assert Service(unread).start(there, watching).options == {}, "no command reads it"


def test_an_option_that_is_not_in_effect_as_asked_comes_back(redis: Redis, tmp_path: Path) -> None:
    with place(tmp_path) as there:
        with pytest.raises(SystemStartError, match="maxmemory: expected 100mb, the service reports 104857600"):
            started(redis, there, {"maxmemory": "100mb"})
        there.agent.undo()
        assert redis.value("maxmemory") == "0"


def test_what_a_command_says_beside_the_value_is_not_the_value(redis: Redis, tmp_path: Path) -> None:
    read_back = f"sh -c '{CLIENT} CONFIG GET {{option}}; echo a warning >&2'"
    with place(tmp_path) as there:
        assert started(redis, there, {"timeout": 7}, read_back=read_back).options == {"timeout": "7"}


def test_a_value_that_is_not_text_is_refused_before_it_is_changed(redis: Redis, tmp_path: Path) -> None:
    with place(tmp_path) as there, pytest.raises(SystemStartError, match="timeout: its value is not text"):
        started(redis, there, {"timeout": 7}, read_back="printf 'a\\377b'", set_by="false {option} {value}")


def test_an_option_that_the_service_refuses_is_named_and_those_before_it_come_back(
    redis: Redis, tmp_path: Path
) -> None:
    with place(tmp_path) as there:
        with pytest.raises(SystemStartError, match=r"option maxmemory-policy cannot be set: .*\n.*must be one of"):
            started(redis, there, {"timeout": 7, "maxmemory-policy": "no-such"})
        assert redis.value("timeout") == "7"
        assert there.agent.undo().failed == []
    assert redis.value("timeout") == "0"
    assert list((tmp_path / "originals").iterdir()) == []


def test_a_value_that_is_not_taken_again_is_named_with_the_way_out(redis: Redis, tmp_path: Path) -> None:
    state, file = tmp_path / "state", tmp_path / "value"
    file.write_text("1\n")
    sets = f"sh -c 'test $0 = 1 || echo $0 >{file}' {{value}}"
    with place(state) as there:
        started(redis, there, {"level": 2}, read_back=f"cat {file}", set_by=sets)
        (failed,) = there.agent.undo().failed
        (originals,) = (state / "originals").iterdir()
        assert f"then remove {originals}" in failed
        originals.unlink()
        assert there.agent.undo().failed == []


def held(redis: Redis, there: OpenPlace, host: str = "127.0.0.1") -> dict[str, Process]:
    sessions: dict[str, Process] = {}
    at = ServiceAt(host=host, ports={"any": redis.port})
    lock.hold(there, at, sessions, holder="the first study")
    lock.hold(there, at, sessions, holder="the first study")
    return sessions


def test_one_study_at_a_time_uses_a_service_whatever_their_state_directories(redis: Redis, tmp_path: Path) -> None:
    with place(tmp_path / "first") as first, place(tmp_path / "second") as second:
        assert list(held(redis, first)) == [f"localhost:{redis.port}"]
        with pytest.raises(PlaceError, match=f"another study uses .* localhost:{redis.port}: the first study"):
            held(redis, second, "localhost")
        lock.hold(second, ServiceAt(host="127.0.0.1", ports={"redis": 1}), {}, holder="on another port")
        first.agent.close()
        held(redis, second)


def test_what_a_dead_study_left_changed_is_not_taken_for_the_services_own(redis: Redis, tmp_path: Path) -> None:
    with place(tmp_path / "first") as first:
        held(redis, first)
        started(redis, first, {"timeout": 7})
        shutil.copytree(tmp_path / "first/originals", tmp_path / "kept")
    shutil.copytree(tmp_path / "kept", tmp_path / "first/originals", dirs_exist_ok=True)  # as after SIGKILL
    with place(tmp_path / "second") as second:
        with pytest.raises(PlaceError, match="a study that died has left options") as error:
            held(redis, second)
        restoring = (
            f"`fairtrial doctor '{{local: {{state_directory: {tmp_path}/first}}}}'` restores them; if the place is"
        )
        assert error.value.hint.startswith(restoring)
    with place(tmp_path / "first") as first:
        held(redis, first)


def test_a_place_without_flock_is_told_so(redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "id", "mkdir", "sleep", "tail"):
        (programs / name).symlink_to(shutil.which(name) or "")
    with place(tmp_path / "state") as there:
        monkeypatch.setattr(lock, "LOCK", f"PATH={programs}\n{lock.LOCK}")
        with pytest.raises(PlaceError, match=r"the lock of .* cannot be taken: there is no flock"):
            held(redis, there)
