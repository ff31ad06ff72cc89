"""What each setting takes of root's: what its steps do, and what the kernel takes from a process that has no more."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.facts import facts_of

from fairtrial.catalogue import catalogue
from fairtrial.protocol.generated import Controller, ExecuteAction, Step
from fairtrial.settings import ANY_TRIAL, SETTINGS, effects
from fairtrial.wire.facts import GuestFacts

NOBODY = "65534"
FACTS = facts_of(
    user_id=0,
    guest=GuestFacts(accelerator="kvm", emulated=False),
    controllers={
        name: Controller(version=2, directory="/sys/fs/cgroup", enabled=True) for name in ("cpuset", "io", "memory")
    },
)
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
STAT_INTERVAL = Path("/proc/sys/vm/stat_interval")  # a parameter that no test changes


def taken(step: Step) -> set[str]:
    action: Any = step.action
    if isinstance(action, ExecuteAction):
        is_of_groups = any("cgroup" in word for word in action.argv)
        return {"CAP_DAC_OVERRIDE"} if is_of_groups else {"CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE"}
    if action.kind == "mount":
        return {"CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE"}
    return {"user 0"} if action.path.startswith("/proc/sys/") else {"CAP_DAC_OVERRIDE"}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_says_what_its_steps_take(name: str) -> None:
    kind = catalogue().settings[name]
    value = kind.parameters.dump_python(kind.parameters.validate_python(kind.example), mode="json")
    steps = [step for _phase, step in effects({name: value}, FACTS, ANY_TRIAL).steps]
    found = set().union(*map(taken, steps)) or {"none"}
    assert set(SETTINGS[name].privilege.split(", ")) == found


def writes(path: Path, value: str, *privileges: str) -> bool:
    argv = ["setpriv", "--clear-groups", *privileges, "--", "sh", "-c", 'printf %s "$2" >"$1"', "sh", path, value]
    return subprocess.run(argv, check=False, capture_output=True, env={"PATH": os.environ["PATH"]}).returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give itself up")
def test_the_kernel_takes_a_value_from_whom_the_table_says_and_from_nobody_else() -> None:
    """What is written is what is there already."""
    as_nobody = (f"--reuid={NOBODY}", f"--regid={NOBODY}")
    with_all = (*as_nobody, "--inh-caps=+all", "--ambient-caps=+all")
    without = ("--inh-caps=-all", "--bounding-set=-all")
    interval_s = STAT_INTERVAL.read_text().strip()
    assert writes(STAT_INTERVAL, interval_s, *without)
    assert not writes(STAT_INTERVAL, interval_s, *with_all)
    if not HUGE_PAGES.exists():
        pytest.skip("this kernel has no transparent huge pages")
    word = HUGE_PAGES.read_text().partition("[")[2].partition("]")[0]
    assert writes(HUGE_PAGES, word, *as_nobody, "--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    assert not writes(HUGE_PAGES, word, *as_nobody)
