"""C programs that use mutexes, compiled for a test, and run with the lock library preloaded."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from fairtrial.locks import library

SOURCES = Path(__file__).parents[1] / "unit" / "locks" / "programs"
LIMIT_S = 300.0  # a lock that is never given back would last for ever


def compiled(directory: Path, name: str, *options: str) -> Path:
    """The program `name`, compiled."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: install gcc")
    program = directory / name
    argv = ["cc", "-O1", "-g", "-Wall", "-Werror", "-pthread", *options, "-o", program, SOURCES / f"{name}.c"]
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, check=False)
    if done.returncode and any(option.startswith("-fsanitize") or option == "-static" for option in options):
        pytest.skip(f"this compiler cannot: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return program


def preloading(**variables: str) -> dict[str, str]:
    """An environment with the library in it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRTRIAL_LOCK", "TSAN_"))}
    return {**kept, "LD_PRELOAD": str(library()), **variables}


def ran(
    program: Path, *words: str | int, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """What came of it; skips where this machine cannot run as many threads."""
    argv = [str(program), *map(str, words)]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    return done
