"""A place as a word of the command line, and every way to write one that is none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairtrial.cli import places
from fairtrial.cli.app import app
from fairtrial.errors import InputError
from fairtrial.places import ssh
from fairtrial.studies import ready


def given(place: dict[str, Any]) -> dict[str, Any]:
    """Without what was left out."""
    ((kind, parameters),) = place.items()
    return {kind: {name: value for name, value in parameters.items() if value is not None}}


@pytest.mark.parametrize(
    ("word", "place"),
    [
        ("local", {"local": {}}),
        ("{local: }", {"local": {}}),
        ("{local: {state_directory: /data}}", {"local": {"state_directory": "/data"}}),
        ('{"ssh": {"host": "bench-1", "port": 2222}}', {"ssh": {"host": "bench-1", "port": 2222}}),
        ("ssh://bench-1", {"ssh": {"host": "bench-1"}}),
        ("ssh://me@bench-1:2222/", {"ssh": {"host": "bench-1", "user": "me", "port": 2222}}),
        ("ssh://me@[fe80::1]", {"ssh": {"host": "fe80::1", "user": "me"}}),
    ],
)
def test_a_place_is_a_kind_an_address_or_a_mapping(word: str, place: dict[str, Any]) -> None:
    assert given(places.place(word).root) == place


def test_parameters_are_validated_into_base_units() -> None:
    assert places.place("{vm: {kernel: debian-6.1, memory: 512MiB}}").root["vm"]["memory"] == 512 << 20


@pytest.mark.parametrize(
    ("word", "message", "suggestion"),
    [
        ("locl", "unknown kind of place `locl`; expected one of `container`, `local`", "did you mean `local`?"),
        ("{local: {}, ssh: {}}", "exactly one kind of place", ""),
        ("[local]", "exactly one kind of place", ""),
        ("{local: 3}", "expected a mapping of parameters", ""),
        ("{vm: {}}", "Field required", ""),
        ("{local: {state_directory: data}}", "match pattern", ""),
        ("{ssh: {host: -oProxyCommand=x}}", "match pattern", ""),
        ("{local", "neither YAML nor JSON", ""),
        ("ssh://", "is not the address of a host", ""),
        ("ssh://host/path", "is not the address of a host", ""),
        ("ssh://user:word@host", "is not the address of a host", ""),
        ("ssh://host:port", "is not an address", ""),
    ],
)
def test_a_word_that_is_no_place_is_refused_with_the_ways_to_write_one(
    word: str, message: str, suggestion: str
) -> None:
    with pytest.raises(InputError) as refused:
        places.place(word)
    assert message in str(refused.value)
    assert suggestion in str(refused.value)
    assert refused.value.problems[0].file == "PLACE"
    assert "ssh://user@host" in refused.value.hint


def test_an_ssh_configuration_is_used_that_the_command_line_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ssh.CONFIG_VARIABLE, "")
    one, other = tmp_path / "one", tmp_path / "other"
    one.touch()
    assert CliRunner().invoke(app, ["--ssh-config", str(one)]).exit_code == 0
    places.place(f"{{ssh: {{host: far, config: {other}}}}}")
    assert os.environ[ssh.CONFIG_VARIABLE] == f"{one}:{other}"


def test_a_field_that_is_wrong_is_named() -> None:
    with pytest.raises(InputError) as refused:
        places.place("{vm: {kernel: debian-6.1, cpus: 0}}")
    assert refused.value.problems[0].field == "vm.cpus"


STUDY = """\
study: two-places
workload: {command: {run: "true"}}
factors:
  where:
    here: {}
    there: {place: {ssh: {host: bench-1}}}
  length:
    short: {}
    long: {workload: {command: {run: sleep 0.2}}}
arm: where
trials: {blocks: 2}
metrics: {primary: elapsed_s}
"""


def test_a_study_names_every_place_once(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(STUDY, encoding="utf-8")
    assert places.is_study(str(file))
    found = places.of_plan(ready.planned(file))
    assert [given(place.root) for place in found] == [{"local": {}}, {"ssh": {"host": "bench-1"}}]
