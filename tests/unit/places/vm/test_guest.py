"""A guest's life beside its agents: its console, its stream, and what is left of one that cannot be had."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fairtrial.errors import PlaceError
from fairtrial.places.local import Local
from fairtrial.places.place import PASSING
from fairtrial.places.vm import Vm, accelerators, guest, kernels
from fairtrial.places.vm.guest import CONSOLE_BYTES, READY, Guest, console_end
from fairtrial.places.vm.kernels import Kernel
from fairtrial.places.vm.machine import CONSOLE, SOCKET, Machine
from fairtrial.places.vm.parameters import VmParameters
from fairtrial.wire import Agent, Limits
from fairtrial.wire.fake import FakeProgram, FakeTransport

FRAME, PING = b"0" * (4 << 20), b"ping\n"
PARAMETERS = VmParameters.model_validate({"kernel": "debian-6.1"})
WAIT_S = 60.0


def test_the_end_of_a_console_is_looked_at_and_no_more(tmp_path: Path) -> None:
    console = tmp_path / "console"
    assert console_end(console) == ""
    console.write_bytes(b"\xff" + READY.encode())
    assert console_end(console).endswith(READY)
    console.write_bytes(b"x" * 3 * CONSOLE_BYTES + b"panic\n")
    assert len(console_end(console)) == CONSOLE_BYTES
    assert console_end(console).endswith("panic\n")


def kernel(directory: Path) -> Kernel:
    (directory / "modules").mkdir()
    return Kernel(directory / "vmlinuz", directory / "modules", release="6.1", source="debian-6.1", sha256="0" * 64)


@contextmanager
def connected(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Guest, socket.socket]]:
    """A guest without QEMU, and the other end of its stream."""
    running = directory / "running"
    running.mkdir()
    (running / CONSOLE).write_text(READY)
    monkeypatch.chdir(running)  # sockets' names are short
    monkeypatch.setattr(guest, "_furnish", lambda _machine: None)
    own, limits = kernel(directory), Limits(off_s=0.01)
    machine = Machine(PARAMETERS, own, running, directory / "disk", False, "tcg", limits, own.image)  # noqa: FBT003
    host = Agent(FakeTransport(run=lambda _spawn: FakeProgram(code=None)), holder="a test", lock=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(SOCKET)
        listening.listen()
        made = Guest(machine, host)
        far, _ = listening.accept()
        with far, contextlib.closing(made):
            yield made, far


def test_a_guests_facts_tell_of_each_module_it_loads_as_its_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guest, "find_agent", lambda: tmp_path / "agent")
    monkeypatch.setattr(guest, "_run", lambda *_arguments, **_options: None)
    (tmp_path / "agent").write_bytes(b"")
    (tmp_path / "disk").write_bytes(b"")
    own = kernel(tmp_path)
    machine = Machine(PARAMETERS, own, tmp_path, tmp_path / "disk", False, "kvm", Limits(), own.image)  # noqa: FBT003

    def content(**modules: str) -> str:
        for name, code in modules.items():
            (own.modules / f"{name}.ko").write_bytes(b"\0depends=\0" + code.encode())
        return guest._furnish(machine)

    first = content(xfs="base", not_loaded="base")
    assert content(xfs="base", not_loaded="other") == first
    assert content(xfs="patched") != first
    assert content(xfs="base") == first
    rebuilt = replace(machine, kernel=replace(own, sha256="1" * 64))
    assert guest._furnish(rebuilt) != first


def test_a_ping_does_not_land_inside_of_a_files_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with connected(tmp_path, monkeypatch) as (made, far):
        writers = [threading.Thread(target=made.write, args=(FRAME,))]
        writers += [threading.Thread(target=made.write, args=(PING,)) for _ in range(20)]
        writers[0].start()
        arrived = bytearray(far.recv(1))  # it is under way, and longer than the socket takes at once
        for writer in writers[1:]:
            writer.start()
        while len(arrived) < len(FRAME) + 20 * len(PING):
            arrived += far.recv(4096)
        assert arrived == FRAME + 20 * PING


def test_closing_wakes_those_who_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[OSError] = []

    def write() -> None:
        try:
            made.write(FRAME)
        except OSError as error:
            woken.append(error)

    with connected(tmp_path, monkeypatch) as (made, far):
        writers = [threading.Thread(target=write) for _ in range(2)]
        for writer in writers:
            writer.start()
        far.recv(1)
        made.close()
        for writer in writers:
            writer.join(WAIT_S)
    assert len(woken) == 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_without_room_for_a_guest_is_told_and_nothing_stays_on_it(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(target: Path, **_others: object) -> None:
        target.write_bytes(b"half of it")
        raise OSError(number, "by the disk")

    fake, own = FakeTransport(), kernel(tmp_path)
    monkeypatch.setattr(Local, "connect", lambda *_arguments, **_options: fake)
    monkeypatch.setattr(Vm, "_state", lambda *_: tmp_path)
    monkeypatch.setattr(kernels, "find", lambda *_arguments, **_options: own)
    monkeypatch.setattr(accelerators, "choose", lambda *_arguments, **_options: "kvm")
    monkeypatch.setattr(guest, "write", write)
    with pytest.raises(PlaceError, match=f"disk of {tmp_path}.* while writing a guest's files") as refused:
        Vm(PARAMETERS).boot(holder="a test", lock=True, disk=PASSING)
    assert "--resume" in refused.value.hint
    assert list((tmp_path / "running").iterdir()) == []
    assert fake.requests[-1].request == "bye", "this machine is free again"
