"""Images of containers, made from Debian's packages: no registry of images takes part."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

PACKAGES: Final = "mariadb-server-core,postgresql-15,redis-server,coreutils,dash,findutils,grep,sed"
USERS: Final = ("root:x:0:0::/root:/bin/sh", "postgres:x:102:102::/:/bin/false", "nobody:x:65534:65534::/:/bin/false")
# Files alone are unpacked: no package's own script runs, so the users that they would make are written here.
HOOK: Final = f'printf "%s\\n" {" ".join(map(repr, USERS))} > "$1/etc/passwd"'
LEFT_OUT: Final = ("doc", "locale", "man")


def make() -> str:
    """The name of an image with three servers and a shell, which stays on this machine for the next test run."""
    recipe = hashlib.sha256(f"{PACKAGES} {HOOK}".encode()).hexdigest()[:12]
    name = f"localhost/fairtrial-tests:{recipe}"
    if _exists(name):
        return name
    excluded = [f"--dpkgopt=path-exclude=/usr/share/{each}/*" for each in LEFT_OUT]
    making = ["mmdebstrap", "--variant=extract", f"--include={PACKAGES}", f"--extract-hook={HOOK}", *excluded]
    with subprocess.Popen([*making, "bookworm", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as packed:
        path = "ENV PATH=/usr/lib/postgresql/15/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        subprocess.run(["podman", "import", f"--change={path}", "-", name], stdin=packed.stdout, check=True)
        assert packed.stderr is not None
        assert packed.wait() == 0, packed.stderr.read().decode()
    return name


def variant(image: str, directory: Path) -> str:
    """An image with one file more than another: what its author would call the next version."""
    name = f"{image}-next"
    if _exists(name):
        return name
    container = _podman("create", *LIMITS, image, "true")
    try:
        added = directory / "added"
        added.write_text("next\n")
        _podman("cp", str(added), f"{container}:/added")
        _podman("commit", "--quiet", container, name)
    finally:
        _podman("rm", container)
    return name


def bare(directory: Path) -> str:
    """An image that holds one empty file: neither a shell nor a library."""
    name = "localhost/fairtrial-tests:bare"
    if _exists(name):
        return name
    (directory / "empty").touch()
    archive = shutil.make_archive(str(directory / "bare"), "tar", directory, "empty")
    _podman("import", archive, name)
    return name


def _exists(name: str) -> bool:
    return subprocess.run(["podman", "image", "exists", name], check=False).returncode == 0


def identifier(image: str) -> str:
    """What the runtime knows an image by."""
    return _podman("image", "inspect", "--format", "{{.Id}}", image)


def tag(image: str, name: str) -> None:
    """Gives an image a further name, which may have been another's."""
    _podman("tag", image, name)


def untag(name: str) -> None:
    """Takes a name away, and what has no other."""
    _podman("rmi", "--force", name)


def containers(state: Path) -> list[str]:
    """Names of those that a state directory's runs have made and not removed."""
    label = f"label=fairtrial.state={state}/container"
    return _podman("ps", "--all", "--filter", label, "--format", "{{.Names}}").split()


LIMITS: Final = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--network=none")


def _podman(*arguments: str) -> str:
    done = subprocess.run(["podman", *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def required() -> str:
    """The image; the test is skipped where none can be made or run, as in a sandbox without namespaces."""
    __tracebackhide__ = True  # the reason names the test's line, not this one
    for program in ("podman", "mmdebstrap", "runc"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    try:
        image = make()
        _podman("--runtime=runc", "run", "--rm", *LIMITS, image, "true")
    except (AssertionError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this machine makes or runs no containers: {error}")
    return image
