"""A host that boots a kernel once, and its default kernel again afterwards.

What is begun is journalled on the host before it is done, so that whoever comes next can end it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict

from fairtrial.caching import cache_directory
from fairtrial.errors import NOT_FOUND, AgentError, HostBootError, PlaceError
from fairtrial.places.boot import command_line, default, looking, staging, watchdog, ways
from fairtrial.places.boot.default import DefaultKernel
from fairtrial.places.boot.looking import BootObservation
from fairtrial.places.boot.parameters import BootParameters
from fairtrial.places.boot.staging import StagedKernel
from fairtrial.places.boot.waiting import Answer, RestartingHost
from fairtrial.places.boot.way import DIRECTORY, Entry, Way, in_sh
from fairtrial.places.vm import kernels
from fairtrial.places.vm.kernels import Kernel
from fairtrial.wire import Agent
from fairtrial.wire.facts import BootFacts
from fairtrial.wire.open_place import OpenPlace

ATTEMPTS: Final = 2
TOKEN_BYTES: Final = 6
JOURNAL: Final = f"{DIRECTORY}/journal.json"
PLAIN: Final = ("systemctl --no-block reboot", "reboot")
FORGET: Final = f"rm -f {JOURNAL}; sync"


class _NotBootedError(PlaceError):
    """Another kernel came up than the one that was asked for."""


class BegunBoot(BaseModel):
    """What a host's journal says of boots that are not ended: by which way, and whose they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: str
    holder: str


@dataclass(frozen=True)
class ArmedBoot:
    """A boot that is about to happen.

    Attributes:
        kernel: the one that shall come up.
        token: marks it.
        boot_id: of the boot before it.
    """

    way: Way
    kernel: StagedKernel
    token: str
    boot_id: str


@dataclass(frozen=True)
class BootingHost:
    """A host that boots.

    Attributes:
        restarting: the host as ssh sees it.
        reach: gets a stream to its agent, with its lock.
        holder: whose boots they are.
    """

    restarting: RestartingHost
    reach: Callable[[], Agent]
    holder: str

    @property
    def boot(self) -> BootParameters:
        """As the study says."""
        return self.restarting.boot

    def booted(self) -> Agent:
        """Boots the kernel once and gets a stream to the agent that runs on it.

        Raises:
            HostBootError: another kernel came up, twice.
            PlaceError: the host cannot boot this way, or does not come back.
        """
        failure: PlaceError | None = None
        for _attempt in range(ATTEMPTS):
            try:
                self.restarting.back()
                return self._boot()
            except _NotBootedError as error:
                failure = error
        raise HostBootError(f"{failure}, in {ATTEMPTS} attempts", hint="look at the host's console")

    def leave(self, *, of: str = "") -> None:
        """Brings the default kernel back, if another one runs or is about to, and removes the entry.

        Args:
            of: whose boots are ended; anybody's unless it is given.

        Raises:
            PlaceError: the host does not come back, or what was changed cannot be taken back.
        """
        answer = self.restarting.back()
        with self.reach() as agent:
            begun = journalled(agent)
            if of and (begun is None or begun.holder != of):
                return
            if begun is not None:
                place = OpenPlace(agent)
                ways.WAYS[begun.by].disarm(place, looking.look(place))
        if answer.token:
            self._default_again(answer)
        with self.reach() as agent:
            in_sh(OpenPlace(agent), FORGET)

    def _boot(self) -> Agent:
        armed = self._armed()
        if armed is None:
            self._prepare()
            armed = self._armed()
        if armed is None:
            raise AssertionError("what was missing is there now")
        self._happened(armed)
        agent = self.reach()
        try:
            place = OpenPlace(agent)
            seen = looking.look(place)
            self._require(armed, place, seen)
            agent.boot = BootFacts(
                by=self.boot.by,
                kernel_source=armed.kernel.source,
                kernel_sha256=armed.kernel.sha256,
                content_sha256=armed.kernel.content_sha256,
                boot_id=seen["boot_id"],
                build_id=seen.build_id,
                microcode=seen["microcode"],
                watchdog=watchdog.begin(agent),
            )
        except BaseException:
            agent.close()
            raise
        return agent

    def _armed(self, *, rehearsal: bool = False) -> ArmedBoot | None:
        """Makes the next boot ours; None where the default kernel must be noted, or the way rehearsed, before."""
        chosen = None if rehearsal else kernel(self.boot)
        with self.reach() as agent:
            place = OpenPlace(agent)
            seen = looking.look(place)
            way = ways.require(self.boot, seen)
            own = default.known(place, seen)
            if own is None or not (rehearsal or _is_rehearsed(way, own, seen)):
                return None
            directory = way.directory(seen)
            staged = (
                own.staged(place, directory=directory)
                if chosen is None
                else staging.stage(place, chosen, directory=directory)
            )
            begun = journalled(agent)
            if begun is not None and begun.by != way.name:  # what another way began is ended before it is forgotten
                ways.WAYS[begun.by].disarm(place, seen)
                seen = looking.look(place)
            token = secrets.token_hex(TOKEN_BYTES)
            parameters = () if rehearsal else self.boot.parameters
            words = command_line.once(own.command_line, parameters, token=token)
            agent.put(JOURNAL, BegunBoot(by=way.name, holder=self.holder).model_dump_json().encode())
            way.arm(place, seen, Entry(staged.image, staged.initial, words))
            in_sh(place, "sync")
        return ArmedBoot(way, staged, token, seen["boot_id"])

    def _happened(self, armed: ArmedBoot) -> None:
        """Restarts into what is armed."""
        self.restarting.restart(armed.way.restart)
        answer = self.restarting.back(after=armed.boot_id)
        if answer.token != armed.token:
            name = self.restarting.name
            raise _NotBootedError(
                f"{armed.kernel.source} did not come up on {name} by {armed.way.name}, but another kernel", hint=""
            )

    def _require(self, armed: ArmedBoot, place: OpenPlace, seen: BootObservation) -> None:
        """That it is the kernel which was brought, and boots only once."""
        if left := armed.way.armed(seen):
            armed.way.disarm(place, seen)
            raise PlaceError(
                f"{armed.way.name} has not cleared its one-shot entry ({left}) on {self.restarting.name}",
                hint="use `by: kexec` on this host",
                field=f"{ways.FIELD}.by",
            )
        if seen["release"] != armed.kernel.release:
            raise PlaceError(
                f"{self.restarting.name} runs {seen['release']}, and {armed.kernel.source} is {armed.kernel.release}",
                hint="look at its boot loader",
            )

    def _prepare(self) -> None:
        """Notes the default kernel, and shows with it that the way boots an entry only once."""
        answer = self.restarting.back()
        if answer.token:
            self._default_again(answer)
        way = ways.WAYS[self.boot.by]
        if not way.rehearsed:
            with self.reach() as agent:
                default.known(OpenPlace(agent), looking.look(OpenPlace(agent)))
            return
        armed = self._armed(rehearsal=True)
        if armed is None:
            raise AssertionError("a rehearsal needs nothing before it")
        self._happened(armed)
        with self.reach() as agent:
            place = OpenPlace(agent)
            self._require(armed, place, looking.look(place))
        self._default_again(self.restarting.back())
        with self.reach() as agent:
            place = OpenPlace(agent)
            seen = looking.look(place)
            if (own := default.known(place, seen)) is not None:
                shown = {**own.rehearsed, way.name: _loader(seen)}
                default.note(place, own.model_copy(update={"rehearsed": shown}))

    def _default_again(self, answer: Answer) -> None:
        self.restarting.restart(PLAIN)
        if self.restarting.back(after=answer.boot_id).token:
            raise PlaceError(
                f"{self.restarting.name} does not come back to its default kernel",
                hint="boot it by hand, and look at its boot loader",
            )


def kernel(boot: BootParameters) -> Kernel | None:
    """The kernel that a study names, fetched if need be; None: the host's own.

    Raises:
        PlaceError: there is no such kernel.
    """
    if boot.kernel is None:
        return None
    return kernels.find(boot.kernel, cache=cache_directory() / "kernels", sha256=boot.sha256)


def journalled(agent: Agent) -> BegunBoot | None:
    """The boot that was begun on a host and not ended; None: none, or one that is root's affair.

    Raises:
        AgentError: the journal cannot be read, though root asks.
    """
    try:
        return BegunBoot.model_validate_json(agent.get(JOURNAL))
    except AgentError as error:
        # /boot may be root's alone, as an EFI partition is; who is not root could not end a boot, either.
        if error.code != NOT_FOUND and OpenPlace(agent).facts.user_id == 0:
            raise
        return None


def _is_rehearsed(way: Way, own: DefaultKernel, seen: BootObservation) -> bool:
    return not way.rehearsed or own.rehearsed.get(way.name) == _loader(seen)


def _loader(seen: BootObservation) -> str:
    """What a rehearsal depends on."""
    return f"{seen['grub_config']} {seen['boot']} {seen['esp_device']}".strip()
