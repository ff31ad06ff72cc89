"""KVM is believed when a kernel has booted with it, and not before."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from support.command_line import shell_program

from fairtrial.errors import PlaceError
from fairtrial.places.vm import accelerators, kernels
from fairtrial.places.vm.kernels import Kernel

WORKING = "echo 'Kernel panic - not syncing: VFS: Unable to mount root fs'"
HANGING = "exec sleep 60"


def kernel(sha256: str = "a" * 64) -> Kernel:
    return Kernel(image=Path("/k"), modules=Path("/m"), release="6.1", source="k", sha256=sha256)


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of QEMU's name that a test writes; a device that can be opened; a short patience."""
    program = tmp_path / "bin" / accelerators.QEMU
    program.parent.mkdir()
    device = tmp_path / "kvm"
    device.touch()
    monkeypatch.setattr(accelerators, "KVM", device)
    monkeypatch.setattr(accelerators, "PROBE_S", 5.0)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


def does(program: Path, script: str) -> None:
    """Every start of it leaves a line beside it."""
    shell_program(program, f"echo started >>{program}.log\n{script}")


def starts(program: Path) -> int:
    log = Path(f"{program}.log")
    return len(log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0


def test_a_kernel_that_gets_as_far_as_wanting_its_root_proves_kvm(qemu: Path, tmp_path: Path) -> None:
    does(qemu, WORKING)
    assert accelerators.choose("auto", kernel(), state=tmp_path / "state") == "kvm"


def test_a_device_that_can_be_opened_and_runs_nothing_is_not_taken(qemu: Path, tmp_path: Path) -> None:
    does(qemu, HANGING)
    assert accelerators.choose("auto", kernel(), state=tmp_path / "state") == "tcg"
    with pytest.raises(PlaceError, match="KVM does not boot a kernel here"):
        accelerators.choose("kvm", kernel(), state=tmp_path / "state")


def test_what_a_probe_found_is_kept_for_its_kernel_until_the_machine_boots_again(
    qemu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    does(qemu, "exit 1")
    state = tmp_path / "state"
    assert accelerators.choose("auto", kernel(), state=state) == "tcg"
    assert accelerators.choose("auto", kernel(), state=state) == "tcg"
    assert starts(qemu) == 1
    does(qemu, WORKING)
    assert accelerators.choose("auto", kernel("b" * 64), state=state) == "kvm", "a broken kernel says nothing of others"
    assert accelerators.choose("auto", kernel(), state=state) == "tcg"
    assert starts(qemu) == 2
    boot = tmp_path / "boot_id"
    boot.write_text("another boot\n", encoding="ascii")
    monkeypatch.setattr(accelerators, "BOOT_ID", boot)
    assert accelerators.choose("auto", kernel(), state=state) == "kvm"
    assert json.loads((state / accelerators.KNOWN).read_text(encoding="ascii"))["boot"] == "another boot"


def test_emulation_that_is_asked_for_needs_no_probe(qemu: Path, tmp_path: Path) -> None:
    does(qemu, WORKING)
    assert accelerators.choose("tcg", kernel(), state=tmp_path / "state") == "tcg"
    assert starts(qemu) == 0


def test_without_the_device_there_is_no_probe(qemu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    does(qemu, WORKING)
    monkeypatch.setattr(accelerators, "KVM", tmp_path / "absent")
    assert accelerators.choose("auto", kernel(), state=tmp_path / "state") == "tcg"
    assert starts(qemu) == 0


def test_without_qemu_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PlaceError, match="no qemu-system-x86_64") as refused:
        accelerators.choose("auto", kernel(), state=tmp_path)
    assert "qemu-system-x86" in refused.value.hint


def cached(state: Path) -> str:
    """A package's kernel in the cache, as far as a probe needs it; returns its hash."""
    boot = state / "kernels" / "linux-image-6.1.0-9-amd64-unsigned_6.1.9-1_amd64" / "boot"
    boot.mkdir(parents=True)
    header = bytearray(4096)
    header[0x202:0x206] = b"HdrS"
    header[0x20E:0x210] = (0x400).to_bytes(2, "little")
    header[0x600:0x610] = b"6.1.0-9-amd64 ()"
    (boot / "vmlinuz-6.1.0-9-amd64").write_bytes(header)
    return hashlib.sha256(header).hexdigest()


def test_a_kernel_that_is_here_is_tried_once_and_what_was_found_is_kept(qemu: Path, tmp_path: Path) -> None:
    does(qemu, WORKING)
    state = tmp_path / "state"
    digest = cached(state)
    accelerators.try_out(state=state)
    accelerators.try_out(state=state)
    assert json.loads((state / accelerators.KNOWN).read_text())["kernels"] == {digest: True}
    assert starts(qemu) == 1


def test_without_a_kernel_or_without_qemu_nothing_is_tried(
    qemu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "INSTALLED", tmp_path / "boot")
    does(qemu, WORKING)
    accelerators.try_out(state=tmp_path / "state")
    cached(tmp_path / "state")
    qemu.unlink()
    monkeypatch.setenv("PATH", "/nowhere")
    accelerators.try_out(state=tmp_path / "state")
    assert not (tmp_path / "state" / accelerators.KNOWN).exists()
