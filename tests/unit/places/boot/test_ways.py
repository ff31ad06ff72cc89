"""Which way boots a kernel once on which host, and why the others do not: judged from what was printed there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from support.command_line import shell_program

from fairtrial.errors import PlaceError
from fairtrial.places.boot import command_line, grub, ways
from fairtrial.places.boot.looking import OUR_ENTRIES, SCRIPT, BootObservation, build_id, parsed
from fairtrial.places.boot.parameters import BootParameters
from fairtrial.places.boot.way import Entry

# Of a host of tests/support/machines/booting_host.py, and of a notebook with systemd-boot.
BY_GRUB = """\
boot_id 3e6c8b6e-5a3f-4c8e-9d0b-54f6c1f8a1c2
command_line BOOT_IMAGE=/boot/vmlinuz-6.1.0-56-amd64 root=/dev/vda1 ro console=ttyS0
release 6.1.0-56-amd64
lockdown
kexec_disabled 0
user 0
program/kexec /usr/sbin/kexec
program/grub-reboot /usr/sbin/grub-reboot
program/grub-editenv /usr/bin/grub-editenv
program/grub-probe /usr/sbin/grub-probe
program/grub-mkrelpath /usr/bin/grub-mkrelpath
program/fsfreeze /usr/sbin/fsfreeze
program/mkinitramfs /usr/sbin/mkinitramfs
program/depmod /usr/sbin/depmod
program/tar /usr/bin/tar
grub /boot/grub
grub_config 9d2f
grub_once yes
grub_custom yes
grub_abstraction
grub_fs ext2
grub_uuid 0d5c2c0e-6f44-4d9c-9b38-5c9fbd0b4b11
"""
BY_SYSTEMD = """\
lockdown none
kexec_disabled 0
user 0
program/bootctl /usr/bin/bootctl
program/efibootmgr /usr/bin/efibootmgr
program/lsblk /usr/bin/lsblk
program/dracut /usr/bin/dracut
program/depmod /usr/sbin/depmod
program/tar /usr/bin/tar
efi yes
secure_boot 0
esp /efi
esp_device /dev/nvme0n1p1
boot /boot
systemd_boot yes
default debian-*.conf
"""


def require(by: str, printed: str, **without: str) -> str:
    """The name of the way that is taken; `without`: values that are others."""
    values = {**parsed(printed).values, **{name.replace("__", "/"): value for name, value in without.items()}}
    seen = BootObservation({name: value for name, value in values.items() if value != "-"})
    return ways.require(BootParameters.model_validate({"by": by, "kernel": "debian-6.12"}), seen).name


@pytest.mark.parametrize(
    ("by", "printed"), [("kexec", BY_GRUB), ("grub", BY_GRUB), ("systemd-boot", BY_SYSTEMD), ("efi", BY_SYSTEMD)]
)
def test_a_way_that_works_is_taken(by: str, printed: str) -> None:
    assert require(by, printed) == by


@pytest.mark.parametrize(
    ("by", "host", "says"),
    [
        ("grub", (BY_GRUB, {"grub_abstraction": "lvm"}), "for ever"),
        ("grub", (BY_GRUB, {"grub_abstraction": "diskfilter mdraid1x"}), "for ever"),
        ("grub", (BY_GRUB, {"grub_fs": "zfs"}), "cannot write to zfs"),
        ("grub", (BY_GRUB, {"grub_fs": "btrfs"}), "cannot write to btrfs"),
        ("grub", (BY_GRUB, {"grub_fs": "", "grub_uuid": ""}), "an unknown file system"),
        ("grub", (BY_GRUB, {"grub_once": ""}), "boots no entry once"),
        ("grub", (BY_GRUB, {"grub_custom": ""}), "reads no custom.cfg"),
        ("grub", (BY_GRUB, {"custom": "menuentry 'mine' {"}), "is your own"),
        ("grub", (BY_GRUB, {"grubenv__next_entry": "2"}), "about to boot 2 once already"),
        ("grub", (BY_GRUB, {"program__grub-editenv": "-"}), "no grub-editenv"),
        ("grub", (BY_GRUB, {"program__fsfreeze": "-"}), "no fsfreeze"),
        ("grub", (BY_SYSTEMD, {}), "no grub-reboot"),
        ("kexec", (BY_GRUB, {"kexec_disabled": "1"}), "kexec_load_disabled"),
        ("kexec", (BY_GRUB, {"lockdown": "integrity"}), "locked down"),
        ("kexec", (BY_SYSTEMD, {}), "no kexec"),
        ("systemd-boot", (BY_GRUB, {}), "not started by systemd-boot"),
        ("systemd-boot", (BY_SYSTEMD, {"default": ""}), "depends on which entries there are"),
        ("systemd-boot", (BY_SYSTEMD, {"default": "@saved"}), "depends on which entries there are"),
        ("systemd-boot", (BY_SYSTEMD, {"default": "f*"}), "depends on which entries there are"),
        ("efi", (BY_GRUB, {}), "no UEFI firmware"),
        ("efi", (BY_SYSTEMD, {"esp": ""}), "no EFI system partition"),
        ("efi", (BY_SYSTEMD, {"bootnext": "0003"}), "about to boot 0003"),
        ("efi", (BY_SYSTEMD, {"secure_boot": "1"}), "signed kernels only"),
        ("kexec", (BY_GRUB, {"user": "1000"}), "only root"),
        ("kexec", (BY_GRUB, {"program__mkinitramfs": "-"}), "mkinitramfs or dracut"),
    ],
)
def test_a_way_that_does_not_work_is_refused_with_its_reason(
    by: str, host: tuple[str, dict[str, str]], says: str
) -> None:
    printed, other = host
    with pytest.raises(PlaceError, match=says) as caught:
        require(by, printed, **other)
    assert caught.value.field == "place.ssh.boot.by"
    assert caught.value.hint


def test_what_works_instead_is_said() -> None:
    with pytest.raises(PlaceError) as caught:
        require("grub", BY_GRUB, grub_abstraction="lvm")
    assert caught.value.hint.endswith("what works on this host: `by: kexec`")
    assert require("efi", BY_SYSTEMD, bootnext="0003", entries="0003 0004") == "efi", "left by a run that was killed"


def test_a_kernel_gets_the_defaults_words_the_nets_and_its_own_before_those_of_the_first_process() -> None:
    default = "BOOT_IMAGE=/boot/vmlinuz initrd=/x root=/dev/vda1 ro panic=0 -- single"
    words = command_line.once(default, ("mitigations=off", "panic=60"), token="0a1b")
    nets = "panic=10 oops=panic softlockup_panic=1 nmi_watchdog=panic"
    assert words == f"root=/dev/vda1 ro panic=0 {nets} mitigations=off panic=60 fairtrial.boot=0a1b -- single"
    assert command_line.token_of(words) == "0a1b"
    again = command_line.once(words, (), token="2c")
    assert command_line.token_of(again) == "2c", "a kernel booted once is no default, but words of one are no trap"
    assert "0a1b" not in again
    assert command_line.token_of(default) == ""


def test_an_entry_of_grub_quotes_what_grub_would_read_otherwise() -> None:
    entry = Entry("/boot/fairtrial/1/vmlinuz", "/boot/fairtrial/1/initrd", 'root=/dev/sda1 dyndbg="file{a;b}" x=$y')
    text = grub.custom(entry, image="/fairtrial/1/vmlinuz", initial="/fairtrial/1/initrd", uuid="0d5c")
    assert text.splitlines() == [
        grub.OURS,
        "menuentry 'fairtrial' --id fairtrial-once {",
        "    search --no-floppy --fs-uuid --set=root 0d5c",
        "    linux /fairtrial/1/vmlinuz root=/dev/sda1 'dyndbg=\"file{a;b}\"' 'x=$y'",
        "    initrd /fairtrial/1/initrd",
        "}",
    ]
    if (check := shutil.which("grub-script-check")) is not None:
        subprocess.run([check], input=text, text=True, check=True)


def note(kind: int, name: bytes, content: bytes) -> bytes:
    head = b"".join(number.to_bytes(4, "little") for number in (len(name), len(content), kind))
    return head + name.ljust((len(name) + 3) // 4 * 4, b"\0") + content.ljust((len(content) + 3) // 4 * 4, b"\0")


def test_a_build_id_is_found_among_other_notes() -> None:
    notes = note(0x100, b"Linux\0", b"\x07") + note(3, b"Xen\0", b"1234") + note(3, b"GNU\0", bytes(range(20)))
    assert build_id(notes) == bytes(range(20)).hex()
    assert build_id(notes[:30]) == build_id(b"") == ""


GRUB_CONFIG = """\
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
fi
source ${config_directory}/custom.cfg
"""


def looked(root: Path) -> BootObservation:
    printed = subprocess.run(["sh", "-c", SCRIPT, "sh", str(root)], capture_output=True, text=True, check=False).stdout
    return parsed(printed)


def test_a_host_is_looked_at_by_a_shell(tmp_path: Path) -> None:
    for path, text in {
        "proc/sys/kernel/random/boot_id": "b7d6\n",
        "proc/cmdline": "root=/dev/sda1 quiet\n",
        "proc/cpuinfo": "model name\t: x\nmicrocode\t: 0xf0\nmicrocode\t: 0xf1\n",
        "proc/sys/kernel/kexec_load_disabled": "0\n",
        "sys/kernel/security/lockdown": "none [integrity] confidentiality\n",
        "boot/grub/grub.cfg": GRUB_CONFIG,
        "boot/grub/custom.cfg": f"{grub.OURS}\nmenuentry\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "sys/kernel/notes").write_bytes(note(3, b"GNU\0", b"\xab" * 20))
    seen = looked(tmp_path)
    assert (seen["boot_id"], seen["command_line"], seen["microcode"]) == ("b7d6", "root=/dev/sda1 quiet", "0xf0")
    assert (seen["kexec_disabled"], seen["lockdown"], seen.build_id) == ("0", "integrity", "ab" * 20)
    assert (seen["grub_once"], seen["grub_custom"], seen["custom"]) == ("yes", "yes", grub.OURS)
    assert seen["efi"] == ""
    (tmp_path / "boot/grub/grub.cfg").write_text('set default="0"\n')
    assert looked(tmp_path)["grub_once"] == looked(tmp_path)["grub_custom"] == ""


@pytest.mark.skipif(shutil.which("grub-editenv") is None, reason="no grub-editenv: install grub-common")
def test_what_grub_is_about_to_boot_is_read_by_its_own_program(tmp_path: Path) -> None:
    directory = tmp_path / "boot/grub"
    directory.mkdir(parents=True)
    (directory / "grub.cfg").write_text(GRUB_CONFIG)
    environment = directory / "grubenv"
    subprocess.run(["grub-editenv", environment, "create"], check=True)
    before = environment.read_bytes()
    subprocess.run(["grub-editenv", environment, "set", f"next_entry={grub.NAME}"], check=True)
    seen = looked(tmp_path)
    assert ways.WAYS["grub"].armed(seen)
    (directory / "custom.cfg").write_text(grub.OURS)
    subprocess.run(["sh", "-euc", grub.FORGET, "sh", directory, "grub"], check=True)
    assert environment.read_bytes() == before
    assert not (directory / "custom.cfg").exists()
    assert not ways.WAYS["grub"].armed(looked(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/loop-control").exists(), reason="needs root and loop devices")
@pytest.mark.skipif(
    not (shutil.which("mkfs.xfs") and shutil.which("grub-fstest")), reason="needs xfsprogs, grub-common"
)
def test_grub_sees_at_once_what_was_written_to_xfs_whose_log_it_does_not_read(tmp_path: Path) -> None:
    image, mounted = tmp_path / "image", tmp_path / "mounted"
    mounted.mkdir()
    subprocess.run(["truncate", "--size=320M", image], check=True)
    subprocess.run(["mkfs.xfs", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
    try:
        custom = mounted / "custom.cfg"
        custom.write_text(grub.OURS)
        settle(mounted)
        assert seen_by_grub(image, custom.name) == grub.OURS
        custom.unlink()
        settle(mounted)
        assert seen_by_grub(image, custom.name) == ""
        (mounted / "thawed").touch()
    finally:
        subprocess.run(["umount", mounted], check=True)


def settle(directory: Path) -> None:
    subprocess.run(["sh", "-euc", grub.SETTLE, "sh", directory, grub.SLEEPER], check=True, timeout=300)


def seen_by_grub(image: Path, name: str) -> str:
    return subprocess.run(
        ["grub-fstest", image, "cat", f"(loop0)/{name}"], capture_output=True, text=True, check=False
    ).stdout


def sleeper(directory: Path, *, thaws_if: str) -> subprocess.Popen[bytes]:
    """It, where a thaw is a line in `asked`, and succeeds once a file is there."""
    shell_program(directory / "fsfreeze", f'echo "$@" >>{directory}/asked\ntest -e {directory}/{thaws_if}')
    return subprocess.Popen(["sh", "-c", grub.SLEEPER, "sh", "/boot"], env={"PATH": f"{directory}:/bin:/usr/bin"})


def test_what_is_frozen_is_thawed_though_nobody_is_left_who_would(tmp_path: Path) -> None:
    shell_program(tmp_path / "sleep", "")
    with sleeper(tmp_path, thaws_if="asked"):
        pass
    assert (tmp_path / "asked").read_text() == "--unfreeze /boot\n"


def test_a_freeze_that_is_not_complete_when_the_session_is_ended_is_thawed_once_it_is(tmp_path: Path) -> None:
    with sleeper(tmp_path, thaws_if="complete") as process:
        while not (children := children_of(process.pid)):
            pass  # until its traps are set
        process.terminate()
        os.kill(children[0], signal.SIGTERM)  # as all processes of the session
        while not (tmp_path / "asked").exists():
            pass
        (tmp_path / "complete").touch()
    assert set((tmp_path / "asked").read_text().splitlines()) == {"--unfreeze /boot"}
    assert process.returncode == 0


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_only_boot_options_of_our_own_name_are_ours() -> None:
    """Of efibootmgr 17, and of 18 with its paths: who disarms deletes them."""
    printed = (
        "BootCurrent: 0001\nBoot0001* fairtrial\nBoot0002  fairtrial\tHD(1,GPT)/File(\\fairtrial\\vmlinuz)\n"
        "Boot0003* my fairtrial disk\nBoot0004* debian\tHD(1,GPT)/File(\\EFI\\my fairtrial)\nBoot0005* fairtrial disk\n"
    )
    found = subprocess.run(["sh", "-c", OUR_ENTRIES], input=printed, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["0001", "0002"]
