"""A host that boots: a machine of QEMU with a disk, GRUB, an init and sshd, made from Debian's packages.

Its programs and its configuration of GRUB are Debian's own. Its init is BusyBox's, which an emulated processor starts
in a second, and its kernels have those modules alone that it needs.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairtrial.caching import cache_directory
from fairtrial.places import ssh
from fairtrial.places.boot.command_line import token_of
from fairtrial.places.vm import kernels, modules
from fairtrial.places.vm.machine import EMULATED_PROCESSOR
from support.command_line import Desk
from support.machines.machine import alone_with
from support.machines.ssh_host import free_port, make_key

PACKAGES: Final = (
    "busybox-static,openssh-server,kexec-tools,grub2-common,grub-pc-bin,systemd-boot,efibootmgr,dosfstools,"
    "initramfs-tools,kmod,mount,tar,findutils,grep,sed,util-linux"
)
MODULES: Final = (
    *("virtio_pci", "virtio_blk", "virtio_net", "virtio_rng", "ext4", "crc32c_generic", "i6300esb"),
    *("vfat", "nls_cp437", "nls_ascii", "efivarfs"),
)
# For both firmwares: GRUB lies in the first partition, systemd-boot in the second.
PARTITIONS: Final = """\
label: gpt
2048,2048,21686148-6449-6E6F-744E-656564454649
4096,262144,C12A7328-F81F-11D2-BA4B-00A0C93EC93B
266240,,L
"""
FIRST_BYTE: Final = 266240 * 512
DISK_BYTES: Final = 1600 << 20
ROOT_MIB: Final = 1450
INIT: Final = """\
::sysinit:/etc/rc
::respawn:/usr/sbin/sshd -D -e
::shutdown:/bin/sync
::shutdown:/bin/umount -a -r
"""
RC: Final = """\
#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -o remount,rw /
mkdir -p /dev/pts /run/sshd
mount -t devpts devpts /dev/pts
modprobe virtio_net
modprobe i6300esb
busybox ifconfig lo 127.0.0.1
for each in /sys/class/net/e*; do busybox ifconfig "${each##*/}" 10.0.2.15 netmask 255.255.255.0; done
if [ -d /sys/firmware/efi ]; then
    modprobe efivarfs
    mount -t efivarfs efivarfs /sys/firmware/efi/efivars
    mount -t vfat /dev/vda2 /boot/efi
fi
hostname booting
"""
SSHD: Final = "UsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\nUseDNS no\n"
WORDS: Final = "console=ttyS0 net.ifnames=0 loglevel=4 cryptomgr.notests=1"
DEFAULTS: Final = f"""\
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_RECORDFAIL_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_TERMINAL=console
GRUB_DISABLE_OS_PROBER=true
GRUB_CMDLINE_LINUX="{WORDS}"
"""
# What makes the disk boot by itself: Debian's own programs, on the machine.
LOADERS: Final = f"""\
set -e; PATH=/usr/sbin:/usr/bin:/sbin:/bin
grub-install --target=i386-pc /dev/vda
grub-editenv /boot/grub/grubenv create
update-grub
modprobe vfat
mkfs.vfat /dev/vda2; mount -t vfat /dev/vda2 /boot/efi; cd /boot/efi
mkdir -p EFI/BOOT EFI/systemd loader/entries debian
cp /usr/lib/systemd/boot/efi/systemd-bootx64.efi EFI/BOOT/BOOTX64.EFI
cp /usr/lib/systemd/boot/efi/systemd-bootx64.efi EFI/systemd/
cp /boot/vmlinuz-* debian/vmlinuz; cp /boot/initrd.img-* debian/initrd
printf 'default debian.conf\ntimeout 0\n' >loader/loader.conf
printf 'title Debian\nlinux /debian/vmlinuz\ninitrd /debian/initrd\noptions root=/dev/vda3 ro {WORDS}\n' \
    >loader/entries/debian.conf
cd /; umount /boot/efi; sync
"""
CODE: Final = Path("/usr/share/OVMF/OVMF_CODE.fd")
VARIABLES: Final = Path("/usr/share/OVMF/OVMF_VARS.fd")
# Tells QEMU's monitor, which reads nothing from who has gone, and waits until it has done all that it was told.
TELL: Final = """\
import socket, sys, time
with open("{told}", "a") as told:
    print(time.monotonic(), *sys.argv[1:], file=told)
with socket.socket(socket.AF_UNIX) as monitor:
    monitor.connect("{monitor}")
    monitor.sendall("\\n".join([*sys.argv[1:], "info status", ""]).encode())
    heard = b""
    while b"VM status" not in heard:
        piece = monitor.recv(4096)
        if not piece:
            sys.exit("the machine is off")
        heard += piece
"""
STUDY: Final = """\
study: booting
place:
  ssh:
    host: booting
    config: {config}
    boot: {{by: {by}, kernel: {first}, limit: {limit}s, power: "{power}"}}
workload:
  command:
    run: >-
      sh -c "{run}"
factors:
  kernel:
    old: {{}}
    new: {{place: {{ssh: {{boot: {other}}}}}}}
arm: kernel
trials: {{blocks: {blocks}, seed: 3}}
metrics: {{primary: elapsed_s}}
telemetry: {{interval: 500ms}}
"""
BOOT_LIMIT_S: Final = 1200  # one that boots beside other work, while nothing of it waits for a limit
# Of VGA in text mode: a character and its colours, 25 rows of 80.
TEXT_SCREEN: Final = 0xB8000
TEXT_COLUMNS: Final = 80
TEXT_ROWS: Final = 25
CONSOLE_END: Final = 4000
PATIENCE_S: Final = 1800.0
LOOK_EVERY_S: Final = 1.0
RECIPE: Final = (PACKAGES, *MODULES, PARTITIONS, str(ROOT_MIB), INIT, RC, SSHD, DEFAULTS, LOADERS)


@dataclass(frozen=True)
class HostImage:
    """What hosts are made from: a disk, keys, and kernels whose names are their releases' first two numbers."""

    directory: Path

    @property
    def disk(self) -> Path:
        return self.directory / "disk.img"

    def kernel(self, version: str) -> Path:
        """The bzImage, with its modules beside it."""
        (image,) = (self.directory / f"kernel-{version}" / "boot").glob("vmlinuz-*")
        return image

    def release(self, version: str) -> str:
        """As `uname -r` prints it."""
        return self.kernel(version).name.removeprefix("vmlinuz-")


@dataclass
class BootingHost:
    """A machine that runs: `booting` in an ssh configuration of its own."""

    image: HostImage
    directory: Path
    port: int
    qemu: subprocess.Popen[bytes] | None = None
    console: Path = field(init=False)

    def __post_init__(self) -> None:
        self.console = self.directory / "console"
        self.config.write_text(
            f"Host booting\n  HostName 127.0.0.1\n  Port {self.port}\n  User root\n"
            f"  IdentityFile {self.image.directory}/user\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.directory}/known_hosts\n  GlobalKnownHostsFile none\n"
            # What an emulated processor computes in less than a second.
            "  StrictHostKeyChecking yes\n  KexAlgorithms curve25519-sha256\n  Ciphers aes128-gcm@openssh.com\n"
        )
        ssh.allow_configuration(self.config)
        host_key = (self.image.directory / "host.pub").read_text()
        self.teller.write_text(TELL.format(monitor=self.monitor, told=self.told))
        self.told.touch()
        (self.directory / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {host_key}")

    @property
    def config(self) -> Path:
        return self.directory / "ssh_config"

    @property
    def monitor(self) -> Path:
        return self.directory / "monitor"

    @property
    def teller(self) -> Path:
        return self.directory / "tell.py"

    @property
    def told(self) -> Path:
        """When its monitor was told what."""
        return self.directory / "told"

    def resets_s(self) -> list[float]:
        """When it was reset from outside, on the monotonic clock."""
        lines = [line.split() for line in self.told.read_text().splitlines()]
        return [float(time_s) for time_s, *words in lines if "system_reset" in words]

    @property
    def power(self) -> str:
        """The command line that resets it, as `ipmitool … power cycle` a real one: also when it hangs."""
        return f"{sys.executable} {self.teller} system_reset cont"

    def run(self, script: str, *, check: bool = True) -> str:
        """What a script prints there."""
        argv = ["ssh", "-F", str(self.config), "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "booting", script]
        return subprocess.run(argv, capture_output=True, text=True, check=check, stdin=subprocess.DEVNULL).stdout

    def answers(self) -> bool:
        return bool(self.run("echo answers", check=False))

    def turn_on(self, *words: str) -> None:
        """Begins to boot it; `words`: further ones of QEMU's."""
        argv = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35"]
        argv += ["-accel", "tcg,thread=multi", "-cpu", EMULATED_PROCESSOR, "-m", "448M", "-vga", "std"]
        argv += ["-drive", f"if=virtio,file={self.directory}/disk.qcow2,format=qcow2,cache=unsafe"]
        argv += ["-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{self.port}-:22"]
        argv += ["-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci"]
        argv += ["-device", "i6300esb", "-action", "watchdog=reset"]
        argv += ["-serial", f"file:{self.console}", "-monitor", f"unix:{self.monitor},server=on,wait=off"]
        if self.variables.exists():
            argv += ["-drive", f"if=pflash,format=raw,readonly=on,file={CODE}"]
            argv += ["-drive", f"if=pflash,format=raw,file={self.variables}"]
        ends_with_us = ["setpriv", "--pdeathsig", "KILL", "--"]  # whoever interrupts tests leaves no machine running
        self.qemu = subprocess.Popen([*ends_with_us, *argv, *words], stdin=subprocess.DEVNULL)

    @property
    def variables(self) -> Path:
        """Of UEFI firmware, if the machine has that."""
        return self.directory / "variables.fd"

    def cut_power(self) -> None:
        """Ends it at once."""
        assert self.qemu is not None
        self.qemu.kill()
        self.qemu.wait()

    def say(self, command: str) -> None:
        """Tells QEMU's monitor, and waits until it is done."""
        subprocess.run([sys.executable, self.teller, command], check=True)

    def shown(self) -> str:
        """The end of its console, and its screen, where its firmware and GRUB print."""
        screen = self.directory / "screen"
        self.say(f'pmemsave {TEXT_SCREEN} {2 * TEXT_COLUMNS * TEXT_ROWS} "{screen}"')  # bare, the path would divide
        characters = screen.read_bytes()[::2].decode("cp437").replace("\0", " ")
        rows = [characters[at : at + TEXT_COLUMNS].rstrip() for at in range(0, len(characters), TEXT_COLUMNS)]
        console = self.console.read_text(errors="replace")[-CONSOLE_END:]
        return "\n".join(["its console:", console, "its screen:", *filter(None, rows)])


def patiently(condition: Callable[[], object], what: str) -> None:
    """Waits as `eventually` does, for what takes several boots of an emulated machine beside other work."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(LOOK_EVERY_S)


def study(here: Desk, host: BootingHost, *, by: str, **others: str | int) -> Path:
    """`others`: `blocks`, what each trial does (`run`), and how the second arm boots differently (`other`)."""
    fields = {
        "config": host.config,
        "power": host.power,
        "limit": BOOT_LIMIT_S,
        "first": host.image.kernel("6.1"),
        "other": f"{{kernel: {host.image.kernel('6.12')}}}",
        "blocks": 1,
        "run": "true",
        **others,
    }
    return here.study(STUDY.format(by=by, **fields))


def require_default(host: BootingHost) -> None:
    """That it runs the kernel it boots by itself, and no run has left anything there."""
    patiently(host.answers, "the host does not answer")
    assert token_of(host.run("cat /proc/cmdline")) == ""
    assert host.run("uname -r").strip() == host.image.release("6.1")
    assert host.run("ls /boot/fairtrial/journal.json", check=False) == ""


@contextmanager
def started(image: HostImage, directory: Path, *words: str, uefi: bool = False) -> Iterator[BootingHost]:
    """Boots a machine for some tests, on a disk whose changes go with it; `words`: further ones of QEMU's."""
    directory.mkdir(mode=0o700)
    overlay = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", image.disk, directory / "disk.qcow2"]
    subprocess.run(overlay, check=True)
    host = BootingHost(image, directory, free_port())
    if uefi:
        shutil.copy(VARIABLES, host.variables)
    host.turn_on(*words)
    try:
        patiently(host.answers, f"the host does not answer: {host.console}")
        yield host
    finally:
        host.cut_power()


def made() -> HostImage:
    """The image, which stays on this machine for the next test run."""
    recipe = hashlib.sha256("\n".join(RECIPE).encode()).hexdigest()[:12]
    final = cache_directory() / "tests" / f"booting-host-{recipe}"
    with alone_with("booting-host"):
        if not final.is_dir():
            new = final.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
            _make(HostImage(new))
            new.replace(final)
    return HostImage(final)


def _make(image: HostImage) -> None:
    cache = cache_directory() / "kernels"
    for version in ("6.1", "6.12"):
        _prune(kernels.find(f"debian-{version}", cache=cache), image.directory / f"kernel-{version}")
    for name in ("host", "user"):
        make_key(image.directory / name)
    root = image.directory / "root"
    mirrored = ["mmdebstrap", "--variant=essential", f"--include={PACKAGES}", "--dpkgopt=path-exclude=/usr/share/doc/*"]
    subprocess.run([*mirrored, "--dpkgopt=path-exclude=/usr/share/locale/*", "bookworm", root], check=True)
    _furnish(image, root)
    _write_disk(image, root)
    shutil.rmtree(root)
    _install_loaders(image)


def _install_loaders(image: HostImage) -> None:
    """Starts the machine once without a boot loader, so that Debian's programs can make the disk boot by itself."""
    kernel, first = image.kernel("6.1"), image.directory / "first"
    initial, words = image.directory / "initrd", f"root=/dev/vda3 ro {WORDS}"
    with started(image, first, "-kernel", str(kernel), "-initrd", str(initial), "-append", words) as host:
        host.run(LOADERS)
        host.run("/sbin/poweroff", check=False)
        assert host.qemu is not None
        host.qemu.wait(PATIENCE_S)
    subprocess.run(["qemu-img", "convert", "-O", "raw", first / "disk.qcow2", image.directory / "whole"], check=True)
    (image.directory / "whole").replace(image.disk)
    shutil.rmtree(first)


def _prune(kernel: kernels.Kernel, target: Path) -> None:
    directory, available = target / "lib/modules" / kernel.release, modules.available(kernel.modules)
    (target / "boot").mkdir(parents=True)
    shutil.copy(kernel.image, target / "boot" / f"vmlinuz-{kernel.release}")
    shutil.copy(kernel.image.parent / f"config-{kernel.release}", target / "boot")
    for name, content in modules.in_order(MODULES, available).items():
        path = directory / available[name].relative_to(kernel.modules).with_suffix("").with_suffix(".ko")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        if (kernel.modules / name).is_file():
            shutil.copy(kernel.modules / name, directory / name)


def _furnish(image: HostImage, root: Path) -> None:
    default = image.directory / "kernel-6.1"
    release = image.release("6.1")
    shutil.copytree(default / "boot", root / "boot", dirs_exist_ok=True)
    shutil.copytree(default / "lib/modules", root / "usr/lib/modules", dirs_exist_ok=True)
    files = {"inittab": INIT, "rc": RC, "default/grub": DEFAULTS, "fstab": "/dev/vda3 / ext4 rw 0 1\n"}
    for path, text in files.items():
        (root / "etc" / path).write_text(text)
    (root / "etc/rc").chmod(0o755)
    for name in ("init", "reboot", "poweroff"):
        (root / "usr/sbin" / name).unlink(missing_ok=True)
        (root / "usr/sbin" / name).symlink_to("/usr/bin/busybox")
    (root / "etc/ssh/sshd_config.d/test.conf").write_text(SSHD)
    shutil.copy(image.directory / "host", root / "etc/ssh/ssh_host_ed25519_key")
    shutil.copy(image.directory / "host.pub", root / "etc/ssh/ssh_host_ed25519_key.pub")
    (root / "root/.ssh").mkdir(mode=0o700)
    shutil.copy(image.directory / "user.pub", root / "root/.ssh/authorized_keys")
    (root / "boot/efi").mkdir()
    inside = f"PATH=/usr/sbin:/usr/bin; depmod {release}; mkinitramfs -o /boot/initrd.img-{release} {release}"
    subprocess.run(["chroot", root, "sh", "-ec", inside], check=True)
    shutil.copy(root / f"boot/initrd.img-{release}", image.directory / "initrd")


def _write_disk(image: HostImage, root: Path) -> None:
    with image.disk.open("wb") as disk:
        disk.truncate(DISK_BYTES)
    subprocess.run(["sfdisk", "-q", image.disk], input=PARTITIONS, text=True, check=True)
    made = ["mke2fs", "-q", "-F", "-t", "ext4", "-d", root, "-E", f"offset={FIRST_BYTE}", image.disk, f"{ROOT_MIB}M"]
    subprocess.run(made, check=True)
