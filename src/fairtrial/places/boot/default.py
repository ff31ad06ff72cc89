"""The kernel that a host boots by itself, noted while it runs: others are given its command line."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from fairtrial.errors import NOT_FOUND, AgentError
from fairtrial.places.boot.command_line import token_of
from fairtrial.places.boot.looking import BootObservation
from fairtrial.places.boot.staging import StagedKernel
from fairtrial.places.boot.way import DIRECTORY, in_sh
from fairtrial.wire.open_place import OpenPlace

NOTE: Final = f"{DIRECTORY}/default.json"
# What packages call the files of a kernel; `$2` is our directory where its way to boot needs them elsewhere.
FILES: Final = """
for image in "/boot/vmlinuz-$1" "/lib/modules/$1/vmlinuz"; do [ ! -e "$image" ] || break; done
for initial in "/boot/initrd.img-$1" "/boot/initramfs-$1.img" "/boot/initrd-$1"; do [ ! -e "$initial" ] || break; done
[ -e "$image" ] && [ -e "$initial" ] || { echo "no kernel image and initial file system of $1 in /boot" >&2; exit 1; }
if [ "$2" != "$3" ]; then
    mkdir -p "$2/default"; cp "$image" "$2/default/vmlinuz"; cp "$initial" "$2/default/initrd"
    image=$2/default/vmlinuz initial=$2/default/initrd
fi
sha256sum <"$image" | cut -d' ' -f1; echo "$image"; echo "$initial"
"""


class DefaultKernel(BaseModel):
    """The kernel that a host boots by itself.

    Attributes:
        command_line: it was given.
        release: as `uname -r` says it.
        rehearsed: ways by which it was shown that an entry is booted only once, each with the boot loader's state then.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command_line: str
    release: str
    rehearsed: dict[str, str] = {}

    def staged(self, place: OpenPlace, *, directory: str) -> StagedKernel:
        """Its files, where a way to boot it needs them.

        Raises:
            PlaceError: they are not where packages put them.
        """
        hint = "name a kernel in the study: `boot: {kernel: debian-6.12}`"
        digest, image, initial = in_sh(place, FILES, self.release, directory, DIRECTORY, hint=hint).splitlines()
        return StagedKernel(image, initial, self.release, f"{place.facts.host}'s default kernel", digest)


def known(place: OpenPlace, seen: BootObservation) -> DefaultKernel | None:
    """The default kernel, noted now if it runs; None if another one runs and nobody noted it before."""
    noted = _noted(place)
    if token_of(seen["command_line"]):
        return noted
    rehearsed = {} if noted is None else noted.rehearsed
    default = DefaultKernel(command_line=seen["command_line"], release=seen["release"], rehearsed=rehearsed)
    if default != noted:
        note(place, default)
    return default


def note(place: OpenPlace, default: DefaultKernel) -> None:
    """Keeps it on the host."""
    place.agent.put(NOTE, default.model_dump_json().encode())


def _noted(place: OpenPlace) -> DefaultKernel | None:
    try:
        return DefaultKernel.model_validate_json(place.agent.get(NOTE))
    except ValidationError:
        return None
    except AgentError as error:
        if error.code != NOT_FOUND:
            raise
        return None
