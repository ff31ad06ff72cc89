"""Where the library is not in effect, that is seen; what cannot be meant is refused before the program begins."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.lock_programs import compiled, preloading, ran

from fairtrial.errors import PlaceError
from fairtrial.locks import Announcement, announcement_in, find, library

NOBODY = "65534"


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("quiet"), "quiet")


def seen(program: Path, **variables: str) -> Announcement | None:
    done = ran(program, environment=preloading(**variables))
    assert done.returncode == 0, done.stderr
    return announcement_in(done.stdout)


def test_a_program_that_never_locks_shows_what_is_in_effect(quiet: Path) -> None:
    assert seen(quiet) == Announcement("passthrough", None, count=False, fastmutex=None, refused=None)
    assert seen(quiet, FAIRTRIAL_LOCK="ticket") == Announcement(
        "ticket", 100, count=False, fastmutex=None, refused=None
    )
    found = seen(quiet, FAIRTRIAL_LOCK="fast", FAIRTRIAL_LOCK_SPINS="0")
    assert found == Announcement("fast", 0, count=False, fastmutex=None, refused=None)


def test_a_program_without_it_shows_nothing(quiet: Path) -> None:
    assert announcement_in(ran(quiet).stdout) is None


def test_a_program_that_is_linked_statically_starts_without_it(tmp_path: Path) -> None:
    static = compiled(tmp_path, "quiet", "-static")
    assert seen(static, FAIRTRIAL_LOCK="ticket") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a set-uid program: run as root")
def test_a_set_uid_program_starts_without_it(quiet: Path, tmp_path: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv: install util-linux")
    for each in (tmp_path, *tmp_path.parents[:2]):
        each.chmod(0o755)
    program = Path(shutil.copy(quiet, tmp_path))
    program.chmod(0o4755)
    argv = ["setpriv", "--reuid", NOBODY, "--clear-groups", program]
    without = subprocess.run(argv, capture_output=True, text=True, check=False)
    if without.returncode or not without.stdout:
        pytest.skip(f"nobody may not run it here: {without.stderr}")
    done = subprocess.run(argv, env=preloading(FAIRTRIAL_LOCK="ticket"), capture_output=True, text=True, check=True)
    assert done.stdout
    assert announcement_in(done.stdout) is None


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"FAIRTRIAL_LOCK": "tickets"}, "FAIRTRIAL_LOCK=tickets must be passthrough, adaptive,"),
        (
            {"FAIRTRIAL_LOCK": "fast", "FAIRTRIAL_LOCK_SPINS": "many"},
            "FAIRTRIAL_LOCK_SPINS=many must be a whole number",
        ),
        ({"FAIRTRIAL_LOCK": "adaptive", "FAIRTRIAL_LOCK_SPINS": "5"}, "glibc.pthread.mutex_spin_count"),
        (
            {"FAIRTRIAL_LOCK_COUNT": "/nowhere/counts"},
            "FAIRTRIAL_LOCK_COUNT: No such file or directory: /nowhere/counts",
        ),
        ({"FAIRTRIAL_LOCK_COUNT": "x" * 4096}, "FAIRTRIAL_LOCK_COUNT: File name too long: xxx"),  # PATH_MAX
        ({"FAIRTRIAL_LOCK_FASTMUTEX": "off"}, "this program does not"),
        ({"FAIRTRIAL_LOCK_FASTMUTEX": "as-shipped"}, "this program does not"),
        ({"FAIRTRIAL_LOCK_FASTMUTEX": "off", "FAIRTRIAL_LOCK": "fast"}, "leave one of them out"),
    ],
)
def test_what_cannot_be_is_one_line_and_the_end(quiet: Path, variables: dict[str, str], said: str) -> None:
    done = ran(quiet, environment=preloading(**variables))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.startswith("libfairtrial_locks.so: ")
    assert done.stderr.count("\n") == 1


def test_words_of_an_announcement() -> None:
    line = "7f00-7f01 ---p 00000000 00:01 29 /memfd:fairtrial-locks kind={} count={} fastmutex=off{} (deleted)\n"
    text = "5500-5600 r-xp 00000000 08:01 7 /usr/bin/true\n" + line.format("passthrough", "yes", "")
    assert announcement_in(text) == Announcement("passthrough", None, count=True, fastmutex="off", refused=None)
    refused = announcement_in(line.format("passthrough", "no", " refused=kind"))
    assert refused is not None
    assert refused.refused == "kind"


def test_a_library_that_is_not_there_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(find, "__file__", str(tmp_path / "find.py"))
    with pytest.raises(PlaceError, match="no lock library") as caught:
        library()
    assert "make setup" in (caught.value.hint or "")


def test_the_library_stands_in_for_what_it_must_and_needs_only_the_system(quiet: Path) -> None:
    """A library that brought a C library of its own would be two in one process."""
    del quiet
    if shutil.which("readelf") is None:
        pytest.skip("no readelf: install binutils")
    needed = subprocess.run(["readelf", "-d", library()], capture_output=True, text=True, check=True).stdout
    names = {line.split("[")[1].rstrip("]") for line in needed.splitlines() if "(NEEDED)" in line}
    assert names <= {"libc.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
    symbols = subprocess.run(
        ["readelf", "-W", "--dyn-syms", library()], capture_output=True, text=True, check=True
    ).stdout
    defined = {line.split()[7] for line in symbols.splitlines() if " FUNC " in line and " UND " not in line}
    assert defined == {f"pthread_mutex_{way}" for way in ("lock", "trylock", "timedlock", "clocklock", "unlock")} | {
        f"pthread_cond_{way}" for way in ("wait", "timedwait", "clockwait")
    }
