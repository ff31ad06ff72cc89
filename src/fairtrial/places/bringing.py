"""Bringing the agent to where a command line runs others, by its hash: it stays there for the next time.

Owns the scripts that run there before the agent does. They need sh, sha256sum, base64 and mktemp.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
from collections.abc import Iterator
from typing import Final, Protocol

from fairtrial.places.local import STATE_DIRECTORIES, STATE_VARIABLE
from fairtrial.programs import Act
from fairtrial.record.events import KEPT_VARIABLE
from fairtrial.wire import Limits, find_agent

PUSH_S: Final = 600.0  # 10 MB over a slow line
NEEDS: Final = "the agent needs a shell, coreutils, findutils, and room in ~/.cache or in a named state_directory"
HOME_CACHE: Final = "${XDG_CACHE_HOME:-$HOME/.cache}/fairtrial/agents"
# By an executable's e_machine (elf(5)): its processors as uname(2) names them, and as it names them to those who want
# 32 bits (personality(2)).
MACHINES: Final = {62: ("x86_64", "i?86"), 183: ("aarch64", "armv8l")}
ANY: Final = ("*", "*")

LOOK: Final = """
set -eu
rm -f --one-file-system 2>/dev/null && find / -maxdepth 0 -printf '' 2>/dev/null || {
    echo "rm and find lack options that coreutils' and findutils' have" >&2
    exit 1
}
case "$(uname -m)" in
MACHINE | NARROWED) ;;
*) echo "its processors are $(uname -m), the agent's MACHINE" >&2; exit 1 ;;
esac
agent="CACHE/HASH/fairtrial-agent"
whole() { [ -x "$agent" ] && echo "HASH  $agent" | sha256sum -c >/dev/null 2>&1; }
if whole; then echo "ready $agent"; else echo missing; fi
"""
PUSH: Final = """
set -eu
umask 077
mkdir -p "CACHE/HASH"
new=$(mktemp "CACHE/HASH/.new.XXXXXX")
trap 'rm -f "$new"' EXIT
cat >"$new"
echo "HASH  $new" | sha256sum -c >/dev/null 2>&1 || { echo "the agent arrived damaged" >&2; exit 1; }
chmod 755 "$new"
mv "$new" "CACHE/HASH/fairtrial-agent"
echo "ready CACHE/HASH/fairtrial-agent"
"""
# `$@` are pieces of a script, in base64.
RUN: Final = 'script=$(printf %s "$@" | base64 -d) && eval "$script"'
MOST_LETTERS: Final = 512  # of a word: some csh reads no longer ones than 1024


class RunScript(Protocol):
    """Runs a shell script there, with bytes on its standard input."""

    def __call__(self, script: str, data: bytes, *, limit_s: float) -> str:
        """Returns the last line that it prints.

        Raises:
            PlaceError: it fails or takes longer than the limit.
        """


def acts(state_directory: str | None) -> Iterator[Act]:
    """What is done there so that an agent runs."""
    yield Act("writes", "the agent, below ~/.cache/fairtrial/agents or the state directory", "once")
    yield Act("runs", "fairtrial-agent serve", "as long as the run")
    yield Act("writes", state_directory or STATE_DIRECTORIES, "data, work directories, undo journal")


def serving(run: RunScript, *, limits: Limits, state_directory: str | None, cache: str | None = None) -> str:
    """Brings the agent there unless it is there already; returns the script that starts it.

    Args:
        run: reaches that place.
        limits: which the agent keeps.
        state_directory: its own there; None: its default.
        cache: where it is kept there; None: in the cache of the user's home.

    Raises:
        PlaceError: what `run` says.
    """
    content = find_agent().read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    kept = _quotable(cache) if cache else HOME_CACHE
    machine, narrowed = MACHINES.get(int.from_bytes(content[18:20], "little"), ANY)
    scripts = (LOOK.replace("MACHINE", machine).replace("NARROWED", narrowed), PUSH)
    look, push = (script.replace("HASH", digest).replace("CACHE", kept) for script in scripts)
    answer = run(look, b"", limit_s=limits.short_s)
    if not answer.startswith("ready "):
        answer = run(push, content, limit_s=PUSH_S)
    own = {STATE_VARIABLE: state_directory, KEPT_VARIABLE: os.environ.get(KEPT_VARIABLE)}
    environment = {**limits.environment(), **{name: value for name, value in own.items() if value}}
    variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
    return f"exec env {variables} {shlex.quote(answer.removeprefix('ready ').strip())} serve"


def in_any_shell(script: str) -> str:
    """A line by which a shell of whatever kind has sh run a script: csh, say, takes no quoted newline and reads `!`."""
    packed = base64.b64encode(script.encode()).decode()
    words = (packed[start : start + MOST_LETTERS] for start in range(0, len(packed), MOST_LETTERS))
    return f"sh -c '{RUN}' sh {' '.join(words)}"


def _quotable(path: str) -> str:
    """For a place between double quotes of a shell."""
    return "".join(f"\\{letter}" if letter in '\\"$`' else letter for letter in path)
