"""Which modules are loaded, and when."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from fairtrial.errors import PlaceError
from fairtrial.places.vm import modules


def module(*needs: str, name: str = "x") -> bytes:
    """A module's `.modinfo` between other sections."""
    return b"\x7fELF...\0license=GPL\0depends=" + ",".join(needs).encode() + f"\0name={name}\0".encode() + b"code"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "kernel/fs/9p/9p.ko": module("9pnet", "netfs"),
        "kernel/net/9p/9pnet.ko": module(),
        "kernel/net/9p/9pnet_virtio.ko": module("9pnet", "virtio"),
        "kernel/fs/netfs/netfs.ko.xz": lzma.compress(module("fscache")),
        "kernel/fs/fscache/fscache.ko": module(),
        "kernel/drivers/md/dm-delay.ko": module("dm-mod"),
        "kernel/drivers/md/dm-mod.ko.xz": lzma.compress(module("dax")),
    }
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    (tmp_path / "modules.order").write_text("kernel/fs/9p/9p.ko\n", encoding="ascii")
    return tmp_path


def test_modules_are_known_by_the_names_that_the_kernel_gives_them(tree: Path) -> None:
    assert set(modules.available(tree)) == {"9p", "9pnet", "9pnet_virtio", "netfs", "fscache", "dm_delay", "dm_mod"}


def test_what_a_module_needs_is_loaded_before_it(tree: Path) -> None:
    order = list(modules.in_order(["9p", "9pnet_virtio"], modules.available(tree)))
    assert order == ["9pnet", "fscache", "netfs", "9p", "9pnet_virtio"]


def test_no_module_is_loaded_twice_and_what_is_built_in_is_not_missed(tree: Path) -> None:
    order = list(modules.in_order(["virtio_console", "9pnet", "9p", "9p"], modules.available(tree)))
    assert order == ["9pnet", "fscache", "netfs", "9p"]


def test_a_file_with_dashes_is_found_by_either_name_and_unpacked(tree: Path) -> None:
    loaded = modules.in_order(["dm-delay"], modules.available(tree))
    assert list(loaded) == ["dm_mod", "dm_delay"]
    assert loaded["dm_mod"] == module("dax"), "as the kernel wants it, not compressed"
    assert modules.in_order(["dm_delay"], modules.available(tree)) == loaded


def test_the_order_that_was_asked_for_is_kept_where_nothing_is_needed(tree: Path) -> None:
    found = modules.available(tree)
    assert list(modules.in_order(["fscache", "9pnet"], found)) == ["fscache", "9pnet"]
    assert list(modules.in_order(["9pnet", "fscache"], found)) == ["9pnet", "fscache"]


def test_a_file_that_is_no_module_is_an_error_and_not_a_module_without_needs() -> None:
    with pytest.raises(PlaceError, match="without `depends=`"):
        modules.dependencies(b"not a module")


def test_an_empty_list_of_needs_names_nothing() -> None:
    assert modules.dependencies(module()) == []
    assert modules.dependencies(module("libcrc32c", "dm-mod")) == ["libcrc32c", "dm_mod"]


def test_modules_packed_in_another_way_are_said_and_not_taken_for_built_in(tmp_path: Path) -> None:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel/9p.ko.zst").write_bytes(b"packed")
    with pytest.raises(PlaceError, match=r"packed as \.zst") as refused:
        modules.available(tmp_path)
    assert ".ko.xz" in refused.value.hint


def test_a_kernel_without_any_module_has_everything_built_in(tmp_path: Path) -> None:
    assert modules.available(tmp_path) == {}


SIGNATURE = b"pkcs7"
SIGNED = b"code" + SIGNATURE + bytes(8) + len(SIGNATURE).to_bytes(4, "big") + b"~Module signature appended~\n"


def test_a_signature_is_taken_off_and_nothing_else() -> None:
    assert modules.unsigned(SIGNED) == b"code"
    assert modules.unsigned(b"code") == b"code"


@pytest.mark.parametrize("layout", ["boot/vmlinuz-6.1.0 boot/config-6.1.0", "arch/x86/boot/bzImage .config"])
def test_a_kernel_that_may_want_signatures_gets_them(tmp_path: Path, layout: str) -> None:
    image, config = (tmp_path / name for name in layout.split())
    image.parent.mkdir(parents=True)
    assert not modules.may_be_unsigned(image, "6.1.0", ()), "nobody knows"
    config.write_text("CONFIG_MODULE_SIG=y\n# CONFIG_MODULE_SIG_FORCE is not set\n", encoding="ascii")
    assert modules.may_be_unsigned(image, "6.1.0", ("mitigations=off",))
    for word in ("module.sig_enforce=1", "lockdown=integrity"):
        assert not modules.may_be_unsigned(image, "6.1.0", (word,))
    config.write_text("CONFIG_MODULE_SIG=y\nCONFIG_MODULE_SIG_FORCE=y\n", encoding="ascii")
    assert not modules.may_be_unsigned(image, "6.1.0", ())
