"""live.json tells whoever looks where a run is, and costs nothing while a load is measured."""

from __future__ import annotations

import json
from pathlib import Path

from support.records import planned, trial_record

from fairtrial.protocol.generated import RateProgress
from fairtrial.protocol.progress import ProgressLine
from fairtrial.record.models import PlannedTrial, TrialRecord
from fairtrial.run import LiveFile


class Heard:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def trial_started(self, trial: PlannedTrial, *, number: int, total: int, left_s: float) -> None:
        self.said.append(f"started {trial.id} {number}/{total} {left_s:g}")

    def phase(self, name: str) -> None:
        self.said.append(f"phase {name}")

    def load(self, line: ProgressLine) -> None:
        self.said.append(f"load {line}")

    def trial_finished(self, trial: TrialRecord) -> None:
        self.said.append(f"finished {trial.trial.id}")

    def note(self, text: str) -> None:
        self.said.append(f"note {text}")


def test_it_holds_the_trial_its_phase_and_the_last_result(tmp_path: Path) -> None:
    path, heard = tmp_path / "live.json", Heard()
    live = LiveFile(path, heard)
    live.trial_started(planned(1, "a"), number=1, total=4, left_s=12.4)
    live.phase("drive")
    live.trial_finished(trial_record(planned(1, "a"), valid=False))
    live.note("a block is void")
    assert json.loads(path.read_text()) == {
        "trial": "all.b01.a",
        "round": 1,
        "number": 1,
        "total": 4,
        "left_s": 12,
        "phase": "drive",
        "last": {"trial": "all.b01.a", "valid": False, "reason": "broken on purpose"},
    }
    assert heard.said == ["started all.b01.a 1/4 12.4", "phase drive", "finished all.b01.a", "note a block is void"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["live.json"]


def test_nothing_is_written_for_rates_inside_the_measured_window(tmp_path: Path) -> None:
    path, heard = tmp_path / "live.json", Heard()
    live = LiveFile(path, heard)
    live.phase("drive")
    path.unlink()
    live.load(RateProgress(per_s=5, errors=0))
    assert not path.exists()
    assert "per_s=5" in heard.said[-1]


def test_a_disk_that_takes_nothing_does_not_end_the_run_here(tmp_path: Path) -> None:
    heard = Heard()
    LiveFile(tmp_path / "gone" / "live.json", heard).phase("drive")
    assert heard.said == ["phase drive"]
