"""What settings of a trial could leave on this machine: looked for by the trial's name, whoever made it."""

from __future__ import annotations

import glob
import os
import subprocess
from pathlib import Path

from fairtrial.wire.facts import Facts

NULL_BLK = Path("/sys/kernel/config/nullb")


def left_behind(name: str) -> list[str]:
    """Mounts, swaps, devices and control groups with the name of a trial's directory in theirs, in words."""
    found = [line for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines() if name in line]
    found += [line for line in Path("/proc/swaps").read_text(encoding="utf-8").splitlines() if name in line]
    if os.geteuid() == 0 and Path("/dev/loop-control").exists():
        loops = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True).stdout
        found += [line for line in loops.splitlines() if name in line]
    groups = [f"/sys/fs/cgroup/{top}fairtrial-{name}-*" for top in ("*", "*/*")]
    found += [path for each in groups for path in glob.glob(each)]  # noqa: PTH207 - that one fails if a group goes
    found += [str(path) for path in Path("/dev/mapper").glob(f"*{name}*")]
    if NULL_BLK.is_dir():
        found += [str(path) for path in NULL_BLK.glob(f"*{name}*")]
    return found


def has_controller(facts: Facts, *names: str, version: int | None = None) -> bool:
    """Whether a place has these controllers of control groups, of that version."""
    known = facts.controllers
    return all(name in known and version in (None, known[name].version) for name in names)
