"""Scripts of the repository, with programs of the test's own in place of those that they call."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.command_line import shell_program

ROOT = Path(__file__).parents[3]


def run(directory: Path, *argv: str, programs: dict[str, str], **environment: str) -> subprocess.CompletedProcess[str]:
    """A script that finds these programs first."""
    for name, body in programs.items():
        shell_program(directory / "bin" / name, body)
    given = {"PATH": f"{directory / 'bin'}:{os.defpath}", "CARGO_TARGET_DIR": str(directory / "target"), **environment}
    command = [ROOT / "scripts" / argv[0], *argv[1:]]
    return subprocess.run(command, env=given, capture_output=True, text=True, check=False, timeout=60)


def test_an_audit_fetches_first_and_asks_about_every_version_of_every_lock_file(tmp_path: Path) -> None:
    log, audited = tmp_path / "log", tmp_path / "audited"
    programs = {
        "cargo-deny": "",
        "cargo": f'echo "$*" >> {log}',
        "pip-audit": f'[ "$1" = --requirement ] && cat "$2" >> {audited}',
    }
    done = run(tmp_path, "audit", "--online", programs=programs)
    assert (done.returncode, done.stderr) == (0, "")
    fetched, *asked = log.read_text().splitlines()
    assert fetched == "fetch --quiet --locked"
    assert asked == [
        "deny --offline --locked check licenses bans sources",
        "deny --locked check advisories",
        "deny --manifest-path fuzz/Cargo.toml --locked check advisories bans sources",
    ]
    locks = [ROOT / "requirements.lock", *(ROOT / "packaging").glob("*.lock")]
    locked = re.findall(r"^[\w.-]+==[\w.]+", "".join(lock.read_text() for lock in locks), re.MULTILINE)
    lines = audited.read_text().splitlines()
    assert sorted(line.removesuffix(" \\") for line in lines if "==" in line) == sorted(locked)
    assert len([each for each in locked if each.startswith("numpy==")]) > 1
    lists = [path.read_text() for path in (tmp_path / "target" / "audit").iterdir()]
    assert [text for text in lists if "--hash=sha256:" not in text] == []


def test_the_wheel_for_x86_64_is_not_built_without_its_lock_library(tmp_path: Path) -> None:
    called = dict.fromkeys(("cargo", "rustc", "rustup", "maturin"), f"touch {tmp_path / 'called'}; exit 1")
    programs = {**called, "uname": "[ $1 = -m ] && echo aarch64 || echo Linux aarch64"}
    done = run(tmp_path, "build-wheel", "x86_64", str(tmp_path / "dist"), programs=programs)
    assert done.returncode == 3
    assert "compiled on x86-64 alone, and this is aarch64" in done.stderr
    assert not (tmp_path / "called").exists()


def test_links_of_the_readme_lead_somewhere_from_a_package_index_too(tmp_path: Path) -> None:
    script = (ROOT / "scripts" / "build-wheel").read_text(encoding="utf-8")
    (rewriting,) = re.findall(r"^version=.*?README\.md$", script, re.MULTILINE | re.DOTALL)
    for name in ("README.md", "Cargo.toml"):
        shutil.copy(ROOT / name, tmp_path)
    subprocess.run(["sh", "-euc", rewriting], cwd=tmp_path, check=True)
    links = re.findall(r"\]\(([^)\s]+)\)", (tmp_path / "README.md").read_text(encoding="utf-8"))
    place = r"https://github\.com/fairtrial/fairtrial/(blob|raw)/v\d+\.\d+\.\d+/(.+)"
    led = [re.fullmatch(place, link) for link in links]
    assert all(led), links
    assert len(links) > 20
    assert [each[0] for each in led if each and not (ROOT / each[2].partition("#")[0]).exists()] == []
    assert {each[2] for each in led if each and each[1] == "raw"} == {"docs/pictures/report.png"}


@pytest.mark.parametrize(("environment", "code"), [({"CI": "true"}, 3), ({}, 0)])
def test_fuzzers_without_a_compiler_are_skipped_and_in_ci_an_error(
    tmp_path: Path, environment: dict[str, str], code: int
) -> None:
    done = run(tmp_path, "fuzz", programs={}, CXX="no-such-compiler", **environment)
    assert done.returncode == code
    assert "they need a C++ compiler" in done.stderr
