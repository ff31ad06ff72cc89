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
from support.command_line import Desk, without_compilers

from fairtrial import record
from fairtrial.locks import announcement_in
from fairtrial.record.files import sha256

ROOT = Path(__file__).parents[2]
READY = "FAIRTRIAL_WHEEL"  # a wheel built already, for who is in a hurry
MATURIN = Path(sys.executable).with_name("maturin")

pytestmark = pytest.mark.timeout(1800)  # a cold build takes minutes, and waits for others that build here

# One block of the demonstration, by users who mostly think; a window that ends by time may be without a transaction.
LENGTH = ("duration=null", "transactions=200", "think_time=10ms")
SHORT = ("--set", "trials.blocks=1", *(f"--set=workload.tpcc.{each}" for each in LENGTH))


@dataclass(frozen=True)
class Installed:
    """An environment that holds the wheel, and the PATH of who uses it."""

    directory: Path
    programs: str

    @property
    def scripts(self) -> Path:
        return self.directory / "bin"

    def run(self, here: Desk, *arguments: str | Path) -> str:
        inherited = {name: here.environment[name] for name in ("FAIRTRIAL_STATE_DIRECTORY", "COLUMNS", "HOME")}
        done = subprocess.run(
            [self.scripts / "fairtrial", *map(str, arguments)],
            cwd=here.directory,
            env={**inherited, "PATH": self.programs},  # no compiler, no cargo, no agent of a checkout
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
    return Installed(directory, without_compilers(directory / "programs"))


def test_the_wheel_brings_package_command_and_agent(installed: Installed, here: Desk) -> None:
    assert "Run a study" in installed.run(here, "--help")
    program = "import fairtrial.wire as w, fairtrial; print(fairtrial.__file__, w.find_agent(), sep='\\n')"
    argv = [installed.scripts / "python", "-I", "-c", program]
    package, agent = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    assert installed.directory in Path(package).parents, "the package of the checkout was imported"
    assert Path(agent) == installed.scripts / "fairtrial-agent"
    version = subprocess.run([agent, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.split()[-1] == installed.run(here, "--version").split()[-1]


def test_the_wheel_brings_the_files_of_the_repository_and_no_others(installed: Installed) -> None:
    (listed,) = installed.directory.glob("lib/python*/site-packages/fairtrial-*.dist-info/RECORD")
    lines = listed.read_text(encoding="utf-8").splitlines()
    brought = {line.partition(",")[0] for line in lines if line.startswith("fairtrial/")}
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "fairtrial"]
    known = subprocess.run(argv, cwd=ROOT / "src", capture_output=True, text=True, check=True).stdout.splitlines()
    own = {name for name in known if (ROOT / "src" / name).exists()}
    assert brought ^ own == {"fairtrial/locks/libfairtrial_locks.so"}


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


def test_the_demonstration_runs_and_is_verified_from_the_wheel(installed: Installed, here: Desk) -> None:
    assert "report.html" in installed.run(here, "demo", *SHORT)
    found = record.read(here.run)
    assert [trial.valid for trial in found.trials] == [True] * 4
    (place,) = found.places
    assert place.agent_sha256 == sha256(installed.scripts / "fairtrial-agent"), "another agent did the work"
    assert "every reported number recomputed" in installed.run(here, "verify", here.run)


def test_manual_pages_completion_and_licences_come_with_the_wheel(installed: Installed, here: Desk) -> None:
    share = installed.directory / "share"
    assert "Run a study" in (share / "man" / "man1" / "fairtrial-run.1").read_text(encoding="utf-8")
    (licences,) = installed.directory.glob("lib/python*/site-packages/fairtrial-*.dist-info/licenses")
    assert "libsqlite3-sys" in (licences / "THIRD-PARTY").read_text(encoding="utf-8")
    assert list(licences.parent.glob("sboms/*.cdx.json"))
    completion = share / "bash-completion" / "completions" / "fairtrial"
    script = f"PATH={installed.scripts}:$PATH; . {completion}; COMP_WORDS=(fairtrial ver); COMP_CWORD=1; "
    argv = ["bash", "-c", script + '_fairtrial_completion fairtrial; echo "${COMPREPLY[@]}"']
    done = subprocess.run(argv, cwd=here.directory, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["verify"]


def test_ready_studies_and_published_data_come_with_the_wheel(installed: Installed, here: Desk) -> None:
    program = "from fairtrial.studies import ready; print(*(file.stem for file in ready.bundled()))"
    argv = [installed.scripts / "python", "-I", "-c", program]
    assert "sqlite-wal" in subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert "disagrees with its own data" in installed.run(here, "studies", "published", "mariadb-fast-mutex")
