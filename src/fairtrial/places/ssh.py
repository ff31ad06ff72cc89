"""A host over SSH: the user's own configuration, keys and host checks; the agent is brought there by its hash.

ssh(1) does everything that has to do with trust. Nothing is asked (BatchMode) and nothing is accepted for the user.
A configuration file runs commands on this machine (`ProxyCommand`, `Match exec`), so a study can only name one that its
user has named, too.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from fairtrial.errors import PlaceError
from fairtrial.places import bringing, running, ssh_acts
from fairtrial.places.boot import booting, looking, ways
from fairtrial.places.boot.booting import BootingHost
from fairtrial.places.boot.parameters import BootParameters
from fairtrial.places.boot.waiting import POWER_S, RestartingHost
from fairtrial.places.place import PASSING, Disk, ReachedPlace
from fairtrial.programs import Act
from fairtrial.study.tree.paths import OwnPath
from fairtrial.wire import Agent, Limits, PipeTransport
from fairtrial.wire.open_place import OpenPlace

ALIVE_COUNT = 3  # unanswered: ssh ends after the wire's own limit of silence at the latest
CONFIG_VARIABLE: Final = "FAIRTRIAL_SSH_CONFIG"  # files that a study may name, separated as in PATH
ALLOWED_HERE: Final[list[str]] = []  # of them, those that this process's command line names
# Also in `%h` and `%r` of the user's own ProxyCommand, which a shell reads.
HOST: Final = r"^[\w.:%\[][\w.:%\[\]@-]*$"
USER: Final = r"^[\w.][\w.@+-]*$"
SSH_FAILED = 255  # ssh's exit code for its own errors; others are the remote command's
MARK_BYTES: Final = 16
GREETING_BYTES: Final = 64 << 10  # no message of the day is longer; a shell that prints on and on is not waited for

# What ssh says, in lower case, and what the user can do.
HINTS = (
    ("host identification has changed", "if the host really has a new key, remove the old one with ssh-keygen -R"),
    ("host key verification failed", "connect once by hand with ssh to see and accept the host's key"),
    ("permission denied", "ssh must log in without asking: check the user, and that a key is loaded or named"),
    ("could not resolve", "check the host's name, or its Host entry in the ssh configuration"),
    ("connection refused", "check the port, and that sshd runs there"),
    ("timed out", "check that the host is up and can be reached from here"),
    ("no route to host", "check that the host is up and can be reached from here"),
)


class SshParameters(BaseModel):
    """A host reached by ssh."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field(pattern=HOST, description="Host name, address, or an alias of the ssh config.")
    user: str | None = Field(None, pattern=USER, description="Log in as this user; else as ssh would.")
    port: int | None = Field(None, ge=1, le=65535, description="Port; else as ssh would.")
    config: OwnPath | None = Field(
        None,
        description="Another ssh configuration file, for `ssh -F`; only one that `--ssh-config FILE` or "
        "`$FAIRTRIAL_SSH_CONFIG` names as well.",
    )
    state_directory: str | None = Field(
        None, pattern="^/", description="Where the agent keeps its state there, as for a local place."
    )
    boot: BootParameters | None = Field(
        None, description="A kernel that the host boots before every trial; its default kernel comes back at the end."
    )


class Ssh(ReachedPlace[SshParameters]):
    """A host that ssh(1) logs in to."""

    name = "ssh"
    summary = "A host over SSH."
    model = SshParameters
    example = MappingProxyType({"host": "db.example.org"})

    @property
    def title(self) -> str:
        """With the host, and its kernel."""
        host, boot = self.parameters.host, self.parameters.boot
        return f"{self.name} {host}" + ("" if boot is None else f" booting {boot.kernel or 'its default kernel'}")

    @property
    def need(self) -> str:
        """The way there, and the right to boot."""
        host, boot = self.parameters.host, self.parameters.boot
        return f"access to {host} over SSH" + ("" if boot is None else f" as root, to boot it by {boot.by}")

    @property
    def word(self) -> str:
        """The host's address, if that is all."""
        parameters = self.parameters
        if any(each is not None for each in (parameters.config, parameters.state_directory, parameters.boot)):
            return super().word
        user = "" if parameters.user is None else f"{parameters.user}@"
        return f"ssh://{user}{parameters.host}" + ("" if parameters.port is None else f":{parameters.port}")

    @property
    def boots_anew(self) -> bool:
        """Whether the study names a kernel to boot."""
        return self.parameters.boot is not None

    @property
    def agent_user(self) -> str:
        """Whom ssh logs in."""
        return f"{self.parameters.user or 'the user that ssh logs in'} at {self.parameters.host}"

    @property
    def machine(self) -> str:
        """The host, by its address."""
        return f"{self.name} {self.parameters.host}:{self.parameters.port or ''}"

    def acts(self) -> Iterator[Act]:
        """Ssh, the agent there, and the boot."""
        own = self.parameters
        yield from ssh_acts.acts(own.host, user=own.user, config=own.config, state=own.state_directory)
        if own.boot is not None:
            yield from ssh_acts.booting(own.boot)

    def leaving_s(self) -> float:
        """It is waited for twice, as it is and in its default kernel, and may need its power each time."""
        boot = self.parameters.boot
        if boot is None:
            return 0.0
        return 2 * (boot.limit if boot.power is None else 2 * boot.limit + POWER_S)

    def duration_s(self) -> float:
        """Of its boot."""
        return 0.0 if self.parameters.boot is None else self.parameters.boot.expected

    def fetched(self) -> None:
        """Its kernel."""
        if self.parameters.boot is not None:
            booting.kernel(self.parameters.boot)

    def open(self, *, holder: str, lock: bool, disk: Disk) -> Agent:
        """Reaches it; with its lock, after a boot into the study's kernel, or into its own where a run left another.

        Raises:
            HostBootError: it did not boot that kernel, twice.
            PlaceError: it cannot boot in the study's way, or does not come back.
        """
        boot = self.parameters.boot
        if lock and boot is not None:
            return self._booting(boot, holder).booted()
        agent = super().open(holder=holder, lock=lock, disk=disk)
        try:
            if boot is not None:
                ways.require(boot, looking.look(OpenPlace(agent)))
            left = booting.journalled(agent) if lock else None
        except BaseException:
            agent.close()
            raise
        if left is None:
            return agent
        agent.close()
        self._booting(BootParameters(by="kexec"), holder).leave()
        return super().open(holder=holder, lock=lock, disk=disk)

    def leave(self, *, holder: str) -> None:
        """Boots its default kernel, if it runs or is about to run another of this holder's.

        Raises:
            PlaceError: it does not come back.
        """
        if self.parameters.boot is not None:
            self._booting(self.parameters.boot, holder).leave(of=_run_of(holder))

    def _booting(self, boot: BootParameters, holder: str) -> BootingHost:
        ssh = _ssh(self.parameters, Limits.from_environment())
        restarting = RestartingHost(self.parameters.host, partial(_run, ssh), boot)
        return BootingHost(restarting, partial(super().open, holder=holder, lock=True, disk=PASSING), _run_of(holder))

    def connect(self, limits: Limits) -> PipeTransport:
        """Brings the agent there unless it is there already, and starts it.

        Raises:
            PlaceError: ssh cannot log in, in ssh's own words; or the host cannot run the agent.
        """
        ssh, mark = _ssh(self.parameters, limits), secrets.token_hex(MARK_BYTES)
        script = bringing.serving(partial(_run, ssh), limits=limits, state_directory=self.parameters.state_directory)
        stream = PipeTransport([*ssh, _marked(script, mark)], limits=limits)
        with contextlib.ExitStack() as failing:
            failing.callback(stream.close)
            _skip_greeting(stream, mark, host=self.parameters.host, limit_s=limits.short_s)
            failing.pop_all()
        return stream


def allow_configuration(path: str | Path) -> None:
    """Lets the studies of this process name an ssh configuration file, because its user has named it."""
    allowed = os.environ.get(CONFIG_VARIABLE)
    own = str(Path(path).expanduser().absolute())
    ALLOWED_HERE.append(own)
    os.environ[CONFIG_VARIABLE] = own if not allowed else f"{allowed}{os.pathsep}{own}"


def _configuration(config: str | None) -> list[str]:
    if config is None:
        return []
    path = Path(config).expanduser()
    allowed = [Path(each).expanduser() for each in os.environ.get(CONFIG_VARIABLE, "").split(os.pathsep) if each]
    if path.resolve() not in [each.resolve() for each in allowed]:
        raise PlaceError(
            f"the study names the ssh configuration {config}, which may run commands on this machine (ProxyCommand): "
            "it is not used unless you name it, too",
            hint=f"read it; to use it, put `--ssh-config {config}` before the command, or remove `config` from the "
            "study",
            field="place.ssh.config",
        )
    return ["-F", str(path)]


def _run_of(holder: str) -> str:
    """Without the process, which is another one after a resume."""
    return holder.rpartition(", process")[0] or holder


def _ssh(parameters: SshParameters, limits: Limits) -> list[str]:
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": math.ceil(limits.connect_s),
        "ServerAliveInterval": math.ceil(limits.silence_s / ALIVE_COUNT),
        "ServerAliveCountMax": ALIVE_COUNT,
        "ClearAllForwardings": "yes",
        # A master that stays behind (ControlPersist) holds standard error open before OpenSSH 8.5, so that a command
        # would never end; one that is there already, such as of a login with a second factor, is used.
        "ControlMaster": "no",
        "RequestTTY": "no",
        "LogLevel": "ERROR",
    }
    argv = ["ssh", *_configuration(parameters.config)]
    for name, value in options.items():
        argv += ["-o", f"{name}={value}"]
    argv += ["-p", str(parameters.port)] if parameters.port else []
    argv += ["-l", parameters.user] if parameters.user else []
    return [*argv, "--", parameters.host]


def _marked(script: str, mark: str) -> str:
    """For the login shell there, of whatever kind, whose start-up files may print: the script does so behind a mark."""
    return bringing.in_any_shell(f"echo {mark}\n{script}")


def _run(ssh: list[str], script: str, data: bytes, *, limit_s: float) -> str:
    """Runs a script there and returns what it prints."""
    mark, host = secrets.token_hex(MARK_BYTES), ssh[-1]
    argv = [*ssh, _marked(script, mark)]
    try:
        finished = running.finished(argv, data, limit_s=limit_s)
    except FileNotFoundError as error:
        raise PlaceError("no ssh on this machine", hint="install an OpenSSH client") from error
    except subprocess.TimeoutExpired as error:
        raise _silent(host, limit_s) from error
    said = finished.stderr.decode(errors="replace").strip()
    if finished.returncode == SSH_FAILED:
        raise PlaceError(f"ssh cannot log in to {host}: {said}", hint=_hint(said, host))
    if finished.returncode != 0:
        raise PlaceError(
            f"{host} cannot take the agent: {said or f'exit code {finished.returncode}'}",
            hint=bringing.NEEDS,
        )
    lines = finished.stdout.decode(errors="replace").rpartition(f"{mark}\n")[2].strip().splitlines()
    return lines[-1] if lines else ""


def _skip_greeting(stream: PipeTransport, mark: str, *, host: str, limit_s: float) -> None:
    """Skips what start-up files of the login shell print before the agent starts."""
    try:
        stream.skip(f"{mark}\n".encode(), most_bytes=GREETING_BYTES, limit_s=limit_s)
    except TimeoutError as error:
        raise _silent(host, limit_s) from error
    except ValueError as error:
        raise PlaceError(
            f"the login shell at {host} prints more than {GREETING_BYTES >> 10} KiB before the agent starts",
            hint="let its start-up files (~/.bashrc, ~/.cshrc, …) print only where the shell is interactive",
        ) from error


def _silent(host: str, limit_s: float) -> PlaceError:
    return PlaceError(f"{host} did not answer within {limit_s:g} s", hint=HINTS[-1][1])


def _hint(said: str, host: str) -> str:
    for words, hint in HINTS:
        if words in said.lower():
            return hint
    return f"try `ssh {host}` by hand"
