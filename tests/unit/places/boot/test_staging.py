"""Bringing a kernel to a host: one that is there already is known by all of it, not by its image alone."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import pytest
from support.machines.places import place_in_memory

from fairtrial.errors import PlaceError
from fairtrial.places.boot import staging
from fairtrial.places.boot.staging import INITIAL, MODULES, SAME, WHOLE, StagedKernel
from fairtrial.places.boot.way import DIRECTORY
from fairtrial.places.vm.kernels import Kernel
from fairtrial.protocol import generated as wire
from fairtrial.wire.fake import FakeProgram, FakeTransport

RELEASE = "6.12.0-mine"


def built(directory: Path, module: bytes = b"xfs") -> Kernel:
    """A build directory."""
    image = directory / "arch/x86/boot/bzImage"
    image.parent.mkdir(parents=True, exist_ok=True)
    image.write_bytes(b"the image")
    (directory / "fs/xfs").mkdir(parents=True, exist_ok=True)
    (directory / "fs/xfs/xfs.ko").write_bytes(module)
    (directory / "modules.order").write_text("fs/xfs/xfs.o\n")
    return Kernel(image, directory, RELEASE, str(directory), hashlib.sha256(b"the image").hexdigest())


@dataclass
class Host:
    """What a host has: our marker beside its modules, our initial file systems, or a package's kernel.

    Attributes:
        installed: the package's modules by name; None: no package.
    """

    marker: str = ""
    initials: set[str] = field(default_factory=set)
    installed: dict[str, bytes] | None = None
    image: bytes = b"the image"
    fake: FakeTransport | None = None

    def run(self, spawn: wire.Spawn) -> FakeProgram:
        if spawn.argv[0] == "test":
            return FakeProgram(code=0 if spawn.argv[2].removesuffix("/initrd") in self.initials else 1)
        script, words = spawn.argv[2], spawn.argv[4:]
        if script == WHOLE:
            return FakeProgram(stdout=self._state(words))
        if script == SAME:
            return FakeProgram(code=0 if self._checks(words[1]) else 1)
        if script == MODULES:
            self.marker = words[1]
        if script == INITIAL:
            self.initials.add(words[2])
        return FakeProgram()

    def _state(self, words: Sequence[str]) -> list[str]:
        release, content, own, image = words
        assert release == RELEASE
        if own in self.initials and self.marker == content:
            return ["whole"]
        if self.installed is None:
            return []
        return ["installed" if hashlib.sha256(self.image).hexdigest() == image else "another"]

    def _checks(self, path: str) -> bool:
        assert self.fake is not None
        assert self.installed is not None
        asked = [line.split("  ") for line in self.fake.files[path].decode().splitlines()]
        return bool(asked) and all(
            hashlib.sha256(self.installed.get(name, b"")).hexdigest() == sha256 for sha256, name in asked
        )

    def staged(self, kernel: Kernel) -> tuple[StagedKernel, FakeTransport]:
        with place_in_memory(self.run) as (place, self.fake):
            return staging.stage(place, kernel, directory=DIRECTORY), self.fake


def brought(fake: FakeTransport) -> set[str]:
    return {Path(path).name for path in fake.files}


def test_a_kernel_is_brought_once(tmp_path: Path) -> None:
    host, kernel = Host(), built(tmp_path)
    first, fake = host.staged(kernel)
    assert first.image == f"{DIRECTORY}/{first.content_sha256[:16]}/vmlinuz"
    assert brought(fake) == {"vmlinuz", "modules.tar"}
    (packed,) = (content for path, content in fake.files.items() if path.endswith(".tar"))
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        assert archive.getnames() == ["modules.order", "kernel/fs/xfs/xfs.ko"]
    again, fake = host.staged(kernel)
    assert again == first
    assert brought(fake) == set()


def test_a_rebuild_of_one_module_is_another_kernel(tmp_path: Path) -> None:
    """Or its arm would run with the modules of the other one."""
    host = Host()
    base, _ = host.staged(built(tmp_path / "base"))
    patched, fake = host.staged(built(tmp_path / "patched", module=b"new"))
    assert brought(fake) == {"vmlinuz", "modules.tar"}
    assert base.sha256 == patched.sha256
    assert base.initial != patched.initial
    assert host.marker == patched.content_sha256 != base.content_sha256
    again, fake = host.staged(built(tmp_path / "base"))
    assert again == base
    assert brought(fake) == {"vmlinuz", "modules.tar"}, "one directory holds the modules of a release"


def test_modules_that_came_back_to_their_initial_file_system_are_whole_once_it_is_made_again(tmp_path: Path) -> None:
    """Those of another build of the release were there in between, and depmod may not get to see these."""
    modules, own = tmp_path / "modules", tmp_path / "own"
    own.mkdir()
    modules.mkdir()
    (own / "initrd").touch()

    def done(script: str) -> str:
        with tarfile.open(tmp_path / "modules.tar", "w"):
            pass
        words = (RELEASE, "content", str(own), str(tmp_path / "modules.tar"))
        argv = ["sh", "-euc", script.replace("/lib/modules", str(modules)), "sh", *words]
        return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    done(MODULES)
    assert (modules / RELEASE / ".fairtrial").read_text() == "content"
    assert done(WHOLE) == ""
    (own / "initrd").touch()
    assert done(WHOLE) == "whole"


def test_modules_that_are_rebuilt_while_this_process_runs_are_read_again(tmp_path: Path) -> None:
    before, _ = Host().staged(kernel := built(tmp_path))
    (tmp_path / "fs/xfs/xfs.ko").write_bytes(b"XFS")
    os.utime(tmp_path / "fs/xfs/xfs.ko", ns=(1, 1))
    after, _ = Host().staged(kernel)
    assert before.content_sha256 != after.content_sha256


def package(directory: Path) -> Kernel:
    """A package's files, with a module beside those of the kernel itself."""
    modules = directory / "lib/modules" / RELEASE
    for name in ("kernel/fs/xfs/xfs.ko", "updates/dkms/zfs.ko"):
        (modules / name).parent.mkdir(parents=True)
        (modules / name).write_bytes(b"a module")
    (directory / "boot").mkdir()
    image = directory / "boot" / f"vmlinuz-{RELEASE}"
    image.write_bytes(b"the image")
    return Kernel(image, modules, RELEASE, "a package", hashlib.sha256(b"the image").hexdigest())


def test_modules_that_the_same_package_put_there_are_taken(tmp_path: Path) -> None:
    there = {"kernel/fs/xfs/xfs.ko": b"a module", "updates/dkms/zfs.ko": b"built there", "extra.ko": b"its own"}
    host = Host(installed=there)
    _, fake = host.staged(package(tmp_path))
    assert brought(fake) == {"modules.sha256", "vmlinuz"}
    _, fake = host.staged(package(tmp_path / "again"))
    assert brought(fake) == {"modules.sha256"}


def test_an_image_among_its_modules_makes_no_build_directory_of_them(tmp_path: Path) -> None:
    kernel = package(tmp_path)
    image = kernel.modules / "vmlinuz"
    image.write_bytes(b"the image")
    _, fake = Host().staged(Kernel(image, kernel.modules, RELEASE, str(image), kernel.sha256))
    (packed,) = (content for path, content in fake.files.items() if path.endswith(".tar"))
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        assert set(archive.getnames()) == {"kernel/fs/xfs/xfs.ko", "updates/dkms/zfs.ko"}


@pytest.mark.parametrize(
    "host",
    [
        Host(installed={"kernel/fs/xfs/xfs.ko": b"a module"}, image=b"another image"),
        Host(installed={"kernel/fs/xfs/xfs.ko": b"another", "updates/dkms/zfs.ko": b"a module"}),
        Host(installed={"updates/dkms/zfs.ko": b"a module"}),
    ],
    ids=["image", "module", "missing"],
)
def test_modules_of_another_build_that_a_package_put_there_are_left_alone(host: Host, tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="modules of another build that calls itself") as refused:
        host.staged(package(tmp_path))
    assert "CONFIG_LOCALVERSION" in refused.value.hint
    assert host.marker == ""


def test_a_disk_without_room_for_modules_on_their_way_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "by the disk")

    monkeypatch.setattr(tarfile.TarFile, "add", full)
    with pytest.raises(PlaceError, match="while writing a kernel's modules"):
        Host().staged(built(tmp_path))
