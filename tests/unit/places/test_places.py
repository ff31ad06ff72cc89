from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from fairtrial.errors import PlaceError, RecordError
from fairtrial.places import PLACES, BootedPlace, is_booted, is_fresh, kind_of, open_place, place_of, ssh
from fairtrial.places.ssh import SshParameters
from fairtrial.study.resolved import Section
from fairtrial.wire import Limits


def test_every_place_is_known_by_its_name() -> None:
    assert set(PLACES) == {"container", "local", "ssh", "through", "vm"}
    assert all(place.name == name and place.summary for name, place in PLACES.items())


@pytest.mark.parametrize("name", PLACES)
def test_a_place_is_made_from_its_example_and_is_booted_or_not(name: str) -> None:
    section = Section({name: dict(PLACES[name].example)})
    place = place_of(section)
    assert type(place) is PLACES[name]
    assert isinstance(place, BootedPlace) == is_booted(section) == (name == "vm")
    assert is_fresh(section) == (name in {"container", "vm"})
    expected_s = {"container": 1.0, "vm": 16.0}.get(name, 0.0)
    assert kind_of(PLACES[name]).duration_s(section.parameters) == expected_s


def test_whether_a_place_boots_is_known_without_its_parameters() -> None:
    assert is_booted(Section({"vm": {}}))
    assert not is_booted(Section({"of another version": {}}))


@pytest.mark.parametrize(("kind", "says"), [("moon", "unknown place `moon`"), ("vm", "parameters of place `vm`")])
def test_a_place_that_this_version_does_not_have_is_refused(kind: str, says: str) -> None:
    with pytest.raises(RecordError, match=says):
        open_place(kind, None, holder="a test")


@pytest.mark.parametrize("given", [None, {}, {"state_directory": "/srv/fairtrial"}])
def test_a_local_place_needs_no_parameters(given: dict[str, str] | None) -> None:
    place_of(Section({"local": given or {}}))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"host": ""},
        {"host": "-oProxyCommand=touch /tmp/owned"},
        {"host": "far", "user": "-x"},
        {"host": "far;touch /tmp/owned"},
        {"host": "$(touch /tmp/owned)"},
        {"host": "far", "user": "`touch /tmp/owned`"},
        {"host": "far", "port": 70000},
        {"host": "far", "state_directory": "relative"},
        {"host": "far", "pasword": "x"},
    ],
)
def test_ssh_parameters_that_make_no_sense_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PLACES["ssh"].model.model_validate(given)


def test_ssh_asks_nothing_and_leaves_trust_to_the_users_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ssh.CONFIG_VARIABLE, "~/other")
    argv = ssh._ssh(SshParameters(host="far", user="ann", port=2222, config="~/other"), Limits())
    assert argv[-2:] == ["--", "far"]
    assert "BatchMode=yes" in argv
    assert not any("StrictHostKeyChecking" in word or "UserKnownHostsFile" in word for word in argv)
    assert argv[argv.index("-p") + 1] == "2222"
    assert argv[argv.index("-l") + 1] == "ann"
    assert not argv[argv.index("-F") + 1].startswith("~")


@pytest.mark.parametrize("kind", ["open", "boot"])
def test_a_study_runs_no_commands_of_an_ssh_configuration_that_only_it_names(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, config = tmp_path / "ran", tmp_path / "config"
    config.write_text(f"Host far\n  ProxyCommand touch {ran}\n")
    monkeypatch.setenv("FAIRTRIAL_AGENT", "/bin/true")
    monkeypatch.setenv(ssh.CONFIG_VARIABLE, str(tmp_path / "another"))
    parameters: dict[str, object] = {"host": "far", "config": str(config)}
    if kind == "boot":
        parameters["boot"] = {"by": "kexec"}
    with pytest.raises(PlaceError, match="the study names the ssh configuration") as refused:
        open_place("ssh", parameters, holder="a test")
    assert f"--ssh-config {config}" in refused.value.hint
    assert not ran.exists()
    ssh.allow_configuration(config)
    assert ssh._ssh(SshParameters.model_validate(parameters), Limits())[:3] == ["ssh", "-F", str(config)]


def test_ssh_gives_a_dead_connection_up_when_the_wire_does() -> None:
    argv = ssh._ssh(SshParameters(host="far"), Limits())
    assert {"ConnectTimeout=20", "ServerAliveInterval=5", "ServerAliveCountMax=3"} <= set(argv)
    short = ssh._ssh(SshParameters(host="far"), Limits(silence_s=2, connect_s=0.5))
    assert {"ConnectTimeout=1", "ServerAliveInterval=1"} <= set(short), "whole seconds, and 0 would mean never"


def test_a_machine_without_ssh_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("FAIRTRIAL_AGENT", "/bin/true")
    with pytest.raises(PlaceError, match="no ssh on this machine"):
        open_place("ssh", {"host": "far"}, holder="a test")


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("ssh: Could not resolve hostname far: Name or service not known", "name"),
        ("ssh: connect to host far port 22: Connection timed out", "up"),
        ("something new", "by hand"),
    ],
)
def test_sshs_words_get_a_hint(said: str, hint: str) -> None:
    assert hint in ssh._hint(said, "far")
