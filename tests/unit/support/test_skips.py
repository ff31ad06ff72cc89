"""Which skipped tests lack a package, and what becomes of them in continuous integration."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import skips

pytest_plugins = ("pytester",)
TESTS = Path(__file__).parents[2]
INSTALL = TESTS.parent / "scripts" / "install-servers"


def reasons() -> Iterator[tuple[str, str]]:
    """Where a test is skipped for want of something, and the reason as it is written."""
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "skip" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.skipif"):
                condition = node.args[0]
                given = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
            elif isinstance(node, ast.If) and "pytest.skip(" in ast.unparse(node.body[0]):
                condition = node.test
                given = [each.args[0] for each in ast.walk(node.body[0]) if isinstance(each, ast.Call) and each.args]
            else:
                continue
            wants = re.search(r"which\(.*is None|\b[A-Z]+ is None", ast.unparse(condition))
            for reason in given:
                if wants and isinstance(reason, ast.Constant):
                    yield f"{path.name}:{reason.lineno}", reason.value


def test_every_program_that_a_test_misses_has_a_package_or_may_be_absent() -> None:
    found = list(reasons())
    assert len(found) > 50
    unknown = [
        f"{where}: {reason}" for where, reason in found if not (skips.package(reason) or skips.is_absent(reason))
    ]
    assert not unknown, "say in tests/support/skips.py what has it"


def test_every_package_that_is_installed_for_tests_is_known() -> None:
    (installed,) = re.findall(r'^packages="(.*)"$', INSTALL.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(installed.split()) <= set(skips.PACKAGES.values())


@pytest.mark.parametrize(
    ("reason", "package"),
    [
        ("needs mariadbd: `make test` installs it when run as root", "mariadb-server"),
        ("Skipped: fio is not installed here", "fio"),
        ("no sshd: install openssh-server", "openssh-server"),
        ("needs PostgreSQL with pgbench", "postgresql-15"),
        ("no kernel to boot: apt offers none", "linux-image-amd64"),
        ("needs bpftrace, as root: `apt install bpftrace`", None),
        ("HammerDB is not on the PATH here", None),
        ("MySQL 5.5.34 cannot be had: sysbench", None),
        ("no https://repository.example/maven: refused", None),
        ("this machine's kernel has multi-generational LRU", None),
        ("only root makes network namespaces", None),
        ("this machine does not give so many: mariadbd", None),
    ],
)
def test_a_reason_is_about_what_stands_before_its_colon(reason: str, package: str | None) -> None:
    assert skips.package(reason) == package


SKIPPED = """
import pytest
from support.skips import require

@pytest.mark.skipif(True, reason="needs fio: on purpose")
def test_mark(): pass

def test_call(): require("mkfs.xfs.of-nobody")

@pytest.mark.skipif(True, reason="needs bpftrace")
def test_absent(): pass

@pytest.mark.skipif(True, reason="needs two processors")
def test_machine(): pass

@pytest.mark.xfail(reason="fio", strict=True)
def test_expected(): raise ValueError
"""


@pytest.mark.parametrize("ci", [True, False])
def test_ci_fails_by_what_a_developers_machine_may_lack(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, *, ci: bool
) -> None:
    monkeypatch.setenv("CI", "true" if ci else "")
    pytester.makepyfile(SKIPPED)
    ran = pytester.runpytest_inprocess("-rs", "-W", "error", plugins=[skips])
    if ci:
        ran.assert_outcomes(errors=1, failed=1, skipped=2, xfailed=1)  # a mark skips while its test is set up
        ran.stdout.fnmatch_lines(["*with CI=true no test is skipped for want of a package: fio"])
        ran.stdout.fnmatch_lines(["*with CI=true no test is skipped for want of a package: xfsprogs"])
    else:
        ran.assert_outcomes(skipped=4, xfailed=1)
        ran.stdout.fnmatch_lines(["*needs fio: on purpose [[]Debian package: fio]*"])


def test_every_test_is_judged(request: pytest.FixtureRequest) -> None:
    assert request.config.pluginmanager.get_plugin("skips") is skips
