"""Kernels as arms on a real machine of QEMU with a disk, GRUB and sshd.

What needs no machine to restart is in tests/unit/places/boot and tests/unit/run/test_rebooting.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.command_line import Desk
from support.machines.booting_host import BootingHost, require_default, study

from fairtrial import record
from fairtrial.record import Record
from fairtrial.record.models import PlaceOpened

# Emulation boots for half a minute, and a study many times. The cheaper sibling is tests/unit/run/test_rebooting.py.
pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]

# What no run may leave changed.
DEFAULT = "cat /boot/grub/grub.cfg /boot/grub/grubenv; ls /boot/grub; cat /proc/cmdline"


def openings(found: Record) -> list[dict[str, Any]]:
    """Facts of the host at every opening, in order."""
    return [event.facts for event in found.events if isinstance(event, PlaceOpened)]


@pytest.mark.parametrize("boots", [("kexec", 15), ("grub", 15)], ids=["kexec", "grub"])
def test_two_kernels_are_arms_and_no_boot_brings_up_another_one(
    here: Desk, host: BootingHost, boots: tuple[str, int]
) -> None:
    by, blocks = boots
    before = host.run(DEFAULT)
    here.fairtrial("run", study(here, host, by=by, blocks=blocks))
    found = record.read(here.run)
    assert len(found.trials) == 2 * blocks
    assert all(trial.valid for trial in found.trials)
    releases = {"old": host.image.release("6.1"), "new": host.image.release("6.12")}
    builds = {arm: {trial.subject["kernel"] for trial in found.trials if trial.trial.arm == arm} for arm in releases}
    assert len(builds["old"]) == len(builds["new"]) == 1
    assert builds["old"] != builds["new"]
    opened = openings(found)
    assert [facts["kernel"] for facts in opened] == [releases[trial.trial.arm] for trial in found.trials]
    assert len({facts["boot"]["build_id"] for facts in opened}) == 2
    assert len({facts["boot"]["boot_id"] for facts in opened}) == 2 * blocks, "each trial has a boot of its own"
    assert all(facts["boot"]["by"] == by for facts in opened)
    words = {tuple(facts["kernel_command_line"].split()[:-1]) for facts in opened}
    assert len(words) == 1, "every arm has the same nets"
    require_default(host)
    assert host.run(DEFAULT) == before


def test_doctor_says_which_ways_do_not_work(here: Desk, host: BootingHost) -> None:
    before = host.run("cat /proc/sys/kernel/random/boot_id")
    ended = here.fairtrial("doctor", study(here, host, by="efi"), code=3)
    assert "this host has no UEFI firmware" in ended.stdout
    assert "what works on this host: `by: kexec`, `by: grub`" in " ".join(ended.stdout.split())
    assert host.run("cat /proc/sys/kernel/random/boot_id") == before, "looking boots nothing"
