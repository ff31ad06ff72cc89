from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import shell_program

from fairtrial.errors import PlaceError
from fairtrial.wire import find, find_agent


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No agent anywhere; returns the folder of this Python."""
    monkeypatch.delenv("FAIRTRIAL_AGENT", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(find.sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr(find.sysconfig, "get_path", lambda _name: str(tmp_path / "scripts"))
    monkeypatch.setattr(find, "__file__", str(tmp_path / "checkout/src/fairtrial/wire/find.py"))
    return tmp_path


@pytest.mark.parametrize("folder", ["bin", "scripts", "path", "checkout/target/release"])
def test_it_is_found_wherever_it_may_be(nowhere: Path, folder: str) -> None:
    expected = shell_program(nowhere / folder / "fairtrial-agent", "")
    assert find_agent() == expected


def test_the_nearest_wins_and_the_variable_before_all(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("path", "checkout/target/release", "scripts", "bin"):
        expected = shell_program(nowhere / folder / "fairtrial-agent", "")
    assert find_agent() == expected
    own = shell_program(nowhere / "own", "")
    monkeypatch.setenv("FAIRTRIAL_AGENT", str(own))
    assert find_agent() == own


def test_its_absence_names_every_place_tried(nowhere: Path) -> None:
    (nowhere / "bin").mkdir()
    (nowhere / "bin" / "fairtrial-agent").write_text("not executable")
    with pytest.raises(PlaceError) as missing:
        find_agent()
    for place in ("bin", "scripts", "$PATH", "checkout/target/release"):
        assert f"{place}/fairtrial-agent" in str(missing.value)


def test_a_variable_that_leads_nowhere_is_not_passed_over(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell_program(nowhere / "bin" / "fairtrial-agent", "")
    monkeypatch.setenv("FAIRTRIAL_AGENT", "/no/such/file")
    with pytest.raises(PlaceError, match="FAIRTRIAL_AGENT names /no/such/file"):
        find_agent()
