"""A kernel's image without its compression, as QEMU can boot it; whatever else it is, it boots as it is."""

from __future__ import annotations

import lzma
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from fairtrial import disks
from fairtrial.places.vm.unpacked import ELF, ENTRY, kept, unpacked

KERNEL = ELF + b"code" * 1000 + ENTRY + b"more"
SETUP_SECTORS, OFFSET = 3, 40


def gzipped(content: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=31)
    return compressor.compress(content) + compressor.flush()


def image(payload: bytes, *, setup: int = SETUP_SECTORS) -> bytes:
    """A bzImage: its setup, and the payload somewhere behind it, with the loader's code before and after."""
    sectors = setup or 4
    header = bytearray((sectors + 1) * 512)
    header[0x1F1] = setup
    header[0x248:0x250] = struct.pack("<II", OFFSET, len(payload))
    return bytes(header) + b"\x90" * OFFSET + payload + b"\x90" * 100


@pytest.mark.parametrize("setup", [SETUP_SECTORS, 0])
@pytest.mark.parametrize("pack", [lzma.compress, gzipped])
def test_a_packed_kernel_is_unpacked(pack: Callable[[bytes], bytes], setup: int) -> None:
    size = struct.pack("<I", len(KERNEL))  # what the kernel's build puts behind a payload
    assert unpacked(image(pack(KERNEL) + size, setup=setup)) == KERNEL


@pytest.mark.parametrize(
    "payload",
    [
        b"\x28\xb5\x2f\xfd" + KERNEL,  # Zstandard
        lzma.compress(KERNEL.replace(ENTRY, b"")),  # no entry without a loader
        lzma.compress(b"MZ" + KERNEL),  # another format
        lzma.compress(KERNEL)[:20] + b"\xff" * 40,
    ],
)
def test_what_cannot_be_entered_directly_is_left_packed(payload: bytes, tmp_path: Path) -> None:
    packed = tmp_path / "vmlinuz"
    packed.write_bytes(image(payload))
    assert kept(packed, sha256="a" * 64, cache=tmp_path / "cache") == packed


def test_a_kernel_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed, cache, synced = tmp_path / "vmlinuz", tmp_path / "cache", []
    packed.write_bytes(image(lzma.compress(KERNEL)))

    def sync(path: Path) -> None:
        assert not (cache / ("a" * 64)).exists()
        synced.append(path.read_bytes())

    monkeypatch.setattr(disks, "sync_around", sync)
    kept(packed, sha256="a" * 64, cache=cache)
    assert synced == [KERNEL]


def test_a_kernel_is_unpacked_once(tmp_path: Path) -> None:
    packed, cache = tmp_path / "vmlinuz", tmp_path / "cache"
    packed.write_bytes(image(lzma.compress(KERNEL)))
    first = kept(packed, sha256="a" * 64, cache=cache)
    assert first.read_bytes() == KERNEL
    packed.write_bytes(b"")
    assert kept(packed, sha256="a" * 64, cache=cache) == first
    assert list(cache.iterdir()) == [first], "nothing half made is left"
