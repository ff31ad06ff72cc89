"""One version everywhere, a dated changelog, and files of the wheel that are made from others and must not be stale."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import fairtrial

ROOT = Path(__file__).parents[1]
IMPORT = re.compile(r"^ *(?:import (\w+)[\w.]*(?: as \w+)?(?:  #.*)?$|from (\w+)[\w.]* import )", re.MULTILINE)
WORKFLOWS = sorted((ROOT / ".github").rglob("*.yml"))


def words(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_file_that_names_the_version_names_the_same() -> None:
    version = tomllib.loads(words("Cargo.toml"))["workspace"]["package"]["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    cited = re.search(r"^version: (\S+)\ndate-released: (\S+)$", words("CITATION.cff"), re.MULTILINE)
    logged = re.findall(r"^## \[(.*?)\](?: - (\d{4}-\d\d-\d\d))?$", words("CHANGELOG.md"), re.MULTILINE)
    released = [(number, day) for number, day in logged if number != "Unreleased"]
    assert cited
    assert released[0] == (version, cited[2])
    assert cited[1] == version == fairtrial.__version__
    assert tomllib.loads(words("pyproject.toml"))["project"]["dynamic"] == ["version"]
    locks = words("Cargo.lock") + words("fuzz/Cargo.lock")
    locked = re.findall(r'^name = "fairtrial-(?!fuzz)\w+"\nversion = "(.*)"$', locks, re.MULTILINE)
    gate = "".join(
        map(words, ("packaging/ci/action.yml", "packaging/ci/gitlab.yml", "docs/guides/continuous-integration.md"))
    )
    shown = re.findall(r"fairtrial(?:==|/packaging/ci@v|/v)(\d[\w.]*\w)", gate)
    assert len(shown) > 4
    assert {*locked, *shown} == {version}


def test_every_version_of_the_changelog_has_its_day_and_the_newest_is_first() -> None:
    headings = [line for line in words("CHANGELOG.md").splitlines() if line.startswith("## ")]
    dated = [re.fullmatch(r"## \[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d)", line) for line in headings]
    assert all(dated[1:])
    assert dated[0] or headings[0] == "## [Unreleased]"
    days = [each[1] for each in dated if each]
    assert days == sorted(days, reverse=True)


@pytest.mark.parametrize(
    ("script", "at"),
    [("generate-manual", "packaging/wheel-data/data"), ("generate-third-party", "")],
)
def test_what_the_wheel_brings_is_not_stale(script: str, at: str, tmp_path: Path) -> None:
    subprocess.run([ROOT / "scripts" / script, tmp_path], check=True)
    fresh = {path.relative_to(tmp_path): path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()}
    committed = {name: (ROOT / at / name).read_text("utf-8") for name in fresh if (ROOT / at / name).exists()}
    assert len(fresh) > 1
    assert [str(name) for name in fresh if fresh[name] != committed.get(name)] == [], f"run scripts/{script}"
    if at:
        there = {path.relative_to(ROOT / at) for path in (ROOT / at).rglob("*") if path.is_file()}
        assert sorted(map(str, there - fresh.keys())) == [], "pages of commands that are gone"


def test_the_bill_that_is_attested_to_wheels_is_their_own_and_can_be_attested() -> None:
    (attested,) = re.findall(r"sbom-path: dist/(\S+)", words(".github/workflows/release.yml"))
    (brought,) = tomllib.loads(words("pyproject.toml"))["tool"]["maturin"]["sbom"]["include"]
    assert brought == f"packaging/{attested}"
    assert {"bomFormat", "specVersion", "serialNumber"} <= json.loads(words(brought)).keys()  # what the action reads


def imported() -> set[str]:
    """Top-level names that the package imports and that are neither Python's nor its own."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "src" / "fairtrial").rglob("*.py"))
    pairs = (pair for text in texts for pair in IMPORT.findall(text))
    return {one or other for one, other in pairs} - set(sys.stdlib_module_names) - {"fairtrial"}


def test_everything_that_is_imported_is_a_dependency() -> None:
    project = tomllib.loads(words("pyproject.toml"))["project"]
    extras = [each for name, listed in project["optional-dependencies"].items() if name != "dev" for each in listed]
    declared = {re.split(r"[<>=\[]", each)[0].lower() for each in [*project["dependencies"], *extras]}
    declared |= {"markupsafe", "pydantic_core"}  # come with jinja2 and pydantic, and only with them
    owners = packages_distributions()
    lacking = {name for name in imported() if declared.isdisjoint(each.lower() for each in owners.get(name, [name]))}
    assert lacking - declared == set()


def test_actions_of_others_are_named_by_their_commit() -> None:
    used = [each for path in WORKFLOWS for each in re.findall(r"uses: (\S+)(.*)", path.read_text("utf-8"))]
    others = [(name, comment) for name, comment in used if not name.startswith("./")]
    assert others
    assert [
        name
        for name, comment in others
        if not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", name) or not re.fullmatch(r" # v\d+\.\d+\.\d+", comment)
    ] == []
