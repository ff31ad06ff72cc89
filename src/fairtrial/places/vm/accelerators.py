"""Whether KVM works: found out by booting, since a device that can be opened may still not run a kernel."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from fairtrial.errors import PlaceError
from fairtrial.places.vm import kernels
from fairtrial.places.vm.kernels import Kernel
from fairtrial.places.vm.machine import QEMU

KVM = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PROBE_S = 20.0  # a kernel with KVM panics for want of a root in 2 s; one that hangs never does
KNOWN = "kvm.json"
PANIC = b"Kernel panic"


def choose(accelerator: str, kernel: Kernel, *, state: Path) -> str:
    """`kvm` or `tcg`; what a probe found is kept until this machine boots again.

    Raises:
        PlaceError: KVM was asked for and does not work, or there is no QEMU.
    """
    if shutil.which(QEMU) is None:
        raise PlaceError(f"no {QEMU} on this machine", hint="install qemu-system-x86")
    if accelerator == "tcg":
        return "tcg"
    if _works(kernel, state):
        return "kvm"
    if accelerator == "kvm":
        raise PlaceError(
            "KVM does not boot a kernel here", hint="use `accelerator: tcg`, and counts instead of times as metrics"
        )
    return "tcg"


def try_out(*, state: Path) -> None:
    """Finds out whether KVM works with a kernel that is here already, unless that was found out since this boot.

    Does nothing where there is no QEMU, no kernel, or no right or room to keep what was found.
    """
    kernel = kernels.here(state / "kernels") if shutil.which(QEMU) is not None else None
    if kernel is not None:
        with contextlib.suppress(OSError):
            _works(kernel, state)


def _works(kernel: Kernel, state: Path) -> bool:
    if not os.access(KVM, os.R_OK | os.W_OK):
        return False
    known, boot = state / KNOWN, BOOT_ID.read_text(encoding="ascii").strip()
    try:
        results = json.loads(known.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        results = {}
    if results.get("boot") != boot:
        results = {"boot": boot, "kernels": {}}
    if kernel.sha256 not in results["kernels"]:
        results["kernels"][kernel.sha256] = _probe(kernel)
        state.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(results), encoding="ascii")
    return bool(results["kernels"][kernel.sha256])


def _probe(kernel: Kernel) -> bool:
    """Boots the kernel without a root file system: that it says so is the proof."""
    with tempfile.TemporaryFile() as console:
        # timeout(1) ends a guest that hangs even if this process is killed meanwhile.
        limited = ["timeout", "--signal=KILL", f"{PROBE_S:.0f}", QEMU]
        words = ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-machine", "q35", "-m", "256M"]
        words += ["-accel", "kvm", "-cpu", "host", "-serial", "stdio"]
        words += ["-kernel", str(kernel.image), "-append", "console=ttyS0 panic=-1"]
        subprocess.run(
            [*limited, *words], stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.DEVNULL, check=False
        )
        console.seek(0)
        return PANIC in console.read()
