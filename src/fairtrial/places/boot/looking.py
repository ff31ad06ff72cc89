"""What a host's boot loader, firmware and kernel say of booting another kernel once.

Owns the script that reads it. It must not judge: each way does that itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fairtrial.wire.open_place import OpenPlace

PATH: Final = 'PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"; LC_ALL=C; export PATH LC_ALL\n'
PROGRAMS: Final = (
    *("kexec", "grub-reboot", "grub-editenv", "grub-probe", "grub-mkrelpath"),
    *("grub2-reboot", "grub2-editenv", "grub2-probe", "grub2-mkrelpath"),
    *("bootctl", "efibootmgr", "findmnt", "fsfreeze", "lsblk", "mkinitramfs", "dracut", "depmod", "tar"),
)
# Numbers of our boot options among what efibootmgr(8) prints, with a tab before the path from version 18 on.
OUR_ENTRIES: Final = r"sed -n 's/^Boot\([0-9A-F]*\)[* ] fairtrial\([[:cntrl:]].*\)*$/\1/p'"
# `$1` is the root of the files, for tests. Each line is a name and a value.
SCRIPT: Final = (
    PATH
    + """
root=$1
say() { echo "$1 $2"; }
say boot_id "$(cat "$root/proc/sys/kernel/random/boot_id")"
say command_line "$(cat "$root/proc/cmdline")"
say release "$(uname -r)"
say microcode "$(grep -m 1 '^microcode' "$root/proc/cpuinfo" | tr -d '\\t' | cut -d: -f2)"
say notes "$(od -An -v -tx1 "$root/sys/kernel/notes" 2>/dev/null | tr -d ' \\n')"
say lockdown "$(sed -n 's/.*\\[\\(.*\\)\\].*/\\1/p' "$root/sys/kernel/security/lockdown" 2>/dev/null)"
say kexec_disabled "$(cat "$root/proc/sys/kernel/kexec_load_disabled" 2>/dev/null)"
say user "$(id -u)"
for each in PROGRAMS; do
    path=$(command -v "$each") && say "program/$each" "$path"
done
if [ -d "$root/sys/firmware/efi" ]; then
    say efi yes
    vars="$root/sys/firmware/efi/efivars"
    say secure_boot "$(od -An -tu1 -j4 "$vars"/SecureBoot-* 2>/dev/null | tr -d ' ')"
    say bootnext "$(efibootmgr 2>/dev/null | sed -n 's/^BootNext: //p')"
    say entries "$(efibootmgr 2>/dev/null | OUR_ENTRIES | tr '\\n' ' ')"
    say esp "$(bootctl --print-esp-path 2>/dev/null)"
    say esp_device "$(findmnt -no SOURCE "$(bootctl --print-esp-path 2>/dev/null)" 2>/dev/null)"
    say boot "$(bootctl --print-boot-path 2>/dev/null)"
    set -- "$vars"/LoaderInfo-*; [ -e "$1" ] && say systemd_boot yes
    set -- "$vars"/LoaderEntryOneShot-*; [ -e "$1" ] && say oneshot yes
    say default "$(sed -n 's/^default[[:space:]]*//p' "$(bootctl --print-esp-path 2>/dev/null)/loader/loader.conf")"
fi
for directory in "$root/boot/grub" "$root/boot/grub2"; do
    [ -f "$directory/grub.cfg" ] || continue
    say grub "$directory"
    say grub_config "$(sha256sum <"$directory/grub.cfg" | cut -d' ' -f1)"
    grep -q 'set next_entry=$' "$directory/grub.cfg" && grep -q 'save_env next_entry' "$directory/grub.cfg" &&
        say grub_once yes
    grep -q 'source .*custom.cfg' "$directory/grub.cfg" && say grub_custom yes
    [ -e "$directory/custom.cfg" ] && say custom "$(head -n 1 "$directory/custom.cfg")"
    for family in grub grub2; do
        command -v "$family-probe" >/dev/null || continue
        say grub_abstraction "$("$family-probe" --target=abstraction "$directory" 2>&1 | tr '\\n' ' ')"
        say grub_fs "$("$family-probe" --target=fs "$directory" 2>&1 | tr '\\n' ' ')"
        say grub_uuid "$("$family-probe" --target=fs_uuid "$directory" 2>/dev/null)"
        "$family-editenv" "$directory/grubenv" list 2>/dev/null | sed 's/^\\([a-z_]*\\)=/grubenv\\/\\1 /'
    done
    break
done
""".replace("PROGRAMS", " ".join(PROGRAMS)).replace("OUR_ENTRIES", OUR_ENTRIES)
)
BUILD_ID: Final = 3  # type of an ELF note (NT_GNU_BUILD_ID), whose name is `GNU`


@dataclass(frozen=True)
class BootObservation:
    """What was seen of a host, by name."""

    values: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        """A value; empty where there is none."""
        return self.values.get(name, "")

    def has(self, *programs: str) -> bool:
        """Whether all of these are installed."""
        return all(f"program/{program}" in self.values for program in programs)

    @property
    def grub_family(self) -> str:
        """What the names of GRUB's programs begin with there."""
        return "grub2" if self.has("grub2-reboot") else "grub"

    @property
    def build_id(self) -> str:
        """Of the kernel that runs."""
        try:
            return build_id(bytes.fromhex(self["notes"]))
        except ValueError:
            return ""


def look(place: OpenPlace, *, root: str = "") -> BootObservation:
    """Looks at a host; what is not there is absent, never an error.

    Raises:
        StreamLostError: the stream to the host ended.
    """
    return parsed(place.execute(["sh", "-c", SCRIPT, "sh", root]).stdout)


def parsed(printed: str) -> BootObservation:
    """What the script printed."""
    lines = (line.partition(" ") for line in printed.splitlines())
    return BootObservation({name: value.strip() for name, _, value in lines})


def build_id(notes: bytes) -> str:
    """The build id among the notes of an ELF file (elf(5)); empty if there is none."""
    at = 0
    while at + 12 <= len(notes):
        sizes = [int.from_bytes(notes[at + offset : at + offset + 4], "little") for offset in (0, 4, 8)]
        name_at = at + 12
        content_at = name_at + (sizes[0] + 3) // 4 * 4
        if sizes[2] == BUILD_ID and notes[name_at : name_at + 4] == b"GNU\0":
            return notes[content_at : content_at + sizes[1]].hex()
        at = content_at + (sizes[1] + 3) // 4 * 4
    return ""
