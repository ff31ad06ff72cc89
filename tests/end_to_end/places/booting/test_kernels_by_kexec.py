"""Kernels as arms on a real machine of QEMU with a disk, GRUB and sshd, booted by kexec.

What needs no machine to restart is in tests/unit/places/boot and tests/unit/run/test_rebooting.py.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.command_line import Desk
from support.machines.booting_host import BootingHost, study

# Emulation boots for half a minute, and a study many times. The cheaper sibling is tests/unit/run/test_rebooting.py.
pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]


def test_two_kernels_are_arms_and_no_boot_brings_up_another_one(alternate: Callable[[str], None]) -> None:
    alternate("kexec")


def test_doctor_says_which_ways_do_not_work(here: Desk, host: BootingHost) -> None:
    before = host.run("cat /proc/sys/kernel/random/boot_id")
    ended = here.fairtrial("doctor", study(here, host, by="efi"), code=3)
    assert "this host has no UEFI firmware" in ended.stdout
    assert "what works on this host: `by: kexec`, `by: grub`" in " ".join(ended.stdout.split())
    assert host.run("cat /proc/sys/kernel/random/boot_id") == before, "looking boots nothing"
