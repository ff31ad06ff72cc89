"""What the counting mode has counted, of programs that end in every way."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from support.lock_programs import compiled, preloading, ran

from fairtrial.errors import RecordError
from fairtrial.locks import LockCounts, Site, counted
from fairtrial.locks.counts import lowest_ns

KINDS = ("passthrough", "adaptive", "fast", "fast-local", "fast-constant", "ticket")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("counted"), "counted")


def of_main(directory: Path) -> tuple[LockCounts, LockCounts]:
    """The counts of the program and of its child, told apart by how much they did."""
    both = sorted((counted(path) for path in directory.glob("counts.*")), key=lambda each: -len(each.sites))
    assert len(both) == 2
    return both[0], both[1]


def only(counts: LockCounts, counter: str, value: int) -> Site:
    (site,) = [site for site in counts.sites if site.counters[counter] == value]
    return site


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_to_take_a_lock_is_counted_where_it_happens(program: Path, tmp_path: Path, kind: str) -> None:
    done = ran(program, environment=preloading(FAIRTRIAL_LOCK=kind, FAIRTRIAL_LOCK_COUNT=str(tmp_path / "counts")))
    assert (done.returncode, done.stderr) == (0, "")
    found, child = of_main(tmp_path)
    assert f"kind={kind} " in found.announcement + " "
    plain = only(found, "acquisitions", 1000)
    assert plain.object == str(program)
    assert plain.counters["contended"] == 0
    assert sum(plain.holds.values()) == 1000
    assert not plain.waits
    assert plain.counters["hold_ns"] > 0
    assert only(found, "left_alone", 70).counters["acquisitions"] == 0
    assert only(found, "reacquired", 1).object == str(program)
    assert only(found, "busy", 1).address != only(found, "timed_out", 1).address
    (waited,) = (site for site in found.sites if site.waits)
    assert sum(waited.waits.values()) == 1
    assert waited.counters["wait_ns"] >= max(waited.waits) > 0
    assert child.process != found.process
    assert child.sites[0].counters["acquisitions"] == 10, "a child counts for itself, from nothing"
    assert child.sites[0].address == plain.address


def generated(times: int) -> int:
    """The state of MySQL's generator, begun at 1 (`park_rng` in mysys/thr_mutex.c of 5.5)."""
    state = 1
    for _ in range(times):
        state = state * 279_470_273 % 4_294_967_291
    return state


@pytest.mark.parametrize(
    ("variant", "spins", "state"),
    [
        ("as-shipped", 0, generated(0)),
        ("off", 0, generated(0)),
        ("published", 5, generated(5)),
        ("local", 5, generated(5)),
        ("constant", 5, generated(0)),
    ],
)
def test_a_server_s_fast_mutex_spins_as_often_as_it_says_and_keeps_its_random_state(
    tmp_path: Path, *, variant: str, spins: int, state: int
) -> None:
    program = compiled(tmp_path, "fastmutex", "-rdynamic")
    counts = str(tmp_path / "counts")
    done = ran(program, environment=preloading(FAIRTRIAL_LOCK_FASTMUTEX=variant, FAIRTRIAL_LOCK_COUNT=counts))
    assert (done.returncode, done.stderr, int(done.stdout)) == (0, "", state)
    (found,) = (counted(path) for path in tmp_path.glob("counts.*"))
    assert sum(site.counters["spins"] for site in found.sites) == spins
    assert sum(site.counters["contended"] for site in found.sites) == 1


def test_addresses_are_those_of_the_file(program: Path, tmp_path: Path) -> None:
    ran(program, environment=preloading(FAIRTRIAL_LOCK_COUNT=str(tmp_path / "counts")))
    found, _ = of_main(tmp_path)
    address = only(found, "acquisitions", 1000).address
    assert address is not None
    argv = ["addr2line", "-f", "-e", str(program), hex(address)]
    named = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert named.split()[0] == "plain"


def test_a_killed_program_loses_nothing(program: Path, tmp_path: Path) -> None:
    environment = preloading(FAIRTRIAL_LOCK_COUNT=str(tmp_path / "counts"))
    with subprocess.Popen([program, "stay"], env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        process.kill()
    found = counted(tmp_path / f"counts.{process.pid}")
    assert found.process == process.pid
    assert only(found, "acquisitions", 1000)


def test_a_program_that_executes_another_one_keeps_both_files(program: Path, tmp_path: Path) -> None:
    environment = preloading(FAIRTRIAL_LOCK_COUNT=str(tmp_path / "counts"))
    subprocess.run(["sh", "-c", f"exec {program}"], env=environment, check=True, capture_output=True)
    names = sorted(path.name for path in tmp_path.glob("counts.*"))
    assert any(name.endswith(".2") for name in names), names


def test_threads_of_a_child_that_lock_at_once_all_count_into_its_own_file(tmp_path: Path) -> None:
    program = compiled(tmp_path, "forked")
    done = ran(program, environment=preloading(FAIRTRIAL_LOCK_COUNT=str(tmp_path / "counts")))
    assert (done.returncode, done.stderr) == (0, "")
    children, each = map(int, done.stdout.split())
    made = sorted(
        sum(site.counters["acquisitions"] for site in counted(path).sites) for path in tmp_path.glob("counts.*")
    )
    assert made == [1, *[each] * children]


def test_a_file_that_is_none_or_not_whole_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "counts"
    file.write_bytes(b"nothing of the kind")
    with pytest.raises(RecordError, match="holds no counts"):
        counted(file)
    file.write_bytes(b"FTLOCKS1" + (4).to_bytes(8, "little") * 4 + bytes(264))
    with pytest.raises(RecordError, match="not the"):
        counted(file)


def test_buckets_follow_each_other() -> None:
    lowest = [lowest_ns(bucket) for bucket in range(156)]
    assert lowest[:9] == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert lowest[-1] == 7 << 37
    assert all(after * 4 <= before * 5 for before, after in pairwise(lowest[4:]))
