"""Faults drawn by a seed, on the cheapest run there is: a record that is written, taken up again and finished."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
from faulting import calls, power
from faulting.calls import Logged

ROOT, TOP = Path(__file__).parents[3], PurePosixPath("/top")
# Sessions under strikes that seeds draw, and one that is logged; prints what is wrong after any, how many were struck,
# and what is wrong with a session that reports nothing.
SCRIPT = """\
import errno, json, random, sys
from pathlib import Path
from faulting import session
from faulting.calls import CALLS, KILLED, Strike

top = Path(sys.argv[1])
wrong, marks = session.struck(top / "whole", {"FAULT_LOG": str(top / "log")}), []
for seed in range(12):
    chance = random.Random(seed)
    error = chance.choice((KILLED, errno.ENOSPC, errno.EIO))
    strike = Strike(chance.choice(CALLS), chance.randint(1, 25), error, lasts=bool(chance.getrandbits(1)))
    marks.append(top / f"struck-{seed}")
    wrong += [f"{seed}: {strike}: {each}" for each in session.struck(top / str(seed), strike.environment(marks[-1]))]
session.trial_record = None
mute = session.struck(top / "mute", Strike("write", 999).environment(top / "never"))
print(json.dumps([wrong, sum(mark.exists() for mark in marks), mute]))
"""


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], int, list[str]]:
    """A log of an undisturbed session, and what the script prints."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on this machine")
    top = tmp_path_factory.mktemp("faults")
    paths = {"PYTHONPATH": f"{ROOT / 'benches'}:{ROOT / 'tests'}", "LD_PRELOAD": str(calls.compiled(top))}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, top], env={**os.environ, **paths}, capture_output=True, text=True, check=True
    )
    return top, *json.loads(done.stdout)


def test_calls_that_fail_or_are_a_process_last_lose_nothing_that_was_reported(
    struck: tuple[Path, list[str], int, list[str]],
) -> None:
    _, wrong, count, mute = struck
    assert wrong == []
    assert count > 6, "drawn strikes that were reached"
    assert mute == ["the session ended with 4"], "a session that reports nothing has lost nothing, and is wrong"


def test_power_that_fails_anywhere_loses_nothing_that_was_reported(
    struck: tuple[Path, list[str], int, list[str]], tmp_path: Path
) -> None:
    from faulting import promises  # noqa: PLC0415 - after the skip

    log = list(calls.read(struck[0] / "log"))
    top = PurePosixPath(struck[0] / "whole")
    journal, seen = top / "runs" / "faults-1" / "journal.jsonl", set()
    for seed in range(25):
        chance = random.Random(seed)
        disk = power.Disk(top).carry_out(log[: chance.randint(1, len(log))])
        disk.after_cut(tmp_path / str(seed), chance)
        reported = power.reported(disk, journal)
        seen.add(len(reported))
        directory = tmp_path / str(seed) / "runs" / "faults-1"
        assert promises.of_cut(directory, reported, all_there=False) == [], seed
    assert len(seen) > 3, "before, between and after trials"


def cut(*made: Logged) -> set[tuple[str, bytes]]:
    """Every file with its content that a disk may hold after these calls."""
    found = set()
    for seed in range(60):
        chance, names = random.Random(seed), dict[str, bytes]()
        disk = power.Disk(TOP).carry_out(made)
        for name, node in disk.root.after_cut(chance.choice(power.WAYS), chance).items():
            assert isinstance(node, power.File)
            names[name] = node.after_cut(chance.choice(power.WAYS), chance)
        found |= set(names.items()) or {("", b"")}
    return found


def call(kind: str, path: str = "", *, other: str = "", data: bytes = b"", offset: int = 0) -> Logged:
    return Logged(kind, str(TOP / path), str(TOP / other) if other else "", offset, data)


NEW = (call("c", "a"), call("w", "a", data=b"ab"))


def test_what_is_not_synced_may_be_there_torn_or_lost() -> None:
    assert cut(*NEW) == {("", b""), ("a", b""), ("a", b"a"), ("a", b"ab")}


def test_a_name_is_as_safe_as_its_directory_and_bytes_are_as_safe_as_their_file() -> None:
    assert cut(*NEW, call("s", "a")) == {("", b""), ("a", b"ab")}
    assert cut(*NEW, call("s")) == {("a", b""), ("a", b"a"), ("a", b"ab")}
    assert cut(*NEW, call("s", "a"), call("s")) == {("a", b"ab")}


def test_a_file_that_replaces_another_is_one_or_the_other() -> None:
    old = (call("c", "b"), call("w", "b", data=b"old"), call("s", "b"))
    new = (*NEW, call("s", "a"), call("s"), call("r", "a", other="b"))
    assert cut(*old, *new) == {("b", b"old"), ("a", b"ab"), ("b", b"ab")}
    assert cut(*old, *new, call("s")) == {("b", b"ab")}
