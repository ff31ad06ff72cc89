"""A service that is there already: reached, restored and set by the study's commands, and set back whatever ends."""

from __future__ import annotations

import hashlib
import secrets
import shlex
import time
from collections.abc import Callable, Mapping
from typing import Final

from fairtrial.errors import PlaceError, StreamLostError, SystemStartError
from fairtrial.protocol.generated import ExecuteAction, ExecuteInverse, Step
from fairtrial.systems import server
from fairtrial.systems.existing.parameters import RestoreCommand
from fairtrial.systems.instance import Identity
from fairtrial.systems.service import lock, read_back, rendering
from fairtrial.systems.service.parameters import OPTION, VALUE, ServiceAt, ServiceParameters
from fairtrial.wire.open_place import OpenPlace

RESTORE_S: Final = 24 * 3600.0
LOST: Final = "\N{REPLACEMENT CHARACTER}"  # where bytes are no text
# Without the file nothing is left to restore: whoever has restored it may have died before that was noted.
RESTORE: Final = ("sh", "-c", 'test ! -e "$0" || . "$0"')
RESTORING: Final = """\
line='
'
reading() {{
    value=$({read} && echo .) || exit
    value=${{value%.}}
    value=${{value%"$line"}}
    value=${{value##*"$line"}}
}}
restored() {{
    "$@" || return
    reading
    [ "$value" = {original} ]
}}
reading
if [ "$value" != {original} ] && {is_own}; then
    {tries} || {{
        echo "the service does not take the value that it had, which is in $0: set it by hand, then remove $0" >&2
        exit 1
    }}
fi
rm "$0"
"""


def address(at: ServiceAt) -> str:
    """Where it is, in words."""
    return ", ".join(f"{at.host}:{port}" for port in at.ports.values()) or at.host


def handed_in(at: ServiceAt, *, work: str) -> dict[str, str]:
    """What its command lines may name."""
    return {"host": at.host, "work": work, **{name: str(port) for name, port in at.ports.items()}}


def identity(place: OpenPlace, parameters: ServiceParameters, at: ServiceAt) -> Identity:
    """What it says of itself: its program may be out of reach.

    Raises:
        PlaceError: the version command fails.
    """
    version = ""
    if parameters.version is not None:
        words = rendering.argv(parameters.version, handed_in(at, work=""))
        version = place.require(words, hint="fix system.service.version").strip()
    digest = hashlib.sha256(f"{address(at)} {version}".encode()).hexdigest()
    return Identity(version=version, sha256=digest, facts={"server": address(at)})


def await_ready(at: ServiceAt, ready: Callable[[float], bool], *, limit_s: float) -> None:
    """Waits until it answers.

    Raises:
        SystemStartError: it does not in time.
    """
    deadline = time.monotonic() + limit_s
    while not ready(max(deadline - time.monotonic(), server.SHORTEST_LOOK_S)):
        if time.monotonic() > deadline:
            raise SystemStartError(
                f"the service at {address(at)} did not answer within {limit_s:g} s",
                hint="is it there? fix system.service.ready, or system.service.at",
            )
        time.sleep(server.POLL_S)


def restore(place: OpenPlace, at: ServiceAt, named: Mapping[str, str]) -> None:
    """Runs the study's own command, if there is one.

    Raises:
        PlaceError: it fails.
    """
    if isinstance(at.restore, RestoreCommand):
        words = rendering.argv(at.restore.command, named)
        place.require(words, hint="fix system.service.at.restore", timeout_s=RESTORE_S)


class OwnOptions:
    """Options of one that is there as a trial sets them; the way back is at the place before the first is changed.

    A way back leaves alone what somebody else has set meanwhile, and looks whether the service took what it had before.

    Args:
        place: where the commands run.
        parameters: the options, and the commands that set and read one.
        at: the service.
        handed_in: what the commands may name.
    """

    def __init__(
        self, place: OpenPlace, parameters: ServiceParameters, at: ServiceAt, *, handed_in: Mapping[str, str]
    ) -> None:
        self._place, self._parameters, self._handed_in = place, parameters, handed_in
        begin = str(place.state_directory / "originals" / lock.originals(at))
        self._paths = {name: f"{begin}-{secrets.token_hex(8)}.sh" for name in parameters.options}
        self._originals: Mapping[str, str] = {}

    def set(self) -> None:
        """Sets every option.

        Raises:
            SystemStartError: one cannot be set.
        """
        names = self._parameters.options
        self._originals = read_back.printed(self._place, self._parameters, self._handed_in, names=names)
        if lost := [name for name, original in self._originals.items() if LOST in original]:
            raise SystemStartError(
                f"option {lost[0]}: its value is not text, so it could not be restored", hint="leave the option out"
            )
        for name, value in self._parameters.options.items():
            restore = [*RESTORE, self._paths[name]]
            # In the journal before there is anything to restore: a file that nobody knows of would be left for ever.
            self._place.agent.change(
                Step(
                    name=f"option {name}",
                    action=ExecuteAction(argv=restore),
                    inverse=ExecuteInverse(argv=restore, lasting=True),
                )
            )
            self._keep(name, set_to=None)
            argv = self._setting(name, rendering.value_text(value))
            try:
                self._place.require(argv, hint=f"try `{shlex.join(argv)}` by hand")
            except StreamLostError:
                raise
            except PlaceError as error:
                raise SystemStartError(f"option {name} cannot be set: {error}", hint=error.hint) from error

    def note(self, printed: Mapping[str, str]) -> None:
        """Has only what is in effect now restored, as `read_back.printed` has it: else it is somebody else's."""
        for name in self._originals:
            self._keep(name, set_to=printed[name])

    def _setting(self, name: str, value: str) -> list[str]:
        return rendering.argv(self._parameters.set_by or "", {**self._handed_in, OPTION: name, VALUE: value})

    def _keep(self, name: str, *, set_to: str | None) -> None:
        original = self._originals[name]
        # Blanks around a value are the reading command's own more often than the value's.
        values = dict.fromkeys((original.strip(), original))
        script = RESTORING.format(
            read=shlex.join(read_back.argv(self._parameters, name, self._handed_in)),
            original=shlex.quote(original),
            is_own="true" if set_to is None else f'[ "$value" = {shlex.quote(set_to)} ]',
            tries=" || ".join(f"restored {shlex.join(self._setting(name, value))}" for value in values),
        )
        self._place.agent.put(self._paths[name], script.encode(), mode=0o600)
