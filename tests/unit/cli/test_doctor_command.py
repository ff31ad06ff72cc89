"""`fairtrial doctor`: what it says of what a killed run has left, and when that makes a place unfit."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairtrial import places
from fairtrial.cli import doctor
from fairtrial.cli.doctor import PlaceFitness, restore_left
from fairtrial.protocol.generated import Leftovers
from fairtrial.study.resolved import Section
from fairtrial.wire.open_place import OpenPlace

LOCAL = Section({"local": {}})


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (Leftovers(undone=0, killed=0, failed=[], overwritten=[]), []),
        (
            Leftovers(undone=1, killed=0, failed=[], overwritten=[]),
            ["restored 1 setting that an earlier run had left changed"],
        ),
        (
            Leftovers(undone=0, killed=0, failed=["swap: busy", "thp"], overwritten=[]),
            [f"left by an earlier run and not restorable: {each}" for each in ("swap: busy", "thp")],
        ),
        (
            Leftovers(undone=1, killed=0, failed=[], overwritten=['/sys/a held "2" instead of "1"']),
            [
                "restored 1 setting that an earlier run had left changed",
                'restored although it had been changed since an earlier run: /sys/a held "2" instead of "1"',
            ],
        ),
    ],
)
def test_only_what_was_restored_is_said_to_be_and_the_rest_makes_a_place_unfit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, left: Leftovers, said: list[str]
) -> None:
    agent: Any = SimpleNamespace(hello=SimpleNamespace(state_directory="/state", leftovers=left))
    monkeypatch.setattr(places, "open_place", lambda *_, **__: contextlib.nullcontext(agent))
    monkeypatch.setattr(OpenPlace, "execute", lambda *_, **__: SimpleNamespace(code=0))
    found = restore_left(LOCAL)
    assert capsys.readouterr().err.splitlines() == said
    assert [finding.value for finding in found] == (["swap: busy; thp"] if left.failed else [])
    assert PlaceFitness(place=LOCAL, findings=found).unfit == bool(left.failed)


@pytest.mark.parametrize("file", ["undo.jsonl", "machine.lock", "run/machine.lock"])
def test_what_a_session_of_another_state_directory_left_is_looked_for_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str
) -> None:
    left = Leftovers(undone=0, killed=0, failed=["run a died"], overwritten=[])
    agent: Any = SimpleNamespace(hello=SimpleNamespace(state_directory=str(tmp_path), leftovers=left))
    monkeypatch.setattr(places, "open_place", lambda *_, **__: contextlib.nullcontext(agent))
    monkeypatch.setattr(doctor, "MACHINE_LOCK", str(tmp_path / "run" / "machine.lock"))

    def execute(_place: OpenPlace, argv: list[str]) -> SimpleNamespace:
        return SimpleNamespace(code=subprocess.run(argv, check=False).returncode)

    monkeypatch.setattr(OpenPlace, "execute", execute)
    assert restore_left(LOCAL) == []
    (tmp_path / "run").mkdir()
    (tmp_path / file).write_text("{}")
    assert [finding.value for finding in restore_left(LOCAL)] == ["run a died"]
