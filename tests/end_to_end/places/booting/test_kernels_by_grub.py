"""Kernels as arms on a real machine of QEMU with a disk, GRUB and sshd, booted by grub.

What needs no machine to restart is in tests/unit/places/boot and tests/unit/run/test_rebooting.py.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

# Emulation boots for half a minute, and a study many times. The cheaper sibling is tests/unit/run/test_rebooting.py.
pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]


def test_two_kernels_are_arms_and_no_boot_brings_up_another_one(alternate: Callable[[str], None]) -> None:
    alternate("grub")
