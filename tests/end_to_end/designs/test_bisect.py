"""`fairtrial bisect` as installed: a git history with a planted slow commit, to its name, across kills, verified.

What a trial reports is counted work with a little noise drawn from the trial's seed: no busy machine changes it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import ALIKE, Desk, desk, eventually

PROGRAM = """\
import hashlib, os
words = hashlib.sha256((os.environ["FAIRTRIAL_SEED"] + "{name}").encode()).digest()
print("took =", {work} * (1 + {noise} * (sum(words[:12]) / 1530 - 1)), "ms")
"""
STUDY = """\
study: planted
workload:
  command:
    run: python3 -S '{build}/built.py'
    metrics: {took_ms: {regex: 'took = ([0-9.]+)', unit: ms}}
factors: {size: {small: {}}}
arm: size
metrics: {primary: took_ms}
"""
COMMITS, SLOW, BROKEN = 8, 5, 3


def git(repository: Path, *words: str) -> str:
    command = ["git", "-C", repository, "-c", "user.name=t", "-c", "user.email=t@example.org", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def history(repository: Path, *, slow: int = SLOW) -> None:
    """Commits v0 to v8; one is slow, and one before it cannot be built."""
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    for number in range(COMMITS + 1):
        program = PROGRAM.format(name=f"c{number}", work=100 * (1.1 if number >= slow else 1), noise=0.02)
        (repository / "prog.py").write_text(program)
        (repository / "build.sh").write_text(
            "exit 1\n" if number == BROKEN else "echo once >>log; cp prog.py built.py\n"
        )
        git(repository, "add", ".")
        git(repository, "commit", "-q", "-m", f"change {number}")
        git(repository, "tag", f"v{number}")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    with desk() as found:
        monkeypatch.setenv("FAIRTRIAL_CACHE_DIRECTORY", str(found.directory / "cache"))
        found.study(STUDY)
        yield found


BISECT = ("bisect", "study.yaml", "--commits", "v0..v8", "--build", "sh build.sh", "--repository", "history")


@pytest.mark.long
def test_a_planted_slow_commit_is_named_and_confirmed_though_a_kill_and_an_unbuildable_one_are_in_the_way(
    here: Desk,
) -> None:
    history(here.directory / "history")
    here.fairtrial(*BISECT, "--dry-run")
    assert not here.runs
    running = here.start(*BISECT)
    try:
        eventually(lambda: '"measured"' in text(here, "journal.jsonl"), "no block was measured")
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    measured = text(here, "journal.jsonl").count('"measured"')
    done = here.fairtrial("bisect", "study.yaml", "--resume")
    assert text(here, "journal.jsonl").count('"measured"') > measured
    assert f"(change {SLOW})" in done.stdout
    assert "confirmed: " in done.stdout
    found = json.loads(text(here, "bisect.json"))
    assert (found["outcome"], found["changes"][0]["at"]) == ("one_change", SLOW)
    assert found["confirmations"][0]["verdict"] == "slower"
    assert text(here, "bisect.txt") in done.stdout
    builds = sorted((here.directory / "cache" / "builds").glob("*/log"))
    assert all(each.read_text() == "once\n" for each in builds)
    assert git(here.directory / "history", "status", "--porcelain", "--untracked-files=all") == ""
    assert "worktree" not in git(here.directory / "history", "worktree", "list", "--porcelain").split("\n", 1)[1]
    here.fairtrial("verify", here.run)
    journal = here.run / "journal.jsonl"
    lines = journal.read_text().splitlines()
    place = next(index for index, line in enumerate(lines) if '"measured"' in line)
    line = json.loads(lines[place])
    line["entry"]["log_ratios"][0] += 0.01
    journal.write_text("\n".join([*lines[:place], json.dumps(line), *lines[place + 1 :]]) + "\n")
    assert "query 1: log_ratios" in here.fairtrial("verify", here.run, code=1).stdout


def test_levels_of_a_factor_without_a_change_say_so(here: Desk) -> None:
    here.study(ALIKE)
    done = here.fairtrial("bisect", "study.yaml", "--over", "version", "--from", "v0", "--to", "v2")
    assert "no change: took of v2 is within 2 % of v0's" in done.stdout
    here.fairtrial("verify", here.run)
    (here.run / "bisect.txt").write_text("something else")
    assert "bisect.txt: does not match" in here.fairtrial("verify", here.run, code=1).stdout


@pytest.mark.long
def test_a_level_that_does_not_run_is_left_out_and_leaves_a_range(here: Desk) -> None:
    here.study(ALIKE.replace("label: v1", "run: 'false'").replace("label: v2", "run: echo took = 110"))
    done = here.fairtrial("bisect", "study.yaml", "--over", "version", "--from", "v0", "--to", "v2")
    assert "one change: one of 2 versions, from v1 to v2, took +10.0 %" in done.stdout
    assert "left out: v1: `false` ended with exit code 1" in done.stdout
    here.fairtrial("verify", here.run)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--commits", "v0..v8"), "--build"),
        (("--over", "size", "--from", "small", "--to", "small"), "only one level"),
        (("--over", "sizes", "--from", "a", "--to", "b"), "unknown factor `sizes`"),
        ((), "expected --over, --from and --to, or --commits"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_built(here: Desk, words: tuple[str, ...], said: str) -> None:
    here.study(STUDY.replace("{build}/", ""))
    done = here.fairtrial("bisect", "study.yaml", *words, code=2)
    assert said in done.stderr
    assert not here.runs


def text(here: Desk, name: str) -> str:
    """A file of the one bisection, empty while it is not there."""
    found = [path / name for path in here.runs if (path / name).exists()]
    return found[0].read_text() if found else ""
