"""Programs that use mutexes in every way, with each kind: exclusion, condition variables, time limits, forks, ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lock_programs import compiled, preloading, ran

KINDS = ("passthrough", "adaptive", "fast", "fast-local", "fast-constant", "ticket")
WAYS = {
    "exclusion": (4, 3000),
    "mixture": (8, 300),
    "conditions": (4, 500),
    "timed": (4,),
    "recursive": (),
    "robust": (),
    "shared": (4, 1000),
    "forks": (3, 5),
    "exits": (8, 10),
    "cancelled": (1, 50),
    "many": (500, 5),
}
THREADS = 10_000
TOO_FEW_THREADS = 77  # what the program ends with


@pytest.fixture(scope="module")
def stress(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("stress"), "stress")


@pytest.mark.parametrize("way", WAYS)
def test_the_program_is_right_without_the_library(stress: Path, way: str) -> None:
    assert ran(stress, way, *WAYS[way]).returncode == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_keeps_what_a_mutex_promises(stress: Path, kind: str, way: str) -> None:
    done = ran(stress, way, *WAYS[way], environment=preloading(FAIRTRIAL_LOCK=kind))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["passthrough", "adaptive", "fast-local", "ticket"])
def test_counting_keeps_it_too(stress: Path, tmp_path: Path, *, kind: str, way: str) -> None:
    environment = preloading(FAIRTRIAL_LOCK=kind, FAIRTRIAL_LOCK_COUNT=str(tmp_path / "counts"))
    done = ran(stress, way, *WAYS[way], environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(tmp_path.glob("counts.*"))


@pytest.mark.parametrize("kind", ["fast", "ticket"])
@pytest.mark.parametrize("spins", ["0", "1000"])
def test_no_spinning_and_much_of_it(stress: Path, kind: str, spins: str) -> None:
    environment = preloading(FAIRTRIAL_LOCK=kind, FAIRTRIAL_LOCK_SPINS=spins)
    assert ran(stress, "mixture", 8, 200, environment=environment).returncode == 0
    assert ran(stress, "exclusion", 4, 1000, environment=environment).returncode == 0


@pytest.mark.parametrize("kind", ["passthrough", "fast", "ticket"])
def test_ten_thousand_threads_wait_for_one_lock(stress: Path, kind: str) -> None:
    done = ran(stress, "many", THREADS, 1, environment=preloading(FAIRTRIAL_LOCK=kind))
    if done.returncode == TOO_FEW_THREADS:
        pytest.skip(f"this machine does not give so many: {done.stderr}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = compiled(tmp_path_factory.mktemp("sanitized"), "stress", "-fsanitize=thread")
    if ran(program, "exclusion", 2, 10).returncode != 0:
        pytest.skip("ThreadSanitizer does not run here")
    return program


@pytest.mark.parametrize(
    "way", [("exclusion", 4, 500), ("mixture", 4, 200), ("conditions", 4, 200)], ids=lambda way: way[0]
)
@pytest.mark.parametrize("kind", KINDS)
def test_thread_sanitizer_sees_no_race(sanitized: Path, kind: str, way: tuple[str | int, ...]) -> None:
    """The program's data are plain, and the sanitizer knows the real lock: a thread that came in without it is seen."""
    done = ran(sanitized, *way, environment=preloading(FAIRTRIAL_LOCK=kind))
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("sanitized")  # which skips where it does not run
def test_thread_sanitizer_would_see_one(tmp_path: Path) -> None:
    """The same program with locks that do nothing."""
    program = compiled(tmp_path, "stress", "-fsanitize=thread", "-DWITHOUT_LOCKS")
    done = ran(program, "exclusion", 4, 500)
    assert "data race" in done.stderr
