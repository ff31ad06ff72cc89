"""The wheel, in an empty environment: what a user installs works from there, with the agent that came in it.

Nothing is fetched: the wheel is built from the sources here, and its dependencies are those of this environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.command_line import Desk

from fairtrial import record
from fairtrial.locks import announcement_in
from fairtrial.record.files import sha256

ROOT = Path(__file__).parents[2]
READY = "FAIRTRIAL_WHEEL"  # a wheel built already, for who is in a hurry
MATURIN = Path(sys.executable).with_name("maturin")

pytestmark = pytest.mark.timeout(1800)  # a cold build takes minutes, and waits for others that build here

STUDY = """\
study: from-the-wheel
workload: {command: {run: "true"}}
factors: {arm: {a: {}, b: {workload: {command: {run: "true b"}}}}}
arm: arm
trials: {blocks: 2}
metrics: {primary: elapsed_s}
"""


@dataclass(frozen=True)
class Installed:
    """An environment that holds the wheel."""

    directory: Path

    @property
    def scripts(self) -> Path:
        return self.directory / "bin"

    def run(self, here: Desk, *arguments: str | Path) -> str:
        inherited = {name: here.environment[name] for name in ("FAIRTRIAL_STATE_DIRECTORY", "COLUMNS", "HOME")}
        done = subprocess.run(
            [self.scripts / "fairtrial", *map(str, arguments)],
            cwd=here.directory,
            env={**inherited, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},  # neither a checkout's agent nor its scripts
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def build(directory: Path) -> Path:
    """The wheel of the sources as they are, with the agent that is compiled already; `make wheel` optimizes it more."""
    if ready := os.environ.get(READY):
        return Path(ready)
    if shutil.which("cargo") is None or not MATURIN.exists():
        pytest.skip("no cargo or maturin to build a wheel with: `make setup` explains")
    locks = subprocess.run([ROOT / "scripts" / "build-locks", "--offline"], capture_output=True, text=True, check=False)
    assert locks.returncode == 0, locks.stderr
    argv = [str(MATURIN), "build", "--offline", "--out", str(directory)]
    built = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = directory.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    wheel = build(tmp_path_factory.mktemp("dist"))
    directory = tmp_path_factory.mktemp("environment")
    venv.create(directory, with_pip=False, symlinks=True)
    argv = [sys.executable, "-m", "pip", "--python", str(directory / "bin" / "python")]
    options = ["--no-index", "--no-deps", "--no-cache-dir", "--disable-pip-version-check", "--no-compile", "--quiet"]
    subprocess.run([*argv, "install", *options, str(wheel)], check=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return Installed(directory)


def test_the_wheel_brings_package_command_and_agent(installed: Installed, here: Desk) -> None:
    assert "Run a study" in installed.run(here, "--help")
    program = "import fairtrial.wire as w, fairtrial; print(fairtrial.__file__, w.find_agent(), sep='\\n')"
    argv = [installed.scripts / "python", "-I", "-c", program]
    package, agent = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert installed.directory in Path(package).parents, "the package of the checkout was imported"
    assert Path(agent) == installed.scripts / "fairtrial-agent"
    version = subprocess.run([agent, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.split()[-1] == installed.run(here, "--version").split()[-1]


def test_the_wheel_brings_the_lock_library(installed: Installed) -> None:
    program = "import fairtrial.locks as l; print(l.library())"
    argv = [installed.scripts / "python", "-I", "-c", program]
    library = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    assert installed.directory in Path(library).parents, "that of the checkout was found"
    environment = {"LD_PRELOAD": library, "FAIRTRIAL_LOCK": "ticket", "PATH": "/usr/bin:/bin"}
    maps = subprocess.run(
        ["cat", "/proc/self/maps"], env=environment, capture_output=True, text=True, check=True
    ).stdout
    found = announcement_in(maps)
    assert found is not None
    assert (found.kind, found.refused) == ("ticket", None)


def test_a_study_is_planned_run_and_verified_from_the_wheel(installed: Installed, here: Desk) -> None:
    study = here.study(STUDY)
    assert "expected duration" in installed.run(here, "plan", study)
    assert "report.html" in installed.run(here, "run", study)
    found = record.read(here.run)
    assert [trial.valid for trial in found.trials] == [True] * 4
    (place,) = found.places
    assert place.agent_sha256 == sha256(installed.scripts / "fairtrial-agent"), "another agent did the work"
    assert "every reported number recomputed" in installed.run(here, "verify", here.run)


def test_ready_studies_and_published_data_come_with_the_wheel(installed: Installed, here: Desk) -> None:
    assert "sqlite-wal" in installed.run(here, "studies")
    assert "disagrees with its own data" in installed.run(here, "studies", "published", "mariadb-fast-mutex")
