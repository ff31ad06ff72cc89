"""What a record says of settings is the same in every trial, and a server that was moved is found out."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.facts import EMULATED, facts_of
from support.machines.places import place_here, place_in_memory
from support.machines.set_here import effect_of

from fairtrial.errors import PlaceError, SystemStartError
from fairtrial.protocol import generated as wire
from fairtrial.run.trial import read_back
from fairtrial.settings.steps.shared import program, trigger, write_file
from fairtrial.wire.fake import FakeProgram

FACTS = facts_of(user_id=0, guest=EMULATED)
STILL_S = 10


def test_what_was_asked_is_what_must_read_back() -> None:
    assert read_back.expectation(write_file("/f", "5", name="f", normalise="trim"), trial="abc") == "5"
    assert read_back.expectation(trigger("/proc/sys/vm/drop_caches", "3", name="drop_caches"), trial="abc") == ""


def test_how_a_file_system_was_made_is_told_and_scripts_are_not() -> None:
    steps: dict[str, dict[str, str]] = {}
    for trial in ("a1b2", "c3d4"):
        effect = effect_of(FACTS, Path("/state/work") / trial, storage={"device": "file", "size": "1GiB"})
        steps[trial] = {step.name: read_back.expectation(step, trial=trial) for _, step in effect.steps}
    assert steps["a1b2"] == steps["c3d4"], "a record shall not differ where trials do not"
    assert steps["a1b2"]["storage.mkfs"] == "mkfs.xfs -q -f -m reflink=0 /state/work/TRIAL/storage.device"
    assert steps["a1b2"]["storage.loop"] == ""
    assert steps["a1b2"]["storage.mount"] == "xfs"
    assert read_back.expectation(program(["mkswap", "/dev/a"], name="it"), trial="abc") == "mkswap /dev/a"


def test_processors_are_read_from_the_process(tmp_path: Path) -> None:
    with place_here(tmp_path) as place:
        process = place.agent.spawn("server", ["sleep", "600"], processors=[0])
        found = read_back.affinity(place, process.pid, (0,))
        assert (found.asked, found.read_back) == ("0", "0")
        with pytest.raises(PlaceError, match=r"may use processors 0, asked were \(1,\)"):
            read_back.affinity(place, process.pid, (1,))


def test_a_server_that_has_ended_is_in_no_wrong_place(tmp_path: Path) -> None:
    wrong = PlaceError("it is in no group", hint="none")
    with place_here(tmp_path) as place:
        read_back.require_alive(place, place.agent.spawn("server", ["sleep", "600"]), wrong)
        ended = place.agent.spawn("server", ["sh", "-c", "exit 3"])
        ended.wait()
        with pytest.raises(SystemStartError, match=r"ended as soon as it had started \(exit code 3\)"):
            read_back.require_alive(place, ended, wrong)


def test_the_word_of_an_end_may_come_as_late_as_a_machine_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    with place_in_memory(lambda spawn: FakeProgram(code=None if spawn.name == "server" else 1)) as (place, fake):
        server = place.agent.spawn("server", ["mysqld"])
        wait = server.wait

        def waited(limit_s: float) -> wire.Exited:
            if limit_s < STILL_S:
                raise TimeoutError
            fake.end(0, signal=9)
            return wait(limit_s)

        monkeypatch.setattr(server, "wait", waited)
        with pytest.raises(SystemStartError, match="ended as soon as it had started"):
            read_back.require_alive(place, server, PlaceError("it is in no group", hint="none"))


def test_a_process_is_looked_for_in_every_group(tmp_path: Path) -> None:
    groups = [str(tmp_path / name) for name in ("memory", "blkio")]
    for path in groups:
        Path(path).mkdir()
        (Path(path) / "cgroup.procs").write_text("12\n123\n1234\n")
    with place_here(tmp_path) as place:
        found = read_back.groups(place, 123, groups)
        assert found.read_back == " ".join(groups)
        (tmp_path / "blkio/cgroup.procs").write_text("1234\n")
        with pytest.raises(PlaceError, match="not in the control groups") as refused:
            read_back.groups(place, 123, groups)
    assert groups[1] in str(refused.value)
    assert groups[0] not in str(refused.value)


def test_the_name_of_a_trials_directory_stands_in_no_record() -> None:
    path = "/sys/fs/cgroup/fairtrial-abc-server"
    with place_in_memory(lambda _spawn: FakeProgram(stdout=[f"{path}/cgroup.procs"])) as (place, _):
        found = read_back.of_any_trial(read_back.groups(place, 5, [path]), trial="abc")
    assert found.asked == found.read_back == "/sys/fs/cgroup/fairtrial-TRIAL-server"
