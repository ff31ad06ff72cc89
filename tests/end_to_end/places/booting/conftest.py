"""A host that boots, for each file of tests, so that two of them boot side by side."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator

import pytest
from support.command_line import Desk
from support.machines import booting_host
from support.machines.booting_host import BootingHost, require_default, study

from fairtrial import record
from fairtrial.record.models import PlaceOpened

# What no run may leave changed.
DEFAULT = "cat /boot/grub/grub.cfg /boot/grub/grubenv; ls /boot/grub; cat /proc/cmdline"
BOOTS = 30


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootingHost]:
    for program in ("qemu-system-x86_64", "qemu-img", "mmdebstrap", "sfdisk", "mke2fs"):
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            pytest.skip(f"needs {program}")
    with booting_host.started(booting_host.made(), tmp_path_factory.mktemp("host") / "h") as found:
        yield found


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch, host: BootingHost) -> Iterator[None]:
    monkeypatch.setenv("FAIRTRIAL_LIMITS", "silence_s=30")
    yield
    sys.stderr.write(host.shown())  # pytest shows it of a test that failed


@pytest.fixture
def alternate(here: Desk, host: BootingHost) -> Callable[[str], None]:
    """Boots two kernels in turn by some way, as a study does, and asks whether each trial had its own."""

    def boots(by: str) -> None:
        before = host.run(DEFAULT)
        here.fairtrial("run", study(here, host, by=by, blocks=BOOTS // 2))
        found = record.read(here.run)
        assert len(found.trials) == BOOTS
        assert all(trial.valid for trial in found.trials)
        releases = {"old": host.image.release("6.1"), "new": host.image.release("6.12")}
        builds = {arm: {each.subject["kernel"] for each in found.trials if each.trial.arm == arm} for arm in releases}
        assert len(builds["old"]) == len(builds["new"]) == 1
        assert builds["old"] != builds["new"]
        opened = [event.facts for event in found.events if isinstance(event, PlaceOpened)]
        assert [facts["kernel"] for facts in opened] == [releases[trial.trial.arm] for trial in found.trials]
        assert len({facts["boot"]["build_id"] for facts in opened}) == 2
        assert len({facts["boot"]["boot_id"] for facts in opened}) == BOOTS, "each trial has a boot of its own"
        assert all(facts["boot"]["by"] == by for facts in opened)
        words = [facts["kernel_command_line"].split()[:-1] for facts in opened]
        others = {tuple(word for word in each if not word.startswith("BOOT_IMAGE=")) for each in words}
        assert len(others) == 1, "every arm has the same nets"
        require_default(host)
        assert host.run(DEFAULT) == before

    return boots
