"""Which modules a guest needs before it has a root file system, in the order of loading.

Packages that are unpacked and not installed have no `modules.dep`, so a module's own `depends=` is read.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Mapping
from pathlib import Path

from fairtrial.errors import PlaceError

SUFFIXES = (".ko", ".ko.xz")
DEPENDS = b"\0depends="
# At a module's end, behind the signature and its description, whose last four bytes are the signature's length
# (include/linux/module_signature.h).
SIGNED, DESCRIPTION_BYTES = b"~Module signature appended~\n", 12
FORCED = "CONFIG_MODULE_SIG_FORCE=y"
FORCING = ("module.sig_enforce", "lockdown")  # words of the command line


def available(directory: Path) -> dict[str, Path]:
    """Modules below a directory by name; a module's name has underscores where its file may have dashes.

    Raises:
        PlaceError: they are packed in a way that is not known here.
    """
    paths: dict[str, Path] = {}
    for suffix in SUFFIXES:
        for path in directory.rglob(f"*{suffix}"):
            paths[_name(path.name.removesuffix(suffix))] = path
    if not paths and (other := next(directory.rglob("*.ko.*"), None)) is not None:
        raise PlaceError(
            f"modules of this kernel are packed as {other.name.partition('.ko')[2]}, which is not read here",
            hint="use a kernel whose modules are `.ko` or `.ko.xz`, as Debian's are",
        )
    return paths


def content(path: Path) -> bytes:
    """A module, unpacked: not every kernel can unpack one itself."""
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def dependencies(module: bytes) -> list[str]:
    """Names of the modules that one needs, from its `.modinfo` section.

    Raises:
        PlaceError: it has none: the file is no module.
    """
    start = module.find(DEPENDS)
    if start < 0:
        raise PlaceError("a kernel module without `depends=`", hint="is the kernel's package whole?")
    value = module[start + len(DEPENDS) : module.index(b"\0", start + 1)].decode()
    return [_name(name) for name in value.split(",") if name]


def unsigned(module: bytes) -> bytes:
    """A module without its signature, which takes an emulated processor as long to check as the rest of loading it."""
    if not module.endswith(SIGNED):
        return module
    end = len(module) - len(SIGNED)
    return module[: end - DESCRIPTION_BYTES - int.from_bytes(module[end - 4 : end], "big")]


def may_be_unsigned(image: Path, release: str, boot_parameters: Iterable[str]) -> bool:
    """Whether a kernel loads modules that nobody signed; false where its configuration is not beside its image."""
    if any(word.partition("=")[0] in FORCING for word in boot_parameters):
        return False
    built = image.parent / "../../../.config"  # of arch/x86/boot/bzImage
    for config in (image.parent / f"config-{release}", built):
        if config.is_file() and (config is not built or image.name == "bzImage"):
            return FORCED not in config.read_text(encoding="ascii", errors="replace").splitlines()
    return False


def in_order(names: Iterable[str], available: Mapping[str, Path]) -> dict[str, bytes]:
    """Wanted modules and all that they need, each after what it needs. What is not there is built in."""
    loaded: dict[str, bytes] = {}
    for name in names:
        _load(_name(name), available, loaded)
    return loaded


def _load(name: str, available: Mapping[str, Path], loaded: dict[str, bytes]) -> None:
    if name in loaded or name not in available:
        return
    module = content(available[name])
    for needed in dependencies(module):
        _load(needed, available, loaded)
    loaded[name] = module


def _name(text: str) -> str:
    return text.strip().replace("-", "_")
