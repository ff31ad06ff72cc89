"""What `fairtrial run` says where a run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial.cli.running.farming import ALONE, Farm
from fairtrial.cli.running.run import continued_by, run
from fairtrial.errors import InputError
from fairtrial.places import ssh


def test_a_run_goes_on_with_the_configurations_and_the_farm_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ssh.CONFIG_VARIABLE, "/etc/of/the/environment")
    monkeypatch.setattr(ssh, "ALLOWED_HERE", named := [])
    monkeypatch.setattr("fairtrial.cli.running.run.ALLOWED_HERE", named)
    assert continued_by(Path("runs/a b"), ALONE) == "fairtrial run 'runs/a b' --resume"
    ssh.allow_configuration("/etc/lab one")
    ssh.allow_configuration("/etc/two")
    assert continued_by(Path("runs/a"), Farm(places=Path("hosts.yaml"))) == (
        "fairtrial --ssh-config '/etc/lab one' --ssh-config /etc/two run runs/a --resume --places hosts.yaml"
    )


def test_the_directory_of_a_run_is_told_from_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairtrial.cli.running.run.heed", lambda: None)  # whose handlers would outlive the test
    (tmp_path / "plan.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="it is the directory of a run, not a study") as raised:
        run(tmp_path, size=None, overrides=[], output=tmp_path / "runs", resume=False)
    assert raised.value.hint == f"`fairtrial run {tmp_path} --resume` continues the run"
    assert not (tmp_path / "runs").exists()
