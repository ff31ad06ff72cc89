"""A kernel's image without its compression: what an emulated processor would spend a third of a boot on.

Sources: Documentation/arch/x86/boot.rst (the header), the note by which an ELF file says where it may be entered
(`XEN_ELFNOTE_PHYS32_ENTRY`, include/xen/interface/elfnote.h), and QEMU, which boots by that.
"""

from __future__ import annotations

import lzma
import struct
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from fairtrial import disks

SETUP_SECTORS_AT, SETUP_SECTORS_DEFAULT, SECTOR_BYTES = 0x1F1, 4, 512
PAYLOAD_AT = 0x248  # offset behind the setup, and length, 4 bytes each
UNPACKERS: Mapping[bytes, Callable[[bytes], bytes]] = {
    b"\xfd7zXZ\0": lambda packed: lzma.LZMADecompressor().decompress(packed),
    b"\x1f\x8b\x08": lambda packed: zlib.decompressobj(wbits=31).decompress(packed),
}
ELF = b"\x7fELF"
# Length of the name and of the address, the note's type, the name: the kernel can be entered without a loader.
ENTRY = struct.pack("<III4s", 4, 8, 0x12, b"Xen")


def kept(image: Path, *, sha256: str, cache: Path) -> Path:
    """The unpacked image, kept by the hash of the packed one; the packed one where QEMU could not boot it.

    Args:
        image: a bzImage.
        sha256: of it.
        cache: directory of those that were unpacked before.
    """
    target = cache / sha256
    if target.exists():
        return target
    content = unpacked(image.read_bytes())
    if content is None:
        return image
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".new-") as temporary:  # gone where the disk is full, too
        image = Path(temporary) / "image"
        image.write_bytes(content)
        disks.sync_around(image)
        image.replace(target)
    return target


def unpacked(image: bytes) -> bytes | None:
    """The ELF file in a bzImage; None if it is packed in an unknown way, or cannot be entered without a loader."""
    setup = image[SETUP_SECTORS_AT] or SETUP_SECTORS_DEFAULT
    offset, length = struct.unpack_from("<II", image, PAYLOAD_AT)
    start = (setup + 1) * SECTOR_BYTES + offset
    packed = image[start : start + length]
    unpack = next((unpack for magic, unpack in UNPACKERS.items() if packed.startswith(magic)), None)
    if unpack is None:
        return None
    try:
        content = unpack(packed)
    except (lzma.LZMAError, zlib.error):
        return None
    return content if content.startswith(ELF) and ENTRY in content else None
