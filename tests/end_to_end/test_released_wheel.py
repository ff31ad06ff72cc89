"""The wheel that is released: built twice as `make wheel` does, installed by pip and uv with all it depends on, and run
where there is no compiler, no cargo and no checkout.

`../test_wheel.py` is the cheaper sibling: the same sources with the agent of the checkout, and dependencies of this
environment.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import time
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command_line import without_compilers

from fairtrial.record.files import sha256

ROOT = Path(__file__).parents[2]
MACHINE = platform.machine()
TARGET = f"{MACHINE}-unknown-linux-musl"
DEMONSTRATION_S = 120.0
OLDEST_GLIBC = (2, 34)
CARGO = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
RUSTUP = Path(os.environ.get("RUSTUP_HOME", Path.home() / ".rustup"))

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two, built at different places."""
    if shutil.which("cargo") is None:
        pytest.skip("no cargo or maturin to build a wheel with: `make setup` explains")
    argv = ["rustc", "--print", "target-libdir", "--target", TARGET]
    if not Path(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()).is_dir():
        pytest.skip(f"needs Rust's standard library for musl: rustup target add {TARGET}")
    subprocess.run(["make", "--quiet", ".venv/.zig"], cwd=ROOT, check=True)
    return [build(tmp_path_factory.mktemp("dist"), at) for at in (ROOT / "target", tmp_path_factory.mktemp("target"))]


def build(directory: Path, target: Path) -> Path:
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    argv = [ROOT / "scripts" / "build-wheel", MACHINE, directory]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = directory.glob("*.whl")
    return wheel


def content(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_two_builds_at_different_places_are_equal(wheels: list[Path]) -> None:
    first, second = wheels
    differing = [name for name, data in content(first).items() if content(second).get(name) != data]
    assert differing == []
    assert sha256(first) == sha256(second)


def test_the_wheel_names_no_directory_of_the_machine_that_built_it(wheels: list[Path]) -> None:
    directories = [f"{each}/".encode() for each in (ROOT, CARGO, RUSTUP, Path.home(), wheels[1].parent.parent)]
    named = [(name, each) for name, data in content(wheels[1]).items() for each in directories if each in data]
    assert named == []


def test_the_agent_is_static_and_not_glibc_and_the_lock_library_fits_old_ones(wheels: list[Path]) -> None:
    assert re.search(rf"-py3-none-.*manylinux_2_17_{MACHINE}.*musllinux_1_1_{MACHINE}", wheels[0].name)
    files = content(wheels[0])
    (agent,) = (data for name, data in files.items() if name.endswith("/scripts/fairtrial-agent"))
    assert b"GNU C Library" not in agent
    assert b"ld-linux" not in agent
    (library,) = (data for name, data in files.items() if name.endswith("libfairtrial_locks.so"))
    needed = {tuple(map(int, number.split(b"."))) for number in re.findall(rb"GLIBC_(\d+\.\d+)", library)}
    assert max(needed) <= OLDEST_GLIBC


def with_pip(directory: Path, wheel: Path) -> Path:
    venv.create(directory, with_pip=True, symlinks=True)
    argv = [directory / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    subprocess.run(argv, check=True)
    return directory / "bin"


def with_uv(directory: Path, wheel: Path) -> Path:
    venv.create(directory, with_pip=True, symlinks=True)
    tools = directory / "bin"
    subprocess.run([tools / "python", "-m", "pip", "install", "--quiet", "uv"], check=True)
    environment = {
        **os.environ,
        "SSL_CERT_FILE": os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"),
        "UV_TOOL_DIR": str(directory / "tools"),
        "UV_TOOL_BIN_DIR": str(directory / "linked"),
        "UV_CACHE_DIR": str(directory / "cache"),
    }
    argv = [tools / "uv", "tool", "install", "--quiet", "--python", sys.executable, wheel]
    subprocess.run(argv, env=environment, check=True)
    return directory / "linked"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to hide the checkout")
@pytest.mark.parametrize("install", [with_pip, with_uv])
def test_the_demonstration_takes_two_minutes_where_nothing_else_is(
    install: Callable[[Path, Path], Path], wheels: list[Path], tmp_path: Path
) -> None:
    scripts = install(tmp_path / "environment", wheels[0])
    hidden = " && ".join(f"mount -t tmpfs none '{each}'" for each in (ROOT, CARGO, RUSTUP) if each.is_dir())
    programs = without_compilers(tmp_path / "programs")
    within = f'PATH=$1:{programs}; shift; command -v cc gcc cargo rustc && exit 99; exec fairtrial "$@"'
    began_s = time.monotonic()
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{hidden} && {within}", "sh", scripts, "demo"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "FAIRTRIAL_STATE_DIRECTORY": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=False,
    )
    took_s = time.monotonic() - began_s
    assert done.returncode == 0, done.stdout + done.stderr
    assert "28 of 28 finished trials used" in done.stdout
    assert took_s < DEMONSTRATION_S
