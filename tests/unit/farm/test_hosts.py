"""The file of hosts: read, or refused by line and name."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial.errors import InputError
from fairtrial.farm import hosts
from fairtrial.study.resolved import Section


def test_hosts_are_places_by_name(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text("hosts:\n  alpha: {ssh: {host: alpha.example.org}}\n  beta: {local: {}}\n", encoding="utf-8")
    found = hosts.read(file)
    assert found["alpha"] == Section({"ssh": {"host": "alpha.example.org"}})
    assert list(found) == ["alpha", "beta"]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("hosts: {}\n", 1, "at least 1"),
        ("", 0, "is empty"),
        ("hosts:\n  a: {ssh: {hots: x}}\n", 2, "hots"),
        ("hosts:\n  a: {local: {}}\n  b: {shh: {host: x}}\n", 3, "found shh"),
        ("hosts:\n  a: {vm: {kernel: debian-6.1}}\n", 2, "is no host"),
        ("hosts:\n  a/b: {local: {}}\n", 2, "expected text that matches"),
        ("hosts:\n  a: {ssh: {host: x}}\n  b: {ssh: {host: y}}\n  c: {ssh: {host: x}}\n", 4, "a and c are one place"),
        ("host: {a: {local: {}}}\n", 1, "hosts"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, *, line: int, message: str) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        hosts.read(file)
    assert message in str(raised.value)
    assert any(problem.line == line for problem in raised.value.problems)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"hosts\.yaml: cannot be read"):
        hosts.read(tmp_path / "hosts.yaml")


def test_parameters_of_a_place_are_checked_like_those_of_a_study(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text("hosts:\n  a: {ssh: {hots: x}}\n  b:\n    ssh: {host: y, port: many}\n", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        hosts.read(file)
    assert raised.value.hint == hosts.HINT
    assert [(each.line, each.column, each.field) for each in raised.value.problems] == [
        (2, 12, "hosts.a.ssh.host"),
        (2, 13, "hosts.a.ssh.hots"),
        (4, 26, "hosts.b.ssh.port"),
    ]
    assert [each.message.partition(";")[0] for each in raised.value.problems] == [
        "required but missing",
        "unknown key",
        "expected a whole number, found 'many'",
    ]
    assert raised.value.problems[1].suggestion == "did you mean `host`?"


@pytest.mark.parametrize("text", ["- a\n", "hosts:\n  a: {local: 5}\n", "hosts:\n  a:\n", "hosts: [a]\n"])
def test_what_is_no_mapping_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="expected a mapping"):
        hosts.read(file)
