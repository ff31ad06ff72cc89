"""What is done to reach a host by ssh, from a study alone: not even `ssh -G` runs, which runs `Match exec`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fairtrial.places import bringing
from fairtrial.places.boot.parameters import BootParameters
from fairtrial.places.boot.way import DIRECTORY
from fairtrial.places.boot.ways import WAYS
from fairtrial.places.vm import kernels
from fairtrial.programs import Act

MOST_BYTES: Final = 1 << 20
# Keywords of ssh_config(5) whose values are command lines, files of others, or libraries that ssh loads.
RUNNING: Final = re.compile(
    r"^\s*(ProxyCommand|LocalCommand|KnownHostsCommand|Match\b.*\bexec|Include|PKCS11Provider|SecurityKeyProvider|"
    r"IdentityAgent|RemoteCommand|XAuthLocation)\b",
    re.IGNORECASE,
)
OWN: Final = "and what your own ssh configuration says of it (ProxyCommand, Match exec)"


def acts(host: str, *, user: str | None, config: str | None, state: str | None) -> Iterator[Act]:
    """Of a host that is reached."""
    words = ["ssh", *(["-F", config] if config else []), *(["-l", user] if user else []), "--", host]
    yield Act("runs", f"{shlex.join(words)} {'' if config else OWN}".strip(), "as long as the run", here=True)
    for line in _lines(config):
        yield Act("runs", f"{line} ({config})", "by ssh, only if you name that configuration too", here=True)
    yield from bringing.acts(state)


def booting(boot: BootParameters) -> Iterator[Act]:
    """Of one that boots before every trial."""
    way = WAYS[boot.by]
    notes = f"{DIRECTORY}: what the default kernel is, and whose boots are not ended"
    yield Act("writes", notes, "before every boot", user="root")
    if boot.kernel is not None:
        yield from kernels.acts(boot.kernel, boot.sha256)
        yield from _bringing(way.kernels)
    elif way.kernels != DIRECTORY:
        yield Act("writes", f"{way.kernels}: a copy of the default kernel", "before every boot", user="root")
    yield from way.acts()
    words = " ".join(boot.parameters)
    undo = "its default kernel is booted when the run ends"
    what = f"the kernel of the host: {boot.kernel or 'its own default'} by {boot.by}, parameters `{words}`"
    yield Act("changes", what, "before every trial, by a restart of the host", user="root", undo=undo)
    watchdog = "the hardware watchdog, /dev/watchdog0, if nobody uses it and it can be stopped: armed, and fed"
    undo = "stopped with its trial; where the host hangs, it restarts it"
    yield Act("changes", watchdog, "after every boot", user="root", undo=undo)
    if boot.power is not None:
        yield Act("runs", boot.power, "when the host does not come back", here=True)


def _bringing(directory: str) -> Iterator[Act]:
    """Of a kernel beside the host's own, which stays there."""
    when = "once for each kernel, and again where two share a release"
    for what in (
        f"{directory}: the kernel and its initial file system",
        "/lib/modules/{release}: its modules, unless a package put the same there",
        "/boot/config-{release}: its configuration, if there is one and no such file",
    ):
        yield Act("writes", what, when, user="root")
    yield Act("runs", "depmod, and mkinitramfs or dracut", when, user="root")


def _lines(config: str | None) -> list[str]:
    """Those of a configuration that make ssh run or load something."""
    if config is None:
        return []
    path = Path(config).expanduser()
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        return ["whatever is in it: it is not a file that can be read here"]
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.strip() for line in lines if RUNNING.match(line)]
