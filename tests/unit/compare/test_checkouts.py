"""Two checkouts as arms: directories built in place, commits built once elsewhere, and what is wrong with them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.compare.checkouts import Checkouts, named
from fairtrial.errors import InputError


def git(repository: Path, *words: str) -> str:
    command = ["git", "-C", repository, "-c", "user.name=t", "-c", "user.email=t@example.org", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As a job has it: a shallow clone with two commits, detached, the current directory."""
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIRECTORY", str(tmp_path / "cache"))
    origin, here = tmp_path / "origin", tmp_path / "here"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    for number in range(3):
        (origin / "number").write_text(f"{number}\n")
        git(origin, "add", ".")
        git(origin, "commit", "-q", "-m", f"change {number}")
    git(tmp_path, "clone", "-q", "--depth", "2", f"file://{origin}", str(here))
    git(here, "checkout", "-q", "--detach")
    git(here, "branch", "-q", "-D", "main")
    monkeypatch.chdir(here)
    return here


def test_commits_of_a_shallow_clone_are_built_apart_and_it_does_not_change(repository: Path) -> None:
    (repository / "number").unlink()
    base, head = Checkouts("HEAD^1", "HEAD", build="cp number built").built()
    assert [(Path(each) / "built").read_text() for each in (base, head)] == ["1\n", "2\n"]
    assert len(base) == len(head)  # a longer path in the environment would be a difference between the arms
    assert git(repository, "status", "--porcelain") == "D number"


def test_both_are_of_one_day(repository: Path, tmp_path: Path) -> None:
    """A compiler is replaced, and a program leaves a file in its checkout: never in one of the two alone."""
    compiler = tmp_path / "compiler"
    command = f"cp {compiler} by; test ! -e hard -o $(cat by) != 17"

    def built(base: str, head: str, *, by: str, resume: bool = False) -> list[tuple[str, bool]]:
        compiler.write_text(by)
        pair = [Path(each) for each in Checkouts(base, head, build=command).built(resume=resume)]
        found = [((each / "by").read_text(), (each / "left").exists()) for each in pair]
        (pair[1] / "left").touch()
        return found

    assert built("HEAD^1", "HEAD", by="12") == [("12", False)] * 2
    git(repository, "commit", "-q", "--allow-empty", "-m", "change 3")
    assert built("HEAD^1", "HEAD", by="13") == [("13", False)] * 2
    assert built("HEAD^1", "HEAD", by="14") == [("13", False), ("13", True)], "these two were built together"
    assert built("HEAD^1", "./", by="15")[0] == ("15", False)
    assert built("HEAD^1", "./", by="16")[0] == ("16", False)
    assert built("HEAD^1", "./", by="17", resume=True)[0] == ("16", False), "trials have run on it"
    (repository / "hard").touch()
    git(repository, "add", "hard")
    git(repository, "commit", "-q", "-m", "change 4")
    with pytest.raises(InputError, match="cannot build head"):
        built("HEAD^1", "HEAD", by="17")
    assert built("HEAD^1", "HEAD", by="18") == [("18", False)] * 2


def test_directories_are_built_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTRIAL_CACHE_DIRECTORY", str(tmp_path / "cache"))
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)
    assert Checkouts("old", "new", build="touch built").built() == (str(tmp_path / "old"), str(tmp_path / "new"))
    assert (tmp_path / "old/built").exists()
    assert (tmp_path / "new/built").exists()


def test_a_name_that_is_a_directory_and_a_commit_is_neither(repository: Path) -> None:
    """A change that brings a directory `HEAD^1` would be compared with what it likes."""
    (repository / "HEAD^1").mkdir()
    with pytest.raises(InputError, match=r"--base: `HEAD\^1` is a directory and a commit"):
        Checkouts("HEAD^1", "HEAD").built()
    assert Checkouts("./HEAD^1", "HEAD").built()[0] == str(repository / "HEAD^1")


def test_a_study_has_them_as_its_arm_and_its_own_factors_as_conditions(repository: Path) -> None:
    file = repository / "gate.yaml"
    file.write_text(
        "study: gate\nworkload: {command: {run: '{build}/bench'}}\narm: threads\n"
        "factors: {threads: {one: {settings: {environment: {T: '1'}}}, two: {settings: {environment: {T: '2'}}}}}\n"
        "metrics: {primary: [elapsed_s]}\ntrials: {blocks: 3}\n"
    )
    levels = Checkouts("HEAD^1", "HEAD").levels(file, size=None, overrides=["trials.blocks=7"])
    loaded = study.load(file, catalogue=catalogue(), overrides=["trials.blocks=7", *levels])
    assert (loaded.arm.level_names, [each.name for each in loaded.conditions]) == (("base", "head"), ["threads"])
    runs = [
        loaded.resolve({"commit": arm, "threads": "one"}).workload.root["command"]["run"] for arm in ("base", "head")
    ]
    assert [Path(run).parent.joinpath("number").read_text() for run in runs] == ["1\n", "2\n"]
    with_two_arms = file.read_text().replace(", two: {settings: {environment: {T: '2'}}}", "")
    file.write_text(with_two_arms.replace("{settings: {environment: {T: '1'}}}", "{workload: {command: {label: x}}}"))
    duet = ["trials.order=duet"]
    alone = Checkouts("HEAD^1", "HEAD").levels(file, size=None, overrides=duet)
    assert study.load(file, catalogue=catalogue(), overrides=[*duet, *alone]).trials.order == "duet"
    file.write_text(file.read_text().replace("{build}/bench", "/bin/true"))
    with pytest.raises(InputError, match=r"nothing in the study names `{build}`"):
        Checkouts("HEAD^1", "HEAD").levels(file, size=None, overrides=[])


@pytest.mark.parametrize(
    ("base", "head", "build", "said"),
    [
        ("HEAD^2", "HEAD", "", "--base: `HEAD^2` is neither a directory nor a commit"),
        ("HEAD", "--upload-pack=x", "", "--head: `--upload-pack=x` is neither"),
        ("HEAD", "HEAD", "", "are the same checkout"),
        (
            "HEAD^1",
            "HEAD",
            "echo no rule; exit 3",
            "cannot build base: `echo no rule; exit 3` ended with code 3: no rule",
        ),
    ],
)
@pytest.mark.usefixtures("repository")
def test_what_is_wrong_is_said_by_option(*, base: str, head: str, build: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        Checkouts(base, head, build).built()
    assert said in str(refused.value)


@pytest.mark.parametrize(("base", "head", "build"), [("a", "", ""), ("", "b", ""), ("", "", "make")])
def test_one_without_the_other_is_refused(base: str, head: str, build: str) -> None:
    with pytest.raises(InputError, match=r"--(base|head)"):
        named(base, head, build=build)
    assert named("", "", build="") is None
