"""podman or docker on this machine: its command line, its images, and what this machine's kernel lets it limit."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from fairtrial import hashes
from fairtrial.errors import PlaceError
from fairtrial.places import running
from fairtrial.places.container.parameters import ContainerParameters

FIELD: Final = "place.container"  # of a study
LABEL: Final = "fairtrial.state"
ASK_S: Final = 60.0
PULL_S: Final = 3600.0
MOST_PROCESSES: Final = 32_768  # kernel.pid_max's default (proc(5)): a larger limit is refused where root may not raise
UNIFIED: Final = Path("/sys/fs/cgroup/unified")
CONTROLLERS: Final = Path("/sys/fs/cgroup/cgroup.controllers")
# What runtimes say, in lower case, and what the user can do.
HINTS: Final = (
    ("rlimit", "give a limit that this user may set: `run_options: ['--ulimit=nofile=1024:1024']`"),
    ("hybrid mode", "crun refuses hybrid control groups: install runc, which is then used, or name `oci_runtime`"),
    ("cannot connect to the docker daemon", "start the Docker engine, name it in DOCKER_HOST, or use podman"),
    ("permission denied", "run as root, or set up rootless containers: subuid, subgid and newuidmap (uidmap)"),
    ("newuidmap", "install uidmap, and give this user ranges in /etc/subuid and /etc/subgid"),
    ("statfs", "give only volumes in `run_options` that are on this machine"),
    ("exec format error", "the image must be of this machine's architecture"),
)
_IMAGES: dict[tuple[str, str], str] = {}  # by runtime and name: a name that moves in a run would be another arm


@dataclass(frozen=True)
class NewContainer:
    """A container to be made.

    Attributes:
        name: its own.
        label: that it carries.
        mounts: where files and directories of this machine are mounted, by their paths here.
        environment: variables added to the image's.
        command: what runs instead of the image's own entry point.
    """

    name: str
    label: str
    mounts: Mapping[str, str]
    environment: Mapping[str, str]
    command: Sequence[str]


class Runtime:
    """The program that runs containers here. Its answers are found once: all trials of a run use the same."""

    def __init__(self, parameters: ContainerParameters) -> None:
        self._parameters = parameters

    @property
    def image_id(self) -> str:
        """The image's own identifier, a hash of its content and configuration: the same until this process ends.

        Raises:
            PlaceError: no such image here, and none is pulled unless the study says so; or it has another hash.
        """
        key = (self._name, self._parameters.image)
        if key not in _IMAGES:
            _IMAGES[key] = self._resolved()
        asked = self._parameters
        hashes.require(_IMAGES[key], asked.sha256, what=f"image {asked.image}", field=f"{FIELD}.image")
        return _IMAGES[key]

    def _resolved(self) -> str:
        image = self._parameters.image
        inspected = self._run(["image", "inspect", "--format", "{{.Id}}", image])
        if inspected.returncode != 0 and self._parameters.pull == "missing":
            pulled = self._run(["pull", image], limit_s=PULL_S)
            if pulled.returncode != 0:
                message = f"{self._name} cannot pull {image}: {pulled.stderr.strip()}"
                raise PlaceError(message, hint=self.hint(""), field=f"{FIELD}.image")
            inspected = self._run(["image", "inspect", "--format", "{{.Id}}", image])
        if inspected.returncode != 0:
            said = inspected.stderr.strip()
            raise PlaceError(
                f"{self._name} has no image {image}: {said}",
                hint=self.hint(said, other=f"`{self._name} pull {image}`, or set `pull: missing`"),
                field=f"{FIELD}.image",
            )
        return inspected.stdout.strip().removeprefix("sha256:")

    @cached_property
    def version(self) -> str:
        """The runtime with its version, and the OCI runtime if it is not its own choice."""
        said = self._run(["--version"]).stdout.strip()
        return f"{said}, {self._oci_runtime}" if self._oci_runtime else said

    @cached_property
    def _oci_runtime(self) -> str:
        """The one that the study names; runc for podman where control groups are hybrid, which crun refuses."""
        if self._parameters.oci_runtime is not None:
            return self._parameters.oci_runtime
        is_hybrid = UNIFIED.is_dir() and not CONTROLLERS.exists()
        return "runc" if is_hybrid and self._name == "podman" and shutil.which("runc") else ""

    def options(self) -> list[str]:
        """Options of `run` that limit the container."""
        asked = self._parameters
        options = [f"--network={asked.network}", f"--pull={'never' if self._name == 'podman' else asked.pull}"]
        options += [] if asked.cpus is None else [f"--cpus={asked.cpus:g}"]
        options += [] if asked.memory is None else [f"--memory={asked.memory}", f"--memory-swap={asked.memory}"]
        if not any(option.startswith("--ulimit=nofile") for option in asked.run_options):
            most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
            options.append(f"--ulimit=nofile={most}:{most}")  # runtimes ask for 1,048,576, which not everyone may have
        if not any(option.startswith("--ulimit=nproc") for option in asked.run_options):
            own = resource.getrlimit(resource.RLIMIT_NPROC)[1]
            most = MOST_PROCESSES if own == resource.RLIM_INFINITY else min(own, MOST_PROCESSES)
            options.append(f"--ulimit=nproc={most}:{most}")
        return [*options, *asked.run_options]

    def argv(self, *arguments: str) -> list[str]:
        """A command line of the runtime."""
        below = f"--runtime={self._oci_runtime}" if self._oci_runtime else ""
        if self._name == "podman":
            return [self._name, *([below] if below else []), *arguments]
        return [self._name, *arguments[:1], *([below] if below and arguments[0] == "run" else []), *arguments[1:]]

    def run_argv(self, container: NewContainer) -> list[str]:
        """The command line that makes a container and runs a command in it as its root, with the standard streams.

        Raises:
            PlaceError: a comma, which ends an option of a mount, is in the path of one.
        """
        for path in container.mounts:
            if "," in path:
                raise PlaceError(f"{path} cannot be mounted: its name has a comma", hint="use a path without commas")
        # No log: it would hold all that passes through the stream.
        own = ["--rm", "--interactive", f"--name={container.name}", f"--label={container.label}", "--log-driver=none"]
        own += ["--user=0:0", "--security-opt=label=disable", f"--entrypoint={container.command[0]}"]
        own += [f"--mount=type=bind,source={source},target={target}" for source, target in container.mounts.items()]
        own += [f"--env={name}={value}" for name, value in container.environment.items()]
        return self.argv("run", *own, *self.options(), self.image_id, *container.command[1:])

    def remove(self, *, label: str = "", name: str = "") -> None:
        """Kills and removes the container of a name, or all that carry a label.

        Raises:
            PlaceError: the runtime cannot say which there are.
        """
        names = [name] if name else []
        if label:
            listed = self._run(["ps", "--all", "--quiet", "--no-trunc", f"--filter=label={label}"])
            if listed.returncode != 0:
                said = listed.stderr.strip()
                message = f"{self._name} does not list its containers: {said}"
                raise PlaceError(message, hint=self.hint(said), field=f"{FIELD}.runtime")
            names += listed.stdout.split()
        if names:
            self._run(["rm", "--force", *names])

    def hint(self, said: str, *, other: str = "") -> str:
        """What the user can do about what a runtime said."""
        for words, hint in HINTS:
            if words in said.lower():
                return hint
        return other or f"try `{self._name} run --rm {self._parameters.image} true` by hand"

    @property
    def _name(self) -> str:
        return self._parameters.runtime

    def _run(self, arguments: Sequence[str], *, limit_s: float = ASK_S) -> subprocess.CompletedProcess[str]:
        try:
            ended = running.finished(self.argv(*arguments), limit_s=limit_s)
        except FileNotFoundError as error:
            raise PlaceError(
                f"no {self._name} on this machine's PATH ({os.environ.get('PATH', '')})",
                hint=f"install {self._name}, or name the other under `runtime`",
                field=f"{FIELD}.runtime",
            ) from error
        except subprocess.TimeoutExpired as error:
            raise PlaceError(
                f"`{self._name} {arguments[0]}` did not answer within {limit_s:g} s",
                hint=f"try `{self._name} ps` by hand",
                field=f"{FIELD}.runtime",
            ) from error
        stdout, stderr = (stream.decode(errors="replace") for stream in (ended.stdout, ended.stderr))
        return subprocess.CompletedProcess(ended.args, ended.returncode, stdout, stderr)
