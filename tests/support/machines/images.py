"""Images of containers, made from files of Debian's packages: no registry of images takes part."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import pytest

from support.machines.machine import alone_with

SERVERS: Final = ("mariadb-server-core", "mariadb-client-core", "postgresql-15", "postgresql-client-15")
PACKAGES: Final = (
    *(*SERVERS, "redis-server", "redis-tools"),
    *("base-files", "coreutils", "dash", "findutils", "grep", "libc-bin", "libc6", "sed", "tzdata", "util-linux"),
)
USERS: Final = ("root:x:0:0::/root:/bin/sh", "postgres:x:102:102::/:/bin/false", "nobody:x:65534:65534::/:/bin/false")
LEFT_OUT: Final = ("/usr/share/doc/", "/usr/share/locale/", "/usr/share/man/", "/bitcode/", "llvm")
TOP: Final = tuple(map(Path, ("/bin", "/lib", "/lib64", "/sbin")))  # links into /usr
DIRECTORIES: Final = ("dev", "etc", "proc", "root", "run", "sys", "tmp", "var/tmp")


@alone_with("images")  # as all that makes one: what a test has looked at is no other's to make anew
def make() -> str:
    """The name of an image with three servers and a shell, which stays on this machine for the next test run.

    Its files are those of the packages that are installed here: to download and unpack them again takes half a minute
    of a processor.

    Raises:
        subprocess.CalledProcessError: a package is not installed, or podman makes no image.
    """
    recipe = hashlib.sha256(f"{PACKAGES} {USERS} {LEFT_OUT} {DIRECTORIES}".encode()).hexdigest()[:12]
    name = f"localhost/fairtrial-tests:{recipe}"
    if _exists(name):
        return name
    with tempfile.TemporaryDirectory() as made:
        root, names, archive = (Path(made, each) for each in ("root", "names", "image.tar"))
        for each in DIRECTORIES:
            (root / each).mkdir(parents=True)
        (root / "etc" / "passwd").write_text("".join(f"{user}\n" for user in USERS))
        names.write_text("".join(f".{file}\n" for file in sorted(_files())))
        parts = [f"--directory={root}", *DIRECTORIES, "--directory=/", f"--files-from={names}"]
        subprocess.run(["tar", "--create", f"--file={archive}", *parts], check=True)
        path = "ENV PATH=/usr/lib/postgresql/15/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        subprocess.run(["podman", "import", f"--change={path}", archive, name], check=True)
    return name


def _files() -> set[Path]:
    """Files and links of the packages, with the libraries that their programs need."""
    listing = subprocess.run(["dpkg-query", "--listfiles", *PACKAGES], check=True, capture_output=True, text=True)
    listed = [each for each in listing.stdout.splitlines() if each.startswith("/")]
    wanted = [each for each in listed if not any(part in each for part in LEFT_OUT)]
    found = {path for each in wanted for path in _with_target(Path(each)) if path.is_symlink() or path.is_file()}
    programs = [each for each in sorted(found) if os.access(each, os.X_OK) or ".so" in each.name]
    linked = subprocess.run(["ldd", *programs], check=False, capture_output=True, text=True).stdout
    libraries = {Path(each) for each in re.findall(r"=> (/\S+)", linked)}
    return (
        found
        | {path for each in libraries for path in _with_target(each)}
        | {path for path in TOP if path.is_symlink()}
    )


def _with_target(path: Path) -> list[Path]:
    """A file, and what it is a link to, by names through no link of a directory: `/bin` is one itself."""
    return [path.parent.resolve() / path.name, path.resolve()]


@alone_with("images")
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


@alone_with("images")
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
    for program in ("dpkg-query", "podman", "runc"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    try:
        image = make()
        _podman("--runtime=runc", "run", "--rm", *LIMITS, image, "true")
    except (AssertionError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this machine makes or runs no containers: {error}")
    return image
