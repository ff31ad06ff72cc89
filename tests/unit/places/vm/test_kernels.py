"""Kernels by name, with images and packages made here."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from support.command_line import shell_program

from fairtrial.errors import PlaceError
from fairtrial.places.vm import kernels

RELEASE = "6.1.0-56-amd64"


def image(path: Path, release: str = RELEASE) -> Path:
    """A file with the header of a bzImage: magic at 0x202, pointer to the version's text at 0x20E."""
    header = bytearray(4096)
    header[0x202:0x206] = b"HdrS"
    text = f"{release} (debian-kernel@lists.debian.org) #1 SMP".encode() + b"\0"
    header[0x20E:0x210] = (0x800).to_bytes(2, "little")
    header[0x200 + 0x800 : 0x200 + 0x800 + len(text)] = text
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header)
    return path


def modules(root: Path, release: str = RELEASE) -> Path:
    directory = root / "lib/modules" / release
    directory.mkdir(parents=True)
    return directory


def test_the_release_is_what_the_image_says_and_not_its_name(tmp_path: Path) -> None:
    assert kernels.release_of(image(tmp_path / "vmlinuz-other", "6.12.117+deb12-amd64")) == "6.12.117+deb12-amd64"


def test_a_file_that_is_no_kernel_is_refused_by_name(tmp_path: Path) -> None:
    script = tmp_path / "vmlinuz"
    script.write_text("#!/bin/sh\n" * 100, encoding="utf-8")
    with pytest.raises(PlaceError, match=f"{script} is no x86 kernel image") as refused:
        kernels.find(str(script), cache=tmp_path)
    assert "bzImage" in refused.value.hint


def test_an_image_without_the_text_of_its_release_is_refused(tmp_path: Path) -> None:
    cut = image(tmp_path / "cut")
    cut.write_bytes(cut.read_bytes()[:0x210])
    with pytest.raises(PlaceError, match=f"{cut} is no whole kernel image"):
        kernels.release_of(cut)


def test_a_file_has_its_modules_beside_it_as_a_package_has(tmp_path: Path) -> None:
    found = image(tmp_path / "boot" / f"vmlinuz-{RELEASE}")
    directory = modules(tmp_path)
    kernel = kernels.find(str(found), cache=tmp_path / "cache")
    assert kernel.modules == directory
    assert kernel.release == RELEASE
    assert kernel.source == str(found)
    assert kernel.sha256 == hashlib.sha256(found.read_bytes()).hexdigest()


def test_an_image_with_another_hash_than_the_study_says_is_refused_with_its_own(tmp_path: Path) -> None:
    found = image(tmp_path / "boot" / f"vmlinuz-{RELEASE}")
    modules(tmp_path)
    digest = hashlib.sha256(found.read_bytes()).hexdigest()
    assert kernels.find(str(found), cache=tmp_path / "cache", sha256=digest).sha256 == digest
    with pytest.raises(PlaceError, match=f"the image of kernel {found} has the SHA-256 {digest}: expected 000"):
        kernels.find(str(found), cache=tmp_path / "cache", sha256="0" * 64)


def test_a_file_without_modules_names_where_they_were_looked_for(tmp_path: Path) -> None:
    found = image(tmp_path / "boot" / "vmlinuz", "1.2.3-nowhere")
    with pytest.raises(PlaceError) as refused:
        kernels.find(str(found), cache=tmp_path)
    assert str(tmp_path / "lib/modules/1.2.3-nowhere") in str(refused.value)
    assert "/lib/modules/1.2.3-nowhere" in str(refused.value)


def test_a_build_directory_is_a_kernel_once_it_is_built(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="has no arch/x86/boot/bzImage"):
        kernels.find(str(tmp_path), cache=tmp_path)
    built = image(tmp_path / "arch/x86/boot/bzImage", "6.19.0-rc1")
    kernel = kernels.find(str(tmp_path), cache=tmp_path / "cache")
    assert (kernel.image, kernel.modules, kernel.release) == (built, tmp_path, "6.19.0-rc1")


def test_a_path_that_is_not_there_is_never_looked_up_as_a_package(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="no kernel at /boot/vmlinuz-absent"):
        kernels.find("/boot/vmlinuz-absent", cache=tmp_path)


def package(cache: Path, name: str, *, version: str, release: str) -> Path:
    directory = cache / f"{name}_{version}_amd64"
    image(directory / "boot" / f"vmlinuz-{release}", release)
    modules(directory, release)
    return directory


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """What earlier downloads have left, the older with the larger text."""
    package(tmp_path, "linux-image-6.1.0-9-amd64-unsigned", version="6.1.27-1", release="6.1.0-9-amd64")
    package(tmp_path, "linux-image-6.1.0-56-amd64-unsigned", version="6.1.192-2", release="6.1.0-56-amd64")
    package(tmp_path, "linux-image-6.12.117+deb12-amd64-unsigned", version="6.12.117-1", release="6.12.117+deb12-amd64")
    (tmp_path / ".new-abc").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("debian-6.1", "6.1.0-56-amd64"),
        ("debian-6.12", "6.12.117+deb12-amd64"),
        ("linux-image-6.1.0-9-amd64-unsigned", "6.1.0-9-amd64"),
    ],
)
def test_what_was_downloaded_once_is_taken_again_the_newest_of_a_version(cache: Path, name: str, release: str) -> None:
    kernel = kernels.find(name, cache=cache)
    assert kernel.release == release
    assert release in str(kernel.modules)


def test_the_source_of_a_package_is_its_name_with_its_version(cache: Path) -> None:
    assert kernels.find("debian-6.1", cache=cache).source == "linux-image-6.1.0-56-amd64-unsigned_6.1.192-2_amd64"


def test_a_package_that_others_can_change_is_not_booted(cache: Path) -> None:
    (shared,) = cache.glob("linux-image-6.12*")
    shared.chmod(0o777)
    with pytest.raises(PlaceError, match="can be written by other users"):
        kernels.find("debian-6.12", cache=cache)
    newest = kernels.here(cache)
    assert newest is not None
    assert newest.release == "6.1.0-56-amd64"


def offered(monkeypatch: pytest.MonkeyPatch, directory: Path, *, archive: Path | None = None) -> None:
    """apt as programs on PATH: what it offers, and a download."""
    programs = directory / "bin"
    names = ["linux-image-6.1.0-47-amd64-unsigned", "linux-image-6.1.0-50-amd64-dbg", "linux-image-6.1.0-50-amd64"]
    names += ["linux-image-6.1.0-50-cloud-amd64-unsigned", "linux-image-6.1.0-50-rt-amd64-unsigned"]
    names += ["linux-image-6.1.0-50-amd64-unsigned", "linux-image-6.12.107+deb12-amd64-unsigned"]
    listing = "\n".join(f"echo '{name} - Linux'" for name in names)
    for name, script in {"apt-cache": listing, "apt-get": f"cp {archive} ." if archive else "exit 100"}.items():
        shell_program(programs / name, f'echo $0 "$@" >>{directory}/asked\n{script}')
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")


def test_a_package_is_unpacked_and_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    control = "Package: linux-image-6.1.0-50-amd64-unsigned\nVersion: 6.1.176-1\nArchitecture: amd64\n"
    (tree / "DEBIAN/control").write_text(
        control + "Maintainer: A Test <test@example.org>\nDescription: a kernel\n", encoding="utf-8"
    )
    image(tree / "boot/vmlinuz-6.1.0-50-amd64", "6.1.0-50-amd64")
    (modules(tree, "6.1.0-50-amd64") / "loop.ko").write_bytes(b"\0depends=\0")
    (tree / "usr/share/doc").mkdir(parents=True)
    archive = tmp_path / "linux-image-6.1.0-50-amd64-unsigned_6.1.176-1_amd64.deb"
    subprocess.run(["dpkg-deb", "--build", str(tree), str(archive)], check=True, capture_output=True)
    offered(monkeypatch, tmp_path, archive=archive)
    kernel = kernels.find("debian-6.1", cache=tmp_path / "cache")
    assert kernel.release == "6.1.0-50-amd64"
    assert (kernel.modules / "loop.ko").is_file()
    assert not (tmp_path / "cache" / archive.stem / "usr").exists(), "documentation is not kept"
    assert "download linux-image-6.1.0-50-amd64-unsigned" in (tmp_path / "asked").read_text(encoding="utf-8")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [archive.stem], "nothing half-done is left"
    monkeypatch.setenv("PATH", "/nowhere")
    assert kernels.find("debian-6.1", cache=tmp_path / "cache") == kernel, "and needs no apt a second time"


def test_a_download_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, tmp_path)
    with pytest.raises(PlaceError, match=r"apt-get download .* failed"):
        kernels.find("debian-6.1", cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_version_that_apt_does_not_offer_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered(monkeypatch, tmp_path)
    with pytest.raises(PlaceError, match=r"apt offers no kernel debian-5\.10") as refused:
        kernels.find("debian-5.10", cache=tmp_path / "cache")
    assert "apt-get update" in refused.value.hint


def test_without_apt_a_path_is_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PlaceError, match="no apt-cache on this machine") as refused:
        kernels.find("debian-6.1", cache=tmp_path / "cache")
    assert "path of its bzImage" in refused.value.hint


def test_the_newest_kernel_that_is_here_needs_no_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "INSTALLED", tmp_path / "boot")
    assert kernels.here(tmp_path / "cache") is None
    image(tmp_path / "boot" / "vmlinuz-5.10.0-1-amd64", "5.10.0-1-nowhere")  # its modules are gone
    assert kernels.here(tmp_path / "cache") is None
    for version in ("6.1.0-9", "6.1.0-56"):
        package = tmp_path / "cache" / f"linux-image-{version}-amd64-unsigned_1_amd64"
        image(package / "boot" / f"vmlinuz-{version}-amd64", f"{version}-amd64")
    found = kernels.here(tmp_path / "cache")
    assert found is not None
    assert found.release == "6.1.0-56-amd64"
