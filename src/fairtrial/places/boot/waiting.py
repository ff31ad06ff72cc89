"""A host that restarts, as ssh sees it: which boot answers, and what ends a silence."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fairtrial.errors import PlaceError
from fairtrial.places import running
from fairtrial.places.boot.command_line import token_of
from fairtrial.places.boot.parameters import BootParameters
from fairtrial.places.bringing import RunScript

LOOK_EVERY_S: Final = 2.0
ANSWER_S: Final = 30.0  # for a command to end on a host that may be going down
POWER_S: Final = 300.0
# What ssh says of a host that runs, or before it reaches one. Once we have restarted it, what came up may be to blame.
DENIED: Final = "permission denied"  # by the host itself, which is up
KEPT_OUT: Final = (
    DENIED,
    "host key verification failed",
    "host identification has changed",
    "could not resolve",
)
ASK: Final = 'echo "$(cat /proc/sys/kernel/random/boot_id) $(cat /proc/cmdline)"'
# Names of hosts that this process has restarted: a trial's kernel may keep us out from the next one, too.
RESTARTED: Final[set[str]] = set()
# It outlives the session, whose end the command is.
RESTART: Final = """
sync
if [ -d /run/systemd/system ]; then how={systemd}; else how={otherwise}; fi
PATH="$PATH:/usr/sbin:/sbin" setsid sh -c "sleep 1; $how" </dev/null >/dev/null 2>&1 &
echo restarting
"""


@dataclass(frozen=True)
class Answer:
    """A host's boot.

    Attributes:
        boot_id: the kernel's own, new at every boot.
        command_line: of its kernel.
    """

    boot_id: str
    command_line: str

    @property
    def token(self) -> str:
        """Which of our boots it is; empty for the default kernel."""
        return token_of(self.command_line)


@dataclass(frozen=True)
class RestartingHost:
    """A host that is asked over ssh.

    Attributes:
        name: as messages call it.
        run: runs a script there.
        boot: how long it may take, and what turns its power off and on.
    """

    name: str
    run: RunScript
    boot: BootParameters
    sleep: Callable[[float], None] = time.sleep

    def ask(self) -> Answer:
        """Which boot answers.

        Raises:
            PlaceError: none.
        """
        boot_id, _, command_line = self.run(ASK, b"", limit_s=ANSWER_S).partition(" ")
        return Answer(boot_id, command_line)

    def restart(self, commands: tuple[str, str]) -> None:
        """Tells it to go down; `commands` are those under systemd and elsewhere."""
        RESTARTED.add(self.name)
        systemd, otherwise = (shlex.quote(command) for command in commands)
        self.run(RESTART.format(systemd=systemd, otherwise=otherwise), b"", limit_s=ANSWER_S)

    def back(self, *, after: str = "") -> Answer:
        """Waits until it answers from another boot than `after`, at last by its power.

        Raises:
            PlaceError: it does not come back, or ssh may not log in to a host that we have not restarted.
        """
        answer, refusal = self._within_limit(after)
        if answer is not None:
            return answer
        if self.boot.power is None:
            raise PlaceError(
                self._missing(refusal),
                hint="turn it on by hand and resume; `power` in the study's `boot` would have done it",
                field="place.ssh.boot.power",
            )
        _turn(self.boot.power)
        answer, refusal = self._within_limit(after)
        if answer is not None:
            return answer
        raise PlaceError(
            self._missing(refusal, then=f" after `{self.boot.power}`"),
            hint="look at its console, and resume when it is back",
        )

    def _within_limit(self, after: str) -> tuple[Answer | None, PlaceError | None]:
        """The answer of a new boot, or why there was none at last; neither: the boot of before answers.

        Raises:
            PlaceError: we have not restarted it, and what no restart changes keeps us out.
        """
        deadline = time.monotonic() + self.boot.limit
        refusal: PlaceError | None = None
        while True:
            try:
                if (answer := self.ask()).boot_id not in ("", after):
                    return answer, None
                refusal = None
            except PlaceError as error:
                if "no ssh" in str(error) or (self.name not in RESTARTED and DENIED in str(error).lower()):
                    raise
                refusal = error  # a host that is still starting may refuse, too
            if time.monotonic() >= deadline:
                break
            self.sleep(LOOK_EVERY_S)
        if refusal is not None and self.name not in RESTARTED and _keeps_out(refusal):
            raise refusal
        return None, refusal

    def _missing(self, refusal: PlaceError | None, *, then: str = "") -> str:
        within = f"within {self.boot.limit:g} s{then}"
        if refusal is None:
            return f"{self.name} does not restart {within}: the boot of before answers"
        return f"{self.name} does not answer {within}: {refusal}"


def _keeps_out(refusal: PlaceError) -> bool:
    return any(words in str(refusal).lower() for words in KEPT_OUT)


def _turn(command: str) -> None:
    """Turns the power off and on."""
    try:
        done = running.finished(shlex.split(command), limit_s=POWER_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PlaceError(f"`{command}` cannot be run: {error}", hint="try it by hand") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        raise PlaceError(f"`{command}` failed: {said}", hint="try it by hand")
