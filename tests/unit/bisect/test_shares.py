"""A bisection of a share, without a place: its ends are told apart by what is left of the total, and so it is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import ALIKE
from support.progress import Told
from support.trials import Quick

from fairtrial import verify
from fairtrial.bisect import journal, reading, verifying
from fairtrial.bisect.loop import Bisecting, begin
from fairtrial.bisect.models import Measured
from fairtrial.bisect.versions import Request, asked
from fairtrial.record import Writer
from fairtrial.record.models import TrialRecord
from fairtrial.run import Run, loop
from fairtrial.study.resolved import Section

METRIC = "cpu_idle_share"


class Shares(Quick):
    """Trials of which the last version misses ten times as much: 0.9 % fewer hits, within the margin."""

    def finished(self, found: TrialRecord) -> TrialRecord:
        hits = (0.99 if found.trial.arm == "v2" else 0.999) + 1e-6 * (found.trial.seed % 7)
        return found.model_copy(update={"scalars": {METRIC: hits}, "levels": {"version": found.trial.arm}})


@pytest.fixture
def bisected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a bisection that has ended."""
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))
    (tmp_path / "study.yaml").write_text(ALIKE.replace("primary: took", f"primary: {METRIC}"), encoding="utf-8")
    monkeypatch.setattr(loop, "TrialRunner", Shares())
    begin(tmp_path / "b", *asked(Request(tmp_path / "study.yaml", over="version", first="v0", last="v2")))

    examined: set[Section] = set()

    def conduct(writer: Writer) -> None:
        Run(writer=writer, progress=Told(), examined=examined).execute()

    question = reading.question(tmp_path / "b")
    Bisecting(tmp_path / "b", question, conduct, conclude=lambda _: None, note=lambda _: None).execute()
    return tmp_path / "b"


def test_misses_that_grow_tenfold_are_a_change_and_what_said_so_is_in_the_journal(
    bisected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = reading.result(reading.question(bisected), journal.events(bisected))
    assert (found.outcome, [change.at for change in found.changes]) == ("one_change", [2])
    assert [each.agrees for each in found.confirmations] == [True]

    monkeypatch.setattr(verify, "recompute", lambda _: [])  # these trials have no raw files
    assert verifying.recompute(bisected) == []
    first = next(event for event in journal.events(bisected) if isinstance(event, Measured))
    assert first.shares[0] == pytest.approx((0.999, 0.99), abs=1e-5)
    path = bisected / "journal.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('"shares":[[0.99', '"shares":[[0.98', 1), encoding="utf-8")
    assert "query 1: shares: [0][0] is 0.98" in verifying.recompute(bisected)[0]
