"""What is linked, installed and downloaded: known by hash, from registries alone, under licences that allow it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
DENY = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
ALLOWED = set(DENY["licenses"]["allow"])
COPYLEFT = re.compile(r"GPL|MPL|EPL|CDDL|OSL|EUPL|SSPL")
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"  # Cargo's name for crates.io
# Commands of cargo that may change Cargo.lock, and those that read it.
RESOLVING = re.compile(r"(?<!`)\bcargo (?:\+\S+ )?(?:bench|build|check|clippy|doc|install|metadata|run|rustc|test)\b")


def locks(name: str) -> list[Path]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", name, f"*/{name}"]
    found = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return [ROOT / each for each in found]


def satisfied(expression: str) -> bool:
    """Whether an SPDX expression offers a choice of allowed licences (AND binds closer than OR; `/` is an old OR)."""
    words = re.findall(r"[()]|[\w.+-]+(?: WITH [\w.-]+)?", expression.replace("/", " OR "))

    def either() -> bool:
        result = both()
        while words and words[0] == "OR":
            words.pop(0)
            result |= both()
        return result

    def both() -> bool:
        result = one()
        while words and words[0] == "AND":
            words.pop(0)
            result &= one()
        return result

    def one() -> bool:
        word = words.pop(0)
        if word != "(":
            return word in ALLOWED
        result = either()
        assert words.pop(0) == ")"
        return result

    result = either()
    assert words == []
    return result


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0", False),
        ("MIT/Apache-2.0", True),
        ("LGPL-2.1-or-later OR MIT", True),
        ("LGPL-2.1-or-later AND MIT", False),
        ("(MIT OR GPL-2.0) AND Unicode-3.0", True),
        ("MIT OR GPL-2.0 AND GPL-3.0", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-2.0 WITH Classpath-exception-2.0", False),
    ],
)
def test_expressions_are_read_as_spdx_has_them(*, expression: str, allowed: bool) -> None:
    assert satisfied(expression) is allowed


def test_no_allowed_licence_is_copyleft() -> None:
    assert [name for name in ALLOWED if COPYLEFT.search(name)] == []


def test_a_wheel_is_made_of_what_git_knows_and_has_the_notice_of_the_compiler_that_links_it() -> None:
    script = (ROOT / "scripts" / "build-wheel").read_text(encoding="utf-8")
    assert "git ls-files -z --cached |" in script
    assert "maturin build --release --zig" in script
    assert "Zig contributors" in (ROOT / "THIRD-PARTY").read_text(encoding="utf-8")


def test_the_debian_package_holds_the_versions_of_the_lock_file() -> None:
    script = (ROOT / "packaging" / "debian" / "build").read_text(encoding="utf-8")
    (pinned,) = re.findall(r'^(sed -n .*) "\$lock"', script, re.MULTILINE)
    command = ["sh", "-c", f"{pinned} requirements.lock"]
    versions = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(versions) > 100
    assert [each for each in versions if not re.fullmatch(r"[\w.-]+==[\w.+!]+( ; .*[^\\ ])?", each)] == []
    assert '--constraint "$work/versions" --report "$work/report" "$wheel[page,tune]"' in script
    assert 'install --require-hashes --only-binary :all: --no-deps --requirement "$work/needed"' in script


def packages(manifest: Path) -> list[dict[str, Any]]:
    """Every crate of a lock file, for whatever target, as Cargo itself knows it."""
    # Not offline: a build fetches the crates of one target only.
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", manifest]
    shown = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return list(json.loads(shown)["packages"])


def test_every_crate_is_under_an_allowed_licence() -> None:
    if shutil.which("cargo") is None:
        pytest.skip("no cargo or maturin to ask for licences with: `make setup` explains")
    found = packages(ROOT / "Cargo.toml")
    assert len(found) > 100
    assert [(each["name"], each["license"]) for each in found if not satisfied(each["license"] or "none")] == []


def test_every_crate_is_of_the_registry_and_has_a_hash() -> None:
    found = [each for lock in locks("Cargo.lock") for each in tomllib.loads(lock.read_text())["package"]]
    others = [each for each in found if not each["name"].startswith("fairtrial")]
    assert len(others) > 100
    assert [each["name"] for each in others if each.get("source") != REGISTRY or not each.get("checksum")] == []


def requirements(lock: Path) -> Iterator[str]:
    """The lines of a lock file, continued ones joined, without comments."""
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if words := line.partition("#")[0].split():
            yield " ".join(words)


def test_every_python_package_has_a_version_and_a_hash_and_no_registry_is_named() -> None:
    found = [
        line
        for lock in [ROOT / "requirements.lock", *(ROOT / "packaging").rglob("*.lock")]
        for line in requirements(lock)
    ]
    assert len(found) > 100
    entry = re.compile(
        r"[\w.-]+(\[[\w,-]+\])?==[^ ;]+( ;[^\"]*(\"[^\"]*\"|'[^']*'|[^-])*)?( --hash=sha256:[0-9a-f]{64})+"
    )
    assert [line for line in found if not entry.fullmatch(line)] == []
    assert [line for line in found if "://" in line] == []


def scripts() -> list[Path]:
    """What is run: makefiles, scripts, workflows, recipes, and the commands that pages show."""
    folders = [".ci", ".github", "scripts", "packaging", "docs"]
    names = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    pages = [ROOT / name for name in ("Makefile", "README.md", "CONTRIBUTING.md", ".pre-commit-config.yaml")]
    return [path for path in (*names, *pages) if path.suffix not in (".png", ".svg", ".pyc", ".ipynb")]


def test_no_command_lets_cargo_change_its_lock_file() -> None:
    found = [
        (str(path.relative_to(ROOT)), line.strip())
        for path in scripts()
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if RESOLVING.search(line) and "--locked" not in line
    ]
    assert found == []


def test_what_workflows_install_has_a_version() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    lines = re.findall(r"\b(?:pipx?|cargo|go) install (.*)", text)
    named = [word for line in lines if ".whl" not in line for word in line.split() if not word.startswith("-")]
    assert len(named) > 3
    assert [name for name in named if not re.fullmatch(r"[\w./-]+(==|@v?)\d[\w.]*", name)] == []


def test_workflows_install_the_uv_that_is_locked() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    (locked,) = re.findall(r"^uv==(\S+)", (ROOT / "packaging" / "uv.lock").read_text(), re.MULTILINE)
    assert {version for text in texts for version in re.findall(r"\buv==(\S+)", text)} == {locked}


def test_the_toolchain_of_workflows_is_pinned_and_new_enough() -> None:
    """No rust-toolchain.toml: a checkout builds with any stable cargo that is new enough, a distribution's too."""
    least = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    pinned = {version for text in texts for version in re.findall(r"(?:rust:|minimal |default )(\d+\.\d+\.\d+)", text)}
    assert len(pinned) == 1
    assert [int(part) for part in min(pinned).split(".")[:2]] >= [int(part) for part in least.split(".")]
    actions = [use for text in texts for use in re.findall(r"uses: (\S+)", text) if not use.startswith("./")]
    assert actions
    assert [use for use in actions if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", use)] == []
