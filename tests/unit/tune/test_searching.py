"""A tuning without a place, killed at every trial and every line of its journal: it ends as if it had not been."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.progress import Told
from support.trials import Quick

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.errors import PlaceError
from fairtrial.record.files import MERGED, write_synced
from fairtrial.record.models import PlannedTrial, TrialRecord
from fairtrial.run import loop
from fairtrial.tune import searching, verifying
from fairtrial.tune.events import TuneEvent
from fairtrial.tune.journal import NAME, TuneJournal, read
from fairtrial.tune.result import TuneResult, result
from fairtrial.tune.result import read as read_record
from fairtrial.tune.running import Runner
from fairtrial.tune.searching import Search, started

STUDY = """
study: known
workload: {command: {run: 'prog {x}', metrics: {score: {regex: '(1)', better: higher}, lag: {regex: '(1)'}}}}
tune:
  options: {x: {from: 1, to: 100, default: 50}}
  budget: 14
  again: {best: 2, blocks: 2}
  confirm: {blocks: 6}
metrics: {primary: score, guardrails: [lag]}
"""


@pytest.fixture(autouse=True)
def _place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIRECTORY", str(tmp_path / "state"))


class Killed(Exception):  # noqa: N818 - what SIGKILL does to a process, as far as a test can see it
    pass


class Measured(Quick):
    """Trials of a known surface: the lag is too large above 80, and above 90 they are invalid; dies after so many."""

    def __init__(self, *, dies_at: int = -1) -> None:
        super().__init__()
        self.dies_at = dies_at

    def run(self, trial: PlannedTrial, *, has_started: bool) -> TrialRecord:
        if len(self.ran) == self.dies_at:
            raise Killed
        resolved = self.writer.plan.resolved[trial.cell][trial.arm]
        x = int(resolved.workload.root["command"]["run"].split()[1])  # type: ignore[index, call-overload, union-attr]
        self.invalid = (trial.id,) if x > 90 else ()
        noise = 0.01 * math.sin(trial.seed % 1000 + x)
        self.scalars = {"score": math.exp(-(((x - 20) / 40) ** 2) + noise), "lag": 2.0 if x > 80 else 1.0}
        return super().run(trial, has_started=has_started)

    def finished(self, found: TrialRecord) -> TrialRecord:
        return found.model_copy(update={"scalars": self.scalars, "levels": {"options": found.trial.arm}})


def begun(directory: Path) -> None:
    directory.mkdir()
    file = directory / "study.yaml"
    file.write_text(STUDY, encoding="utf-8")
    loaded = study.load(file, catalogue=catalogue())
    write_synced(directory / MERGED, study.dump(loaded).encode())
    journal = TuneJournal(directory, new=True)
    journal.append(started(loaded, seed=3, budget=14))
    journal.close()


def gone_on(
    directory: Path, quick: Quick, monkeypatch: pytest.MonkeyPatch, *, say: Callable[[str], None] = lambda _: None
) -> list[TuneEvent]:
    monkeypatch.setattr(loop, "TrialRunner", quick)
    journal = TuneJournal(directory)
    loaded = study.load(directory / MERGED, catalogue=catalogue())
    runner = Runner(directory=directory, study=loaded, seed=3, progress=Told())
    try:
        Search(runner=runner, journal=journal, say=say).execute()
    finally:
        journal.close()
    return journal.events


def undoubted(found: TuneResult) -> TuneResult:
    """Without the number of doubts: how fit this machine is to measure on changes from second to second."""
    assert found.confirmed is not None
    return found.model_copy(update={"confirmed": found.confirmed.model_copy(update={"doubts": 0})})


def test_however_often_it_is_killed_nothing_is_lost_or_asked_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path / "whole")
    whole = Measured()
    expected = gone_on(tmp_path / "whole", whole, monkeypatch)
    found = result(read_record(tmp_path / "whole"))
    assert {each.state for each in found.proposals} >= {"measured", "infeasible"}
    assert found.confirmed is not None
    assert found.confirmed.verdict == "faster"

    begun(tmp_path / "killed")
    ran: list[str] = []
    while read(tmp_path / "killed") != expected:
        quick = Measured(dies_at=3)
        try:
            gone_on(tmp_path / "killed", quick, monkeypatch)
        except Killed:
            assert len(quick.ran) == 3
        ran += quick.ran
    assert ran == whole.ran
    assert undoubted(result(read_record(tmp_path / "killed"))) == undoubted(found)

    lines = (tmp_path / "whole" / NAME).read_bytes().splitlines(keepends=True)
    for cut in range(1, len(lines)):
        (tmp_path / "whole" / NAME).write_bytes(b"".join(lines[:cut]) + lines[cut][:20])
        after = Measured(dies_at=0)
        assert gone_on(tmp_path / "whole", after, monkeypatch) == expected


def test_a_search_that_goes_on_with_another_optuna_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(tmp_path / "killed")
    said: list[str] = []
    with pytest.raises(Killed):
        gone_on(tmp_path / "killed", Measured(dies_at=0), monkeypatch, say=said.append)
    assert said == []
    monkeypatch.setattr(searching, "require", lambda: "99.0")
    with pytest.raises(Killed):
        gone_on(tmp_path / "killed", Measured(dies_at=0), monkeypatch, say=said.append)
    assert [each.partition(":")[0].rpartition(" ")[2] for each in said] == ["99.0"]


def test_values_that_did_not_run_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "_of_record", lambda *_: ())  # these trials have no raw files
    begun(tmp_path / "whole")
    gone_on(tmp_path / "whole", Measured(), monkeypatch)
    found = read_record(tmp_path / "whole")
    assert verifying.recompute(found) == []
    number = result(found).confirmed.number
    journal = tmp_path / "whole" / NAME
    ran = f'"number":{number},"values":{{"x":{found.course.proposed[number].values["x"]}}}'
    text = journal.read_text(encoding="utf-8")
    assert text.count(ran) == 1
    journal.write_text(text.replace(ran, f'"number":{number},"values":{{"x":77}}'), encoding="utf-8")
    runs = f"search/{number:03}", "again", "confirmation"
    assert verifying.recompute(read_record(tmp_path / "whole")) == [
        f"tune.jsonl: p{number:03}: {{'x': 77}}, but {run} has other values" for run in runs
    ]


def test_what_fails_from_the_first_proposal_on_is_not_the_proposals_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path / "broken")
    quick = Measured()
    monkeypatch.setattr(quick, "run", lambda trial, **_: Quick.run(quick, trial, has_started=False))
    quick.invalid = tuple(f"all.b{block:02}.p{number:03}" for block in (1, 2) for number in range(1, 9))
    quick.scalars = {"score": 1.0, "lag": 1.0}
    with pytest.raises(PlaceError, match="has lost 2 blocks"):
        gone_on(tmp_path / "broken", quick, monkeypatch)
    assert len([event for event in read(tmp_path / "broken") if event.event == "told"]) == 2


class DefaultBroken(Measured):
    """As above, but the default's trials beside the second proposal are invalid."""

    def run(self, trial: PlannedTrial, *, has_started: bool) -> TrialRecord:
        if trial.arm != "default" or self.writer.directory.name != "002":
            return super().run(trial, has_started=has_started)
        self.invalid, self.scalars = (trial.id,), {"score": 1.0, "lag": 1.0}
        return Quick.run(self, trial, has_started=has_started)


def test_what_the_defaults_trials_lost_is_not_the_proposals_fault_and_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(tmp_path / "lost")
    with pytest.raises(PlaceError, match="has lost 2 blocks"):
        gone_on(tmp_path / "lost", DefaultBroken(), monkeypatch)
    assert [event.number for event in read(tmp_path / "lost") if event.event == "told"] == [1]
    finished = gone_on(tmp_path / "lost", Measured(), monkeypatch)
    assert finished[-1].event == "tuning_finished"
    assert [each.name for each in (tmp_path / "lost" / "search").glob("*-lost-*")] == ["002-lost-1"]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    begun(tmp_path / "held")
    first = TuneJournal(tmp_path / "held")
    with pytest.raises(PlaceError, match="another process is running"):
        TuneJournal(tmp_path / "held")
    first.close()
    shutil.rmtree(tmp_path / "held")
