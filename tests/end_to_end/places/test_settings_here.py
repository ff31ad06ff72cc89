"""Storage, swap and control groups on this machine: in effect, read back, felt by a process, and gone afterwards."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import Desk, eventually
from support.machines.left_behind import has_controller, left_behind
from support.machines.machine import alone_with
from support.machines.set_here import apply, effect_of, phases_of, ran, seconds

from fairtrial.errors import AgentError, PlaceError
from fairtrial.places import open_place
from fairtrial.run.trial.workspace import work_directory
from fairtrial.wire.open_place import OpenPlace

MIB = 1 << 20
SIZE = {"device": "file", "size": "320MiB"}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts, swap and control groups need root")


@pytest.fixture
def trial(here: Desk) -> Iterator[Path]:
    """A trial's directory; nothing of its name may be left."""
    directory = here.state / "work" / uuid.uuid4().hex[:12]
    yield directory
    assert left_behind(directory.name) == []


def opened(here: Desk) -> OpenPlace:
    agent = open_place("local", {"state_directory": str(here.state)}, holder="this test")
    return OpenPlace(agent=agent)


@pytest.fixture
def place(here: Desk, trial: Path) -> Iterator[OpenPlace]:  # noqa: ARG001 - torn down before what it leaves is looked for
    found = opened(here)
    with found.agent:
        yield found


def needs(place: OpenPlace, *controllers: str, version: int | None = None) -> None:
    if not has_controller(place.facts, *controllers, version=version):
        pytest.skip(f"no controllers {controllers} of version {version or 'any'} on this machine")


def needs_loop() -> None:
    if not Path("/dev/loop-control").exists():
        pytest.skip("no loop devices on this machine")


@pytest.mark.parametrize(
    "pair",
    [
        ("dirty_bytes", "dirty_ratio"),
        ("dirty_background_bytes", "dirty_background_ratio"),
        ("overcommit_kbytes", "overcommit_ratio"),
    ],
)
def test_a_parameter_that_zeroes_its_partner_is_undone_through_it(
    place: OpenPlace, trial: Path, pair: tuple[str, str]
) -> None:
    value, name = 1 << 30, pair[0]
    files = [Path("/proc/sys/vm") / each for each in pair]
    with alone_with("vm"):
        before = [file.read_text(encoding="utf-8") for file in files]
        apply(place, trial, sysctl={f"vm.{name}": value})
        assert [file.read_text(encoding="utf-8") for file in files] == [f"{value}\n", "0\n"]
        undone = place.agent.undo()
        assert (undone.failed, undone.disturbed) == ([], [])
        assert [file.read_text(encoding="utf-8") for file in files] == before


@pytest.mark.parametrize("kind", ["xfs", "ext4"])
def test_a_file_is_a_file_system_of_the_trials_own(place: OpenPlace, trial: Path, kind: str) -> None:
    needs_loop()
    effect, read_back = apply(place, trial, storage={**SIZE, "file_system": kind, "mount": "noatime"})
    assert read_back["storage.mount"] == f"{kind} noatime"
    assert effect.data_directory is not None
    found = place.require(["findmnt", "-n", "-o", "FSTYPE,OPTIONS", "-T", str(effect.data_directory)], hint="")
    assert found.split()[0] == kind
    assert "noatime" in found
    place.require(["sh", "-c", f"echo kept >{effect.data_directory}/file"], hint="")
    undone = place.agent.undo()
    assert (undone.failed, undone.disturbed) == ([], [])
    assert left_behind(trial.name) == []
    assert list(trial.iterdir()) == []


def test_an_option_that_the_kernel_drops_is_an_error_and_nothing_stays(place: OpenPlace, trial: Path) -> None:
    needs_loop()
    with pytest.raises(AgentError, match=r"storage\.mount: expected .*noquota,nothing_such|wrong fs type|bad option"):
        apply(place, trial, storage={**SIZE, "file_system": "ext4", "mount": "noquota,nothing_such"})
    place.agent.undo()
    with pytest.raises(AgentError, match=r"storage\.mount: expected \"ext4 strictatime\", found \"ext4 rw"):
        apply(place, trial, storage={**SIZE, "file_system": "ext4", "mount": "strictatime"})
    assert place.agent.undo().failed == []


def test_a_file_system_in_memory_has_its_size(place: OpenPlace, trial: Path) -> None:
    effect, _ = apply(place, trial, storage={"device": "memory", "size": "8MiB"})
    size = place.require(["findmnt", "-n", "-b", "-o", "SIZE", "-T", str(effect.data_directory)], hint="")
    assert int(size) == 8 * MIB


def test_swap_in_a_file_is_there_for_the_trial(place: OpenPlace, trial: Path) -> None:
    with alone_with("swap"):
        _, read_back = apply(place, trial, swap="8MiB")
        assert read_back["swap"] == str(8 * 1024 - 4)
        (line,) = [line for line in Path("/proc/swaps").read_text().splitlines() if trial.name in line]
        assert line.split()[1] == "file"
        assert place.agent.undo().failed == []
        assert not (trial / "swap").exists()


def test_swap_in_compressed_memory_is_there_for_the_trial(place: OpenPlace, trial: Path) -> None:
    if not Path("/sys/class/zram-control").exists():
        pytest.skip("no zram on this machine")
    devices = lambda: sorted(path.name for path in Path("/sys/block").glob("zram*"))  # noqa: E731
    with alone_with("swap"):
        before = devices()
        _, read_back = apply(place, trial, swap={"size": "8MiB", "on": "zram"})
        assert read_back["swap"] == str(8 * 1024 - 4)
        (added,) = set(devices()) - set(before)
        assert f"/dev/{added} " in Path("/proc/swaps").read_text()
        assert place.agent.undo().failed == []
        assert devices() == before


def test_a_process_that_needs_more_memory_than_its_group_has_is_killed(place: OpenPlace, trial: Path) -> None:
    needs(place, "memory")
    effect, read_back = apply(place, trial, memory=32 * MIB + 100)
    assert read_back["memory.server.limit"] == str(32 * MIB)
    (group,) = effect.server_groups
    hungry = ["dd", "if=/dev/zero", "of=/dev/null", f"bs={64 * MIB}", "count=1"]
    assert ran(place, hungry, groups=effect.server_groups)[:2] == (None, signal.SIGKILL)
    assert ran(place, hungry)[:2] == (0, None), "who is not in the group is not limited"
    _, _, shown = ran(place, ["cat", "/proc/self/cgroup"], groups=effect.server_groups)
    assert any(line.endswith(f"/{Path(group).name}") for line in shown.splitlines())


def test_a_group_ends_with_what_still_runs_in_it(place: OpenPlace, trial: Path) -> None:
    needs(place, "memory")
    effect, _ = apply(place, trial, memory="64MiB")
    stubborn = place.agent.spawn("server", ["sh", "-c", 'trap "" TERM; sleep 1000'], groups=effect.server_groups)
    assert place.agent.undo().failed == []
    assert stubborn.wait(place.limits.short_s).signal == signal.SIGKILL
    assert left_behind(trial.name) == []


def test_a_limit_that_somebody_else_moves_is_noticed(place: OpenPlace, trial: Path) -> None:
    needs(place, "memory")
    effect, _ = apply(place, trial, memory="64MiB")
    (limit,) = [step for _, step in effect.steps if step.name == "memory.server.limit"]
    path = Path(limit.model_dump()["action"]["path"])
    path.write_text(str(48 * MIB))
    undone = place.agent.undo()
    assert (undone.failed, undone.disturbed) == ([], ["memory.server.limit"])


def test_a_group_that_is_not_there_is_no_start_outside_of_it(place: OpenPlace) -> None:
    with pytest.raises(AgentError, match=r"cgroup\.procs"):
        place.agent.spawn("server", ["true"], groups=["/sys/fs/cgroup/none-such"])


@pytest.mark.parametrize("stored", [False, True], ids=["state-directory", "own-storage"])
def test_the_device_that_holds_the_data_is_limited(place: OpenPlace, trial: Path, *, stored: bool) -> None:
    needs(place, "blkio" if "io" not in place.facts.controllers else "io")
    more: dict[str, Any] = {"storage": {**SIZE, "file_system": "ext4"}} if stored else {}
    if stored:
        needs_loop()
    try:
        effect, read_back = apply(place, trial, io_limit={"write_bytes_per_s": "4MiB"}, **more)
    except AgentError as error:
        if "no block device" in str(error):
            pytest.skip(str(error))
        raise
    assert any("4194304" in value for value in read_back.values())
    target = f"{effect.data_directory or trial / 'data'}/file"
    direct = ["dd", "if=/dev/zero", f"of={target}", "bs=1M", "count=8", "oflag=direct"]
    code, _, told = ran(place, direct, groups=effect.server_groups)
    assert code == 0
    assert seconds(told) > 1.0, "8 MiB at 4 MiB a second"
    (group,) = effect.server_groups
    charged = written(group)
    assert charged >= 8 * MIB
    assert ran(place, direct)[0] == 0
    assert written(group) < charged + 8 * MIB, "who is not in the group is not limited"


def written(group: str) -> int:
    """Bytes that a control group's processes have written to block devices, as the kernel counts what it limits."""
    counts = [("blkio.throttle.io_service_bytes", r"Write (\d+)"), ("io.stat", r"wbytes=(\d+)")]  # by version
    texts = [(Path(group) / name, pattern) for name, pattern in counts]
    return sum(int(each) for file, pattern in texts if file.exists() for each in re.findall(pattern, file.read_text()))


def test_a_node_binds_processors_and_memory(place: OpenPlace, trial: Path) -> None:
    needs(place, "cpuset")
    node = min(place.facts.nodes)
    effect, _ = apply(place, trial, numa={"server": int(node)})
    _, _, status = ran(place, ["cat", "/proc/self/status"], groups=effect.server_groups)
    assert ["Mems_allowed_list:", node] in [line.split() for line in status.splitlines()]


# It is told its steps: a controller that works them out loads all kinds of everything, a second of a processor.
KILLED = """
    import json, sys, time
    from fairtrial.places import open_place
    from fairtrial.protocol.generated import Step
    from fairtrial.wire.open_place import OpenPlace
    told = json.loads(sys.argv[1])
    place = OpenPlace(agent=open_place("local", {}, holder="one that will be killed"))
    for directory, steps in told["phases"]:
        place.require(["mkdir", "-p", directory], hint="is there room?")
        for step in steps:
            place.agent.change(Step.model_validate(step))
    place.agent.spawn("server", ["sleep", "1000"], groups=told["groups"], directory=told["directory"])
    print("ready", flush=True)
    time.sleep(1000)
"""
WHOLE = "when all is applied"


def everything(place: OpenPlace) -> dict[str, Any]:
    needs_loop()
    settings: dict[str, Any] = {"storage": SIZE, "swap": "8MiB"}
    if has_controller(place.facts, "memory"):
        settings["memory"] = "256MiB"
    if has_controller(place.facts, "cpuset"):
        settings["numa"] = {"server": int(min(place.facts.nodes))}
    return settings


@pytest.mark.parametrize("victim", ["controller", "agent"])
@pytest.mark.parametrize(
    "look", [WHOLE, "storage.image", "storage.device", "/proc/self/mounts", "/proc/swaps", "group"]
)
def test_a_kill_at_any_instant_leaves_nothing(
    here: Desk, trial: Path, monkeypatch: pytest.MonkeyPatch, *, victim: str, look: str
) -> None:
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "lock_s=60")  # the killed one's agent may still hold the place
    first = opened(here)
    with first.agent:
        settings = everything(first)
    if look == "group" and "memory" not in settings:
        pytest.skip("no groups on this machine")
    effect = effect_of(first.facts, trial, **settings)
    told = {
        "phases": [
            (str(needed), [step.model_dump(mode="json") for step in steps])
            for needed, steps in phases_of(effect, trial)
        ],
        "groups": effect.server_groups,
        "directory": str(effect.data_directory),
    }
    argv = [sys.executable, "-c", textwrap.dedent(KILLED), json.dumps(told)]
    with (
        alone_with("swap"),
        subprocess.Popen(argv, env=here.environment, stdout=subprocess.PIPE, start_new_session=True) as controller,
    ):
        try:
            wait_for(look, controller, trial)
            if victim == "agent":
                os.kill(here.agent_pid(), signal.SIGKILL)
        finally:
            controller.kill()
        eventually(lambda: not here.processes() or victim == "agent", "processes stayed")
        following = opened(here)
        with following.agent:
            assert following.agent.hello.leftovers.failed == []
            assert left_behind(trial.name) == []
            assert [path.name for path in trial.glob("*") if path.name.startswith(("storage", "swap"))] == []
            assert set(here.processes()) == {here.agent_pid()}


def wait_for(look: str, controller: subprocess.Popen[bytes], trial: Path) -> None:
    """Returns in the midst of applying, as soon as something is there; or when everything is."""
    assert controller.stdout is not None
    if look == WHOLE:
        assert controller.stdout.readline() == b"ready\n"
        return
    there = {
        "storage.image": (trial / "storage.image").exists,
        "storage.device": (trial / "storage.device").is_symlink,
        "/proc/swaps": lambda: trial.name in Path("/proc/swaps").read_text(),
        "group": lambda: list(Path("/sys/fs/cgroup").glob(f"*/fairtrial-{trial.name}-*")),
        "/proc/self/mounts": lambda: trial.name in Path("/proc/self/mounts").read_text(),
    }[look]
    eventually(there, f"{look} was never there")


STUDY = """\
study: settings-here
system: {sqlite: {}}
workload: {oltp: {profile: write_only, table_size: 500, ramp_up: 0s, transactions: 50, rate: 50, interval: 100ms}}
factors:
  storage:
    disk: {settings: {storage: {device: file, size: 320MiB, mount: noatime}}}
    memory: {settings: {storage: {device: memory, size: 64MiB}}}
arm: storage
trials: {blocks: 1, seed: 5}
metrics: {primary: throughput_tps}
"""


def test_a_study_compares_what_its_data_lie_on(here: Desk) -> None:
    needs_loop()
    here.fairtrial("run", here.study(STUDY))
    trials = [json.loads(path.read_text()) for path in sorted(here.run.glob("trials/*/trial.json"))]
    assert [trial["valid"] for trial in trials] == [True, True]
    mounted = {
        trial["trial"]["arm"]: [
            each["read_back"].strip() for each in trial["effective"] if each["name"] == "storage.mount"
        ]
        for trial in trials
    }
    assert mounted == {"disk": ["xfs noatime"], "memory": ["tmpfs"]}
    assert len({trial["data"]["content_sha256"] for trial in trials}) == 1
    assert {trial["data"]["restored"]["method"] for trial in trials} == {"sparse_copy"}
    here.fairtrial("verify", here.run)
    assert nothing_of(here)


@pytest.mark.waits
@pytest.mark.parametrize("victim", ["controller", "agent"])
def test_a_run_that_is_killed_in_a_drive_leaves_nothing_and_goes_on(here: Desk, victim: str) -> None:
    needs_loop()
    study = here.study(
        STUDY.replace("transactions: 50, rate: 50", "transactions: 160, think_time: 50ms") + "settings: {swap: 8MiB}\n"
    )
    with alone_with("swap"):
        running = here.start("run", study)
        eventually(lambda: drives(here), "no drive began")
        assert str(here.state) in Path("/proc/self/mounts").read_text()
        assert str(here.state) in Path("/proc/swaps").read_text()
        if victim == "controller":
            os.kill(running.pid, signal.SIGKILL)
            running.communicate()
            eventually(lambda: not here.processes(), "processes stayed")
            assert nothing_of(here)
            here.fairtrial("run", "--resume", here.run)
        else:
            os.kill(here.agent_pid(), signal.SIGKILL)
            output, _ = running.communicate()
            assert running.returncode == 0, output
    assert nothing_of(here)
    trials = [json.loads(path.read_text()) for path in here.run.glob("trials/*/trial.json")]
    assert len([trial for trial in trials if trial["valid"]]) >= 2
    assert len([trial for trial in trials if not trial["valid"]]) == (victim == "agent")


def drives(here: Desk) -> list[str]:
    return [line for line in here.processes().values() if line.startswith("fairtrial-agent oltp-drive")]


def nothing_of(here: Desk) -> bool:
    """Whether nothing is mounted or swapped to below a desk's state."""
    loops = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
    return str(here.state) not in Path("/proc/self/mounts").read_text() + Path("/proc/swaps").read_text() + loops


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("storage: {device: /dev/vda}", "/dev/vda is not formatted at this place: it could hold somebody's data"),
        ("storage: {device: pmem}", "is not formatted at this place"),
        ("numa: {server: 77}", "this place has no nodes [77]"),
    ],
)
def test_what_this_place_cannot_do_stops_a_run_before_its_first_trial(here: Desk, setting: str, says: str) -> None:
    text = STUDY.replace("storage: {device: memory, size: 64MiB}", setting)
    refused = here.fairtrial("run", here.study(text), code=3)
    assert says in " ".join(refused.stderr.split())
    assert not list((here.run / "trials").iterdir())


def test_protection_by_groups_of_version_1_is_refused_with_the_way_out(here: Desk, place: OpenPlace) -> None:
    needs(place, "memory", version=1)
    with pytest.raises(PlaceError, match=r"memory\.client: min is not in control groups of version 1"):
        apply(place, here.state / "work" / "t", memory={"client": {"min": "64MiB"}})


SERVED = """\
study: server-within
system: {mariadb: {options: {innodb_buffer_pool_size: 16M}}}
workload: {oltp: {profile: write_only, table_size: 500, ramp_up: 0s, transactions: 50, rate: 50, interval: 100ms}}
settings: {memory: 512MiB, swap: 8MiB}
factors:
  storage:
    xfs: {settings: {storage: {device: file, size: 512MiB}}}
    ext4: {settings: {storage: {device: file, size: 512MiB, file_system: ext4}}}
arm: storage
trials: {blocks: 1, seed: 5}
metrics: {primary: throughput_tps}
"""


def test_a_server_works_as_its_own_user_on_a_device_of_the_trials_within_its_memory(
    here: Desk, place: OpenPlace
) -> None:
    needs_loop()
    needs(place, "memory")
    if shutil.which("mariadbd", path=os.environ.get("PATH", "") + ":/usr/sbin") is None:
        pytest.skip("no mariadbd on this machine")
    place.agent.close()
    with alone_with("swap"):
        here.fairtrial("run", here.study(SERVED))
    for path in sorted(here.run.glob("trials/*/trial.json")):
        trial = json.loads(path.read_text())
        assert trial["valid"], trial["invalid_reason"]
        read_back = {each["name"]: (each["read_back"] or "").strip() for each in trial["effective"]}
        asked = {each["name"]: each["asked"] for each in trial["effective"]}
        assert asked["storage.mkfs"].startswith(f"mkfs.{trial['trial']['arm']} "), "how it was made is in the record"
        assert read_back["memory.server.limit"] == str(512 * MIB)
        assert read_back["storage.mount"] == trial["trial"]["arm"]
        assert read_back["groups.server"].endswith("fairtrial-TRIAL-server"), "the running server was found in it"
        assert trial["scalars"]["throughput_tps"] > 0
        assert left_behind(work_directory(place, here.run.name, trial["trial"]["id"]).name) == []
    assert nothing_of(here)
