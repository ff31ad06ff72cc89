"""A container on this machine, made from an image afresh for every trial, with the agent as its first process.

Owns what podman or docker is told. The agent is the same static binary as everywhere, mounted read-only.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from fairtrial.errors import AgentError, PlaceError, StreamLostError
from fairtrial.places.container import limits_in_effect
from fairtrial.places.container.parameters import ContainerParameters
from fairtrial.places.container.runtime import FIELD, LABEL, NewContainer, Runtime
from fairtrial.places.container.stream import ContainerStream
from fairtrial.places.local import STATE_VARIABLE, Local, LocalParameters
from fairtrial.places.place import Disk, FreshPlace, Requirements
from fairtrial.programs import Act, Program
from fairtrial.record.events import KEPT_VARIABLE
from fairtrial.wire import Agent, Limits, find_agent
from fairtrial.wire.facts import ContainerFacts
from fairtrial.wire.open_place import OpenPlace
from fairtrial.words import size

STATE: Final = "/var/lib/fairtrial"  # in the container; on this machine it is `container/state` in the state directory
AGENT: Final = "/fairtrial-agent"
# What a trial runs in any place: a shell, and Debian's coreutils, findutils and grep or their like.
NEEDED: Final = ("sh", "cat", "find", "grep", "id", "install", "mv", "readlink", "rm", "sha256sum", "sync", "tail")
LACKING: Final = """
for each in "$@"; do command -v "$each" >/dev/null || echo "$each"; done
rm -f --one-file-system 2>/dev/null || echo "GNU's rm"
find / -maxdepth 0 -printf '' 2>/dev/null || echo "GNU's find"
"""
IMAGE: Final = f"{FIELD}.image"
NAME_BYTES: Final = 6
START_S: Final = 1.0  # from `run` to a greeting, and removal


class Container(FreshPlace[ContainerParameters]):
    """A container of podman or docker, gone after its trial."""

    name = "container"
    summary = "A container on this machine, made from an image afresh for every trial."
    model = ContainerParameters
    example = MappingProxyType({"image": "localhost/mariadb:11"})
    programs = (
        Program("podman", "the place `container` runs it", "podman"),
        Program("docker", "the place `container` runs it, with `runtime: docker`", "docker.io"),
        Program("runc", "the place `container` has podman use it where control groups are hybrid"),
    )

    def __init__(self, parameters: ContainerParameters) -> None:
        super().__init__(parameters)
        self._runtime = Runtime(parameters)

    def duration_s(self) -> float:
        """Of its start and removal."""
        return START_S

    @property
    def title(self) -> str:
        """With the image."""
        return f"{self.name} {self.parameters.image}"

    @property
    def need(self) -> str:
        """The image, and what runs it."""
        memory = f" with {size(self.parameters.memory)} of memory" if self.parameters.memory else ""
        return f"a container for every trial from {self.parameters.image}{memory}, {self.parameters.runtime}"

    @property
    def agent_user(self) -> str:
        """The first process of a container is root there."""
        return "root in the container"

    def acts(self) -> Iterator[Act]:
        """The runtime with every option that the study gives, and the image."""
        parameters = self.parameters
        yield from (replace(act, here=True) for act in self.carrier().acts())
        if parameters.pull == "missing":
            check = f"SHA-256 {parameters.sha256}" if parameters.sha256 else f"as {parameters.runtime} checks it"
            yield Act("downloads", f"image {parameters.image}, {check}", "once", here=True)
        limits = [f"--network={parameters.network}"]
        limits += [] if parameters.oci_runtime is None else [f"--runtime={parameters.oci_runtime}"]
        words = [parameters.runtime, "run", "--rm", *limits, *parameters.run_options, parameters.image]
        yield Act("runs", shlex.join(words), "for every trial", here=True)

    def carrier(self) -> Local:
        """This machine."""
        return Local(LocalParameters(state_directory=self.parameters.state_directory))

    def requirements(self) -> Requirements:
        """The runtime, and as much memory as the container may take."""
        return Requirements(
            programs=(self.parameters.runtime,),
            memory_bytes=self.parameters.memory or 0,
            virtualisation=None,
        )

    def require(self) -> None:
        """The image; none is pulled.

        Raises:
            PlaceError: it is not here, and the study does not say that it may be pulled.
        """
        if self.parameters.pull == "never":
            _ = self._runtime.image_id

    def fetched(self) -> None:
        """Resolves the image, and pulls it if the study says so."""
        _ = self._runtime.image_id

    def open(self, *, holder: str, lock: bool, disk: Disk) -> Agent:
        """Makes a container and greets its agent; this machine's lock is held until it is gone.

        Raises:
            PlaceError: no runtime, no such image, a limit that this machine cannot set, or an image that lacks what a
                trial runs.
        """
        del disk  # what is prepared lies outside the container, whichever it is
        limits = Limits.from_environment()
        host = Agent(self.carrier().connect(limits), holder=holder, lock=lock, limits=limits)
        try:
            agent = self._greeted(host, holder=holder, lock=lock, limits=limits)
        except BaseException:
            host.close()
            raise
        agent.carrier = host
        return agent

    def _greeted(self, host: Agent, *, holder: str, lock: bool, limits: Limits) -> Agent:
        runtime, own = self._runtime, Path(host.hello.state_directory) / self.name
        own.mkdir(exist_ok=True)
        own.chmod(0o700)  # a container's root makes set-uid files below it, which no other user here may run
        state = own / "state"
        state.mkdir(mode=0o755, exist_ok=True)
        label = f"{LABEL}={own}"
        if lock:
            runtime.remove(label=label)  # of runs whose control plane or conmon was killed
        facts = ContainerFacts(
            image=self.parameters.image,
            image_id=runtime.image_id,
            runtime=runtime.version,
            run_options=runtime.options(),
            memory_bytes=self.parameters.memory,
        )
        container = NewContainer(
            name=f"fairtrial-{secrets.token_hex(NAME_BYTES)}",
            label=label,
            mounts={str(find_agent()): f"{AGENT},readonly", str(state): STATE},
            # Its variables are the image's, which its programs need, and nobody's secrets.
            environment={**limits.environment(), STATE_VARIABLE: STATE, KEPT_VARIABLE: "*"},
            command=[AGENT, "serve"],
        )
        argv = runtime.run_argv(container)
        stream = ContainerStream(argv, name=container.name, runtime=runtime, host=host, limits=limits)
        try:
            agent = Agent(stream, holder=holder, lock=lock, limits=limits)
        except StreamLostError as error:
            said = stream.said()
            raise PlaceError(
                f"the container from {self.parameters.image} did not start: {said or error}",
                hint=runtime.hint(said),
                field=FIELD,
            ) from error
        agent.container = facts
        try:
            limits_in_effect.require(agent, self.parameters)
            _require_programs(agent, image=self.parameters.image)
        except BaseException:
            agent.close()
            raise
        return agent


def _require_programs(agent: Agent, *, image: str) -> None:
    """An image without a C library, a shell or coreutils runs its one program, and none of a trial's."""
    hint = "add them to the image: they are in dash, coreutils, findutils and grep; BusyBox lacks options of GNU's"
    try:
        missing = OpenPlace(agent).execute(["sh", "-c", LACKING, "sh", *NEEDED]).output.splitlines()
    except AgentError as error:
        raise PlaceError(f"the image {image} has no shell that runs: {error}", hint=hint, field=IMAGE) from error
    if missing:
        message = f"the image {image} lacks programs that every trial runs: {', '.join(missing)}"
        raise PlaceError(message, hint=hint, field=IMAGE)
