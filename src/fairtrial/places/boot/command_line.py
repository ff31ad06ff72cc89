"""The command line of a kernel that is booted once; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MARK: Final = "fairtrial.boot"  # the kernel passes over a word with a dot that names no module of its own
# The same for all arms: what goes wrong ends in the host's default kernel, and is not measured.
NETS: Final = ("panic=10", "oops=panic", "softlockup_panic=1", "nmi_watchdog=panic")
FROM_LOADER: Final = ("BOOT_IMAGE", "initrd", MARK)


def once(default: str, parameters: Sequence[str], *, token: str) -> str:
    """For one boot: the default's words, those that end what hangs, the study's, and the mark of this boot.

    What comes after `--` is for the first process, and stays there.
    """
    words = [word for word in default.split() if word.partition("=")[0] not in FROM_LOADER]
    end = words.index("--") if "--" in words else len(words)
    return " ".join([*words[:end], *NETS, *parameters, f"{MARK}={token}", *words[end:]])


def token_of(command_line: str) -> str:
    """The mark of the boot that a kernel was given; empty for a kernel that nobody booted once."""
    marks = [word.partition("=")[2] for word in command_line.split() if word.startswith(f"{MARK}=")]
    return marks[-1] if marks else ""
