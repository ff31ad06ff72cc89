"""Bringing the agent to where a command line runs others, by its hash: it stays there for the next time.

Owns the scripts that run there before the agent does. They need sh, sha256sum and mktemp.
"""

from __future__ import annotations

import hashlib
import shlex
from typing import Final, Protocol

from fairtrial.places.local import STATE_VARIABLE
from fairtrial.wire import Limits, find_agent

PUSH_S: Final = 600.0  # 10 MB over a slow line
NEEDS: Final = "the agent needs sh, sha256sum, mktemp and room in ~/.cache"

LOOK: Final = """
set -eu
cache="${XDG_CACHE_HOME:-$HOME/.cache}/fairtrial/agents"
agent="$cache/HASH/fairtrial-agent"
if [ -x "$agent" ] && echo "HASH  $agent" | sha256sum -c --status; then echo "ready $agent"; else echo missing; fi
"""
PUSH: Final = """
set -eu
umask 077
cache="${XDG_CACHE_HOME:-$HOME/.cache}/fairtrial/agents"
mkdir -p "$cache/HASH"
new=$(mktemp "$cache/HASH/.new.XXXXXX")
trap 'rm -f "$new"' EXIT
cat >"$new"
echo "HASH  $new" | sha256sum -c --status || { echo "the agent arrived damaged" >&2; exit 1; }
chmod 755 "$new"
mv "$new" "$cache/HASH/fairtrial-agent"
echo "ready $cache/HASH/fairtrial-agent"
"""


class RunScript(Protocol):
    """Runs a shell script there, with bytes on its standard input."""

    def __call__(self, script: str, data: bytes, *, limit_s: float) -> str:
        """Returns the last line that it prints.

        Raises:
            PlaceError: it fails or takes longer than the limit.
        """


def serving(run: RunScript, *, limits: Limits, state_directory: str | None) -> str:
    """Brings the agent there unless it is there already; returns the script that starts it.

    Args:
        run: reaches that place.
        limits: which the agent keeps.
        state_directory: its own there; None: its default.

    Raises:
        PlaceError: what `run` says.
    """
    content = find_agent().read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    answer = run(LOOK.replace("HASH", digest), b"", limit_s=limits.short_s)
    if not answer.startswith("ready "):
        answer = run(PUSH.replace("HASH", digest), content, limit_s=PUSH_S)
    environment = {**limits.environment(), **({STATE_VARIABLE: state_directory} if state_directory else {})}
    variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
    return f"exec env {variables} {shlex.quote(answer.removeprefix('ready ').strip())} serve"
