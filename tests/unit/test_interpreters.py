"""No command takes a module from the current directory, where somebody may have put one with a name of Python's own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import PATIENCE_S

from fairtrial.errors import PlaceError
from fairtrial.farm import cluster
from fairtrial.serve import steering
from fairtrial.serve.steering import Control

FARM = """
import os, sys
from fairtrial.farm import children

def tell(connection):
    connection.send(("PYTHONSAFEPATH" in os.environ, sys.flags.safe_path))

if __name__ == "__main__":
    process, connection = children.child(tell, name="one")
    print(*connection.recv(), "PYTHONSAFEPATH" in os.environ)
    process.join()
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with modules that tell whether they were imported."""
    found = tmp_path / "here"
    found.mkdir()
    for name in ("fairtrial", "multiprocessing", "ray", "signal"):
        (found / f"{name}.py").write_text(
            "from pathlib import Path\nPath(__file__ + '.ran').touch()\nraise SystemExit\n"
        )
    monkeypatch.chdir(found)
    return found


def test_a_run_that_a_page_starts_takes_none(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steering, "STARTED_S", PATIENCE_S)
    study = tmp_path / "wrong.yaml"
    study.write_text("study: wrong\n", encoding="utf-8")
    with pytest.raises(PlaceError, match=r"the run did not start: (.|\n)*wrong\.yaml"):
        asyncio.run(Control().start(study, runs=tmp_path / "runs", digest=""))
    assert list(here.glob("*.ran")) == []


def test_processes_of_a_farm_take_none_and_their_trials_may(here: Path, tmp_path: Path) -> None:
    script = tmp_path / "farm.py"
    script.write_text(FARM, encoding="utf-8")
    told = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert told.stdout.split() == ["False", "True", "False"], told.stderr
    assert list(here.glob("*.ran")) == []


def test_who_asks_a_cluster_without_a_token_takes_none(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.touch(mode=0o600)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    monkeypatch.setattr(cluster, "PROBE_S", PATIENCE_S)
    monkeypatch.setattr(cluster, "UNASKED", "import signal; raise SystemExit(1)")
    cluster.require_token("127.0.0.1:1")
    assert list(here.glob("*.ran")) == []
