"""Swap for a trial: made, used before any other, read back without its header, and given up."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from pydantic import ValidationError
from support.command_line import shell_program
from support.facts import facts_of
from support.machines.set_here import effect_for, effect_of, validated

from fairtrial.errors import PlaceError
from fairtrial.protocol.generated import WriteAction
from fairtrial.settings import Effect, TrialContext
from fairtrial.settings.steps.context import Load
from fairtrial.settings.steps.shared import shell
from fairtrial.settings.swap import NO_FILE, OFF, SHOW

PATH = "/state/work/abc/swap"


def swapped(value: Any, **facts: Any) -> Effect:
    return effect_of(facts_of(**{"user_id": 0, **facts}), PurePosixPath("/state/work/abc"), swap=value)


def test_a_size_alone_is_that_of_a_file() -> None:
    effect = swapped("64MiB")
    assert [(phase, step.name) for phase, step in effect.steps] == [
        ("before_server", "swap.file"),
        ("before_server", "swap"),
    ]
    made, used = (step.model_dump(mode="json") for _, step in effect.steps)
    assert made["action"]["argv"][-2:] == [PATH, str(64 << 20)]
    assert made["inverse"]["argv"] == shell(NO_FILE, PATH)
    assert used["check"]["expect"] == str(64 * 1024 - 4), "a page is the header"
    assert [need.what for need in effect.needs] == ["mkswap"]


def test_larger_pages_make_a_larger_header() -> None:
    _, (_, used) = swapped("64MiB", page_bytes=65536).steps
    assert used.check is not None
    assert used.check.expect == str(64 * 1024 - 64)


def test_compressed_memory_needs_its_module() -> None:
    effect = swapped({"size": "64MiB", "on": "zram"})
    assert [step.name for _, step in effect.steps] == ["swap.zram", "swap"]
    hints = {need.what: need.hint for need in effect.needs}
    assert "modprobe zram" in hints["/sys/class/zram-control/hot_add"]


def test_who_is_not_root_is_told() -> None:
    with pytest.raises(PlaceError, match=r"settings\.swap needs root"):
        swapped("64MiB", user_id=1000)


@pytest.mark.parametrize("name", ["st ate", "state[1]", "state*", "state.d"])
def test_swap_is_found_whatever_its_path_is(tmp_path: Path, name: str) -> None:
    file, swaps = tmp_path / name, tmp_path / "swaps"
    file.touch()
    others = f"{tmp_path}/stateXd file 9 0 -2\n/dev/sda2 partition 8 0 -3\n"
    spelt = str(file).replace(" ", "\\040")
    swaps.write_text(f"Filename Type Size Used Priority\n{others}{spelt} file 65532 0 32767\n", encoding="utf-8")
    shell_program(tmp_path / "swapoff", f'echo "off $1"\nexit {len(name) % 2}')

    def run(script: str) -> subprocess.CompletedProcess[str]:
        argv = shell(script.replace("/proc/swaps", str(swaps)), str(file))
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        return subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)

    assert run(SHOW).stdout.split() == ["65532"]
    off = run(OFF)
    assert (off.stdout, off.returncode) == (f"off {file}\n", len(name) % 2), "a failure is told"


def test_a_file_stays_as_long_as_it_is_swap(tmp_path: Path) -> None:
    """Else nothing could end it, or see that it is still there."""
    file, swaps, program = tmp_path / "sw ap", tmp_path / "swaps", tmp_path / "swapoff"
    file.touch()
    shell_program(program, "exit 1")

    def undone(*, listed: str) -> list[int]:
        swaps.write_text(f"Filename Type Size Used Priority\n{listed} file 65532 0 32767\n", encoding="utf-8")
        scripts = (script.replace("/proc/swaps", str(swaps)) for script in (OFF, NO_FILE))
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        return [subprocess.run(shell(each, str(file)), check=False, env=environment).returncode for each in scripts]

    spelt = str(file).replace(" ", "\\040")
    assert undone(listed=spelt) == [1, 1]
    assert file.exists()
    program.write_text(f"#!/bin/sh\n: >{swaps}\n", encoding="utf-8")
    assert undone(listed=spelt) == [0, 0]
    assert not file.exists()
    assert undone(listed=f"{spelt}\\040(deleted)") == [1, 0], "an older version removed it"
    assert undone(listed="/dev/sda2") == [0, 0]


@pytest.mark.parametrize("value", [0, "1KiB", 1_500_000, {"size": "1MiB", "on": "disk"}, {"on": "zram"}])
def test_what_is_no_swap_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        validated({"swap": value})


def test_swappiness_is_a_number_that_newer_kernels_take() -> None:
    effect = effect_of(facts_of(user_id=0), PurePosixPath("/t"), swappiness=150)
    ((phase, step),) = effect.steps
    assert phase == "before_server"
    assert step.model_dump(mode="json")["action"] == {
        "kind": "write",
        "path": "/proc/sys/vm/swappiness",
        "value": "150",
    }
    assert step.model_dump(mode="json")["inverse"] == {"kind": "restore"}


@pytest.mark.parametrize("version", [1, 2])
def test_swappiness_reaches_processes_in_groups_of_either_version(version: int) -> None:
    """Groups of version 1 keep the value they were made with, whatever /proc says afterwards."""
    controllers = {"memory": {"version": version, "directory": "/sys/fs/cgroup/memory", "enabled": True}}
    found = effect_of(facts_of(user_id=0, controllers=controllers), PurePosixPath(PATH).parent, swappiness=100)
    written = [step.action.path for _, step in found.steps if isinstance(step.action, WriteAction)]
    assert written[0] == "/proc/sys/vm/swappiness"
    sides = [PurePosixPath(path).parent.name.rsplit("-", 1)[-1] for path in written[1:]]
    assert sides == (["server", "client"] if version == 1 else [])
    assert all(path.endswith("/memory.swappiness") for path in written[1:])
    assert len(found.server_groups) == (1 if version == 1 else 0)


@pytest.mark.parametrize("load", ["within", "elsewhere"])
def test_swappiness_is_the_servers_alone_where_the_load_has_no_group(load: Load) -> None:
    controllers = {"memory": {"version": 1, "directory": "/sys/fs/cgroup/memory", "enabled": True}}
    trial = TrialContext(PurePosixPath(PATH).parent, load=load)
    found = effect_for(trial, facts_of(user_id=0, controllers=controllers), swappiness=100)
    assert (len(found.server_groups), found.client_groups) == (1, ())
