"""One study at a time at a service that is there already, of all that one user's agents on a machine reach.

A process holds a lock file for every address, and ends with the agent. The file says whose options may be left changed.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.protocol.endpoints import is_loopback
from fairtrial.systems.service.parameters import ServiceAt
from fairtrial.wire.agent import Process
from fairtrial.wire.open_place import OpenPlace

KEY_DIGITS: Final = 8
# In the directory of the machine's own lock (crates/state). An agent that ends frees its locks before it has restored
# everything, so this waits three seconds, for either.
LOCK: Final = """
state=$1 key=$2 holder=$3
command -v flock >/dev/null || { echo "there is no flock" >&2; exit 1; }
directory=${XDG_STATE_HOME:-${HOME:-$state}/.local/state}/fairtrial
[ "$(id -u)" != 0 ] || directory=/run/fairtrial
directory=${FAIRTRIAL_MACHINE_DIRECTORY:-$directory}
mkdir -p "$directory" || exit
umask 077
file=$directory/service-$key.lock
exec 9<>"$file" || exit
changed() {
    IFS= read -r last <"$file" && [ "$last" != "$state" ] || return
    for each in "$last/originals/service-"*"$key"*.sh; do [ ! -e "$each" ] || return 0; done
    return 1
}
tries=0 locked=
until [ "$locked" ] && ! changed; do
    if [ ! "$locked" ] && flock -n 9; then locked=yes; continue; fi
    [ $tries -lt 30 ] || break
    tries=$((tries + 1))
    sleep 0.1
done
if [ ! "$locked" ]; then echo "held $(tail -n +2 "$file")"; exit; fi
if changed; then echo "left $last"; exit; fi
printf '%s\\n' "$state" "$holder" >"$file"
echo taken
exec sleep infinity
"""


def originals(at: ServiceAt) -> str:
    """How the names of files begin that say how to restore its options."""
    return "-".join(["service", *(_key(each) for each in _addresses(at))])


def hold(place: OpenPlace, at: ServiceAt, held: dict[str, Process], *, holder: str) -> None:
    """Takes the locks of a service's addresses that are not in `held` yet.

    Raises:
        PlaceError: another study has one, or has left options changed.
    """
    for address in _addresses(at):
        if address not in held or held[address].exited is not None:
            held[address] = _taken(place, address, holder)


def _addresses(at: ServiceAt) -> Iterator[str]:
    host = "localhost" if is_loopback(at.host) else at.host
    yield from sorted({f"{host}:{port}" for port in at.ports.values()} or {host})


def _key(address: str) -> str:
    return hashlib.sha256(address.encode()).hexdigest()[:KEY_DIGITS]


def _taken(place: OpenPlace, address: str, holder: str) -> Process:
    outcomes: list[str] = []
    errors: list[str] = []
    said = threading.Event()

    def hear(stream: str, line: str) -> None:
        (outcomes if stream == "stdout" else errors).append(line)
        if outcomes:
            said.set()

    argv = ["sh", "-c", LOCK, "sh", str(place.state_directory), _key(address), holder]
    process = place.agent.spawn(name="service-lock", argv=argv, on_line=hear)
    process.wait_until(said)  # it gives up by itself
    outcome, _, whose = (outcomes or [""])[0].partition(" ")
    if outcome == "taken":
        return process
    process.wait(place.limits.short_s)
    if outcome == "held":
        raise PlaceError(f"another study uses the service at {address}: {whose}", hint="wait until it has ended")
    if outcome == "left":
        raise PlaceError(
            f"a study that died has left options of the service at {address} changed",
            hint=f"`fairtrial doctor '{{local: {{state_directory: {whose}}}}}'` restores them; if the place is not "
            "`local`, name that place with the same `state_directory`",
        )
    raise PlaceError(
        f"the lock of the service at {address} cannot be taken: {' '.join(errors)}",
        hint="the place needs flock (util-linux), and a directory for locks",
    )
