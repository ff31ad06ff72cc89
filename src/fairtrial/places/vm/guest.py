"""A guest that runs: QEMU as a process of this machine's agent, which ends it whatever happens to the control plane."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from fairtrial.errors import PlaceError, StreamLostError
from fairtrial.places.vm import machine as machines
from fairtrial.places.vm import modules
from fairtrial.places.vm.images import FORMAT
from fairtrial.places.vm.initial import write
from fairtrial.places.vm.machine import CONSOLE, INITIAL, SOCKET, SWAP, Machine
from fairtrial.places.vm.parameters import VmParameters
from fairtrial.protocol.generated import Boot, BootMount
from fairtrial.wire import Agent, Limits, Process, find_agent
from fairtrial.wire.facts import GuestFacts

LOOK_EVERY_S = 0.02
READ_BYTES = 256 * 1024
OFF_KEPT_S = 900.0  # what was prepared is written out by then, through a disk that the study may hold back
KILL_S = 10.0
MKSWAP_S = 60.0
READY = "fairtrial: ready"  # crates/agent/src/boot
REASONS = ("Kernel panic", "Out of memory")  # what registers and a call trace may have pushed away
LINES_SAID = 12  # of the console, when a guest has failed
CONSOLE_BYTES = 1 << 20  # that are looked at: a guest prints what it likes
STATE = "/var/lib/fairtrial"  # in the guest
DATA, SWAP_DEVICE = "/dev/vda", "/dev/vdb"
FILE_SYSTEM = "xfs"
MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay", "virtio_blk", "virtio_rng")
MODULES_OF_DISK = ("crc32c_generic", FILE_SYSTEM)  # checksums are no dependency that a module names
BESIDES = ("ext4", "dm_mod", "dm_delay", "dm_flakey", "null_blk", "zram", "loop")
MODULES_OF_PMEM = ("nd_e820", "nd_pmem", "dax_pmem")


class CarrierFacts(BaseModel):
    """What a guest runs on: the agent of its machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent_sha256: str


class VmFacts(GuestFacts):
    """How a guest is run. Attributes: what its kernel came from, that kernel's hash, QEMU's arguments, its machine."""

    kernel_source: str
    kernel_sha256: str
    qemu: list[str]
    host: CarrierFacts


class Guest:
    """A running guest; the transport of its agent's stream.

    Attributes:
        host: this machine's agent, which holds QEMU and the lock; closed with the guest.
    """

    def __init__(self, machine: Machine, host: Agent) -> None:
        self.host = host
        self._machine = machine
        self._closed = False
        self._said = ""
        self._qemu_said: deque[str] = deque(maxlen=LINES_SAID)
        try:
            self._content_sha256 = _furnish(machine)
            self._qemu: Process = host.spawn(
                "qemu",
                machines.argv(machine),
                directory=str(machine.directory),
                environment={"PATH": os.environ.get("PATH", "")},  # the user's own QEMU, where there are two
                on_line=lambda _stream, line: self._qemu_said.append(line),
            )
        except BaseException:
            shutil.rmtree(machine.directory, ignore_errors=True)
            raise
        self._socket = socket.socket(socket.AF_UNIX)
        self._writing = threading.Lock()
        try:
            self._await(self._connects, what="QEMU did not start")
            self._await(lambda: READY in self._console(), what=f"{machine.kernel.source} did not boot")
        except BaseException:
            with contextlib.suppress(PlaceError):  # what went wrong first is the news
                self._qemu.stop(KILL_S)  # who has not come up hears of no stream's end
            self.close()
            raise

    @property
    def limits(self) -> Limits:
        """Those of its agent's stream, which that agent keeps as well."""
        return self._machine.limits

    def facts(self) -> VmFacts:
        """How the guest is run."""
        machine = self._machine
        return VmFacts(
            accelerator=machine.accelerator,
            emulated=machine.accelerator == "tcg",
            content_sha256=self._content_sha256,
            kernel_source=machine.kernel.source,
            kernel_sha256=machine.kernel.sha256,
            qemu=machines.argv(machine),
            host=CarrierFacts(agent_sha256=self.host.hello.agent_sha256),
        )

    def read(self) -> bytes:
        """Waits for bytes; b"" at the end of the stream or after `close`."""
        try:
            return self._socket.recv(READ_BYTES)
        except OSError:
            return b""

    def write(self, data: bytes) -> None:
        """Writes all of it.

        Raises:
            OSError: the guest is gone, or `close` was called.
        """
        with self._writing:  # a ping of another thread must not land inside a file's chunk
            self._socket.sendall(data)

    def close(self) -> None:
        """Ends the stream, waits until the guest has switched itself off, and removes its files."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        try:
            with contextlib.suppress(PlaceError):
                self._end()
        finally:
            self._said = self._last_words()
            self.host.close()
            shutil.rmtree(self._machine.directory, ignore_errors=True)

    def said(self) -> str:
        """The console's last lines and what QEMU said."""
        return self._said if self._closed else self._last_words()

    def _end(self) -> None:
        try:
            self._qemu.wait(OFF_KEPT_S if self._machine.keep else self.limits.off_s)
        except TimeoutError:
            self._qemu.stop(KILL_S)

    def _await(self, arrived: Callable[[], bool], *, what: str) -> None:
        limit = time.monotonic() + self.limits.boot_s
        while not arrived():
            # A guest that came up before is expected to: one failure costs a trial's place in the queue, not the run.
            failure = PlaceError if self._machine.keep else StreamLostError
            if self._qemu.exited is not None:
                raise failure(f"{what}:\n{self._last_words()}", hint="the guest's last lines say why")
            if time.monotonic() > limit:
                raise failure(
                    f"{what} within {self.limits.boot_s:g} s:\n{self._last_words()}", hint="is this machine busy?"
                )
            time.sleep(LOOK_EVERY_S)

    def _connects(self) -> bool:
        """Sockets' names are short and directories' are not: the name is one of this process's open directory."""
        directory = os.open(self._machine.directory, os.O_PATH | os.O_DIRECTORY)
        try:
            self._socket.connect(f"/proc/self/fd/{directory}/{SOCKET}")
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        finally:
            os.close(directory)
        return True

    def _console(self) -> str:
        return console_end(self._machine.directory / CONSOLE)

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._console().splitlines() if line.strip() and READY not in line]
        said = lines[-LINES_SAID:]
        reasons = [line for line in lines[:-LINES_SAID] if any(word in line for word in REASONS)]
        return "\n".join([*reasons[-1:], *said, *self._qemu_said])


def console_end(path: Path) -> str:
    """The last `CONSOLE_BYTES` that a guest printed, however much that was; empty if it has not begun."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - CONSOLE_BYTES))
            return file.read(CONSOLE_BYTES).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _furnish(machine: Machine) -> str:
    """The guest's files: what it boots from, its disk if there is none yet, its swap.

    Returns:
        The hash of its kernel's image and of the modules that it loads.
    """
    available = modules.available(machine.kernel.modules)
    boot = Boot(
        modules=[],
        root=machines.SHARE,
        mounts=[BootMount(source=DATA, target=STATE, file_system=FILE_SYSTEM)],
        swaps=[SWAP_DEVICE] if machine.parameters.swap else [],
        state_directory=STATE,
        host="guest",
    )
    contents = modules.in_order([*MODULES, *MODULES_OF_DISK, *_by_pmem(machine.parameters), *BESIDES], available)
    kernel, words = machine.kernel, machine.parameters.boot_parameters
    sums = [f"{hashlib.sha256(module).hexdigest()}  {name}\n" for name, module in contents.items()]
    content_sha256 = kernel.content_sha256("".join(sums))
    if machine.accelerator == "tcg" and modules.may_be_unsigned(kernel.image, kernel.release, words):
        contents = {name: modules.unsigned(module) for name, module in contents.items()}
    write(machine.directory / INITIAL, agent=find_agent(), modules=contents, boot=boot)
    if not machine.disk.exists():
        _format(machine.disk, machine.parameters.disk)
    if not machine.keep:
        _run(machines.overlay(machine), package="qemu-utils")
    if machine.parameters.swap:
        swap = machine.directory / SWAP
        _sparse(swap, machine.parameters.swap)
        _run(["mkswap", str(swap)], package="util-linux")
    return content_sha256


def _by_pmem(parameters: VmParameters) -> tuple[str, ...]:
    has_pmem = parameters.pmem is not None or any(word.startswith("memmap=") for word in parameters.boot_parameters)
    return MODULES_OF_PMEM if has_pmem else ()


def _format(disk: Path, size: int) -> None:
    """A disk with an empty file system; it gets its name when it is whole."""
    disk.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=disk.parent, prefix=".new-") as temporary:
        image = Path(temporary) / "disk"
        _sparse(image, size)
        _run([*FORMAT, str(image)], package="xfsprogs")
        image.replace(disk)


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def _run(argv: list[str], *, package: str) -> None:
    # mkfs and mkswap are in directories that a user's PATH may not have.
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
    program = shutil.which(argv[0], path=environment["PATH"])
    if program is None:
        raise PlaceError(f"no {argv[0]} on this machine", hint=f"install {package}")
    done = subprocess.run([program, *argv[1:]], capture_output=True, text=True, timeout=MKSWAP_S, check=False)
    if done.returncode != 0:
        raise PlaceError(f"`{' '.join(argv)}` failed: {done.stderr.strip()}", hint="is there room on the disk?")
