"""A virtual machine on this machine, booting a kernel of its own: afresh for every trial.

Owns kernels, the guest's first file system, QEMU. The guest's agent is the same binary as everywhere.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from pydantic import TypeAdapter

from fairtrial.places import local
from fairtrial.places.vm import accelerators, kernels
from fairtrial.places.vm.guest import Guest
from fairtrial.places.vm.machine import Machine
from fairtrial.places.vm.parameters import VmParameters
from fairtrial.study.catalogue import Kind
from fairtrial.wire import Agent, Limits

BOOT_S = 25.0  # to a ready agent and off again, under emulation

KIND = Kind(
    name="vm",
    summary="A virtual machine on this machine that boots a kernel of its own, afresh for every trial.",
    parameters=TypeAdapter(VmParameters),
    duration_s=lambda _parameters: BOOT_S,
)


def boot(parameters: VmParameters, *, holder: str, lock: bool, keep: bool) -> Guest:
    """Boots a guest; this machine's lock is held until it ends.

    Args:
        parameters: the guest.
        holder: who asks, in words that a refused second user can act upon.
        lock: take this machine's lock.
        keep: whether what the guest writes to its disk stays for later guests: prepared data do, trials do not.

    Raises:
        PlaceError: no QEMU, no such kernel, or the guest did not come up; the message holds its last lines.
    """
    limits = Limits.from_environment()
    beside = local.connect(local.LocalParameters(state_directory=parameters.state_directory), limits)
    host = Agent(beside, holder=holder, lock=lock, limits=limits)
    try:
        state = Path(host.hello.state_directory) / "vm"
        kernel = kernels.find(parameters.kernel, cache=state / "kernels")
        accelerator = accelerators.choose(parameters.asked_accelerator, kernel, state=state)
        running = state / "running"
        if lock:
            shutil.rmtree(running, ignore_errors=True)  # of guests whose control plane was killed
        running.mkdir(parents=True, exist_ok=True)
        machine = Machine(
            parameters=parameters,
            kernel=kernel,
            directory=Path(tempfile.mkdtemp(dir=running)),
            disk=state / f"disk-{parameters.disk}",
            keep=keep,
            accelerator=accelerator,
            limits=limits.emulated() if accelerator == "tcg" else limits,
        )
        return Guest(machine, host)
    except BaseException:
        host.close()
        raise
