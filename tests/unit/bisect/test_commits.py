"""Commits of a real repository, each built once in a checkout of its own, which the repository does not notice."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fairtrial import disks
from fairtrial.bisect.commits import Builds, UnbuildableError, history
from fairtrial.errors import InputError


def git(repository: Path, *words: str | Path) -> str:
    command = ["git", "-C", repository, "-c", "user.name=t", "-c", "user.email=t@example.org", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commits v0 to v3, and a side branch that was merged as v2."""
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIRECTORY", str(tmp_path / "cache"))
    found = tmp_path / "repository"
    found.mkdir()
    git(found, "init", "-q", "-b", "main")
    for number in (0, 1):
        _commit(found, number)
    git(found, "checkout", "-q", "-b", "side", "v0")
    git(found, "commit", "-q", "--allow-empty", "-m", "beside")
    git(found, "checkout", "-q", "main")
    git(found, "merge", "-q", "--no-ff", "-m", "change 2", "side")
    git(found, "tag", "v2")
    _commit(found, 3)
    return found


def _commit(repository: Path, number: int) -> None:
    (repository / "number").write_text(f"{number}\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", f"change {number}")
    git(repository, "tag", f"v{number}")


def test_commits_go_from_good_to_bad_along_first_parents(repository: Path) -> None:
    found = history(repository, "v0..main")
    assert [each.subject for each in found] == ["change 0", "change 1", "change 2", "change 3"]
    assert found[0].hash == git(repository, "rev-parse", "v0").strip()
    assert all(each.hash.startswith(each.name) for each in found)


def test_a_subject_may_hold_what_ends_lines_elsewhere(repository: Path) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", "one\u2028two\x0cthree")
    git(repository, "commit", "-q", "--allow-empty", "-m", "caf\udce9")  # a byte that is not UTF-8
    git(repository, "commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
    subjects = [each.subject for each in history(repository, "v3..main")]
    assert subjects == ["change 3", "one\u2028two\x0cthree", "café", ""]


@pytest.mark.parametrize(
    "span", ["v0", "v0..", "..v1", "v0...v1", "v3..v0", "v0..v0", "v0..nowhere", "side..v1", "side..v3"]
)
def test_what_is_not_a_span_is_refused(repository: Path, span: str) -> None:
    with pytest.raises(InputError, match="--commits"):
        history(repository, span)


def test_a_commit_is_built_once_and_the_repository_does_not_change(repository: Path, tmp_path: Path) -> None:
    builds = Builds(repository, "cat number >> built", tmp_path / "logs")
    commit = history(repository, "v0..v3")[1].hash
    before = git(repository, "for-each-ref") + git(repository, "worktree", "list")
    assert builds.build(commit) > 0
    assert (builds.directory(commit) / "built").read_text() == "1\n"
    assert builds.build(commit) == 0
    assert (builds.directory(commit) / "built").read_text() == "1\n"
    assert git(repository, "for-each-ref") + git(repository, "worktree", "list") == before
    assert not git(repository, "status", "--porcelain")
    other = Builds(repository, "cp number built", tmp_path / "logs")
    assert other.directory(commit) != builds.directory(commit)


def test_a_build_is_on_the_disk_before_the_mark_that_says_so(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds = Builds(repository, "cp number built", tmp_path / "logs")
    commit, synced = history(repository, "v0..v3")[1].hash, []

    def sync(directory: Path) -> None:
        assert not directory.with_suffix(".json").exists()
        synced.append((directory / "built").read_text())

    monkeypatch.setattr(disks, "sync_around", sync)
    builds.build(commit)
    assert synced == ["1\n"]
    assert builds.directory(commit).with_suffix(".json").exists()


def test_a_repository_may_be_named_by_a_directory_in_it(repository: Path, tmp_path: Path) -> None:
    (repository / "sub").mkdir()
    git(repository, "worktree", "add", "-q", "-b", "beside", tmp_path / "beside", "v3")
    (tmp_path / "beside" / "sub").mkdir()
    for named, at in ((repository / "sub", 0), (tmp_path / "beside", 1), (tmp_path / "beside" / "sub", 3)):
        builds = Builds(named, "cp number built", tmp_path / "logs")
        commit = history(named, "v0..v3")[at].hash
        assert builds.build(commit) > 0
        assert (builds.directory(commit) / "built").read_text() == f"{at}\n"


def test_what_git_tells_its_hooks_and_aliases_does_not_lead_a_checkout_to_the_users_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "worktree", "add", "-q", "-b", "beside", tmp_path / "beside", "v3")
    own = git(tmp_path / "beside", "rev-parse", "--absolute-git-dir").strip()
    monkeypatch.setenv("GIT_DIR", own)
    builds = Builds(tmp_path / "beside", "git rev-parse HEAD > built", tmp_path / "logs")
    commit = history(tmp_path / "beside", "v0..v3")[1].hash
    builds.build(commit)
    assert (builds.directory(commit) / "built").read_text().strip() == commit
    assert (Path(own) / "HEAD").read_text() == "ref: refs/heads/beside\n"


def test_what_a_kill_left_of_a_build_is_built_again(repository: Path, tmp_path: Path) -> None:
    builds = Builds(repository, "test ! -e half", tmp_path / "logs")
    commit = history(repository, "v0..v3")[3].hash
    builds.directory(commit).mkdir(parents=True)
    (builds.directory(commit) / "half").touch()
    assert builds.build(commit) > 0


def test_a_commit_that_cannot_be_built_says_how(repository: Path, tmp_path: Path) -> None:
    builds = Builds(repository, "echo no rule >&2; exit 3", tmp_path / "logs")
    commit = history(repository, "v0..v3")[2].hash
    with pytest.raises(UnbuildableError, match=r"ended with code 3: no rule"):
        builds.build(commit)
    assert (tmp_path / "logs" / f"{commit}.log").read_text() == "no rule\n"
    with pytest.raises(UnbuildableError):
        builds.build(commit)
