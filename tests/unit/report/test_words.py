from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fairtrial import plan, record, study
from fairtrial.catalogue import catalogue
from fairtrial.record import Record
from fairtrial.report import words

KEPT = sorted(path for path in (Path(__file__).parents[2] / "records").iterdir() if path.is_dir())


def test_commands_to_run_again_name_the_study_as_it_ran(record: Record) -> None:
    small = replace(record, plan=record.plan.model_copy(update={"size": "ci"}))
    commands = dict(words.again(small, name="2026-run"))
    assert commands["run again"] == "fairtrial run 2026-run/study.merged.yaml"
    assert commands["check this record"] == "fairtrial verify 2026-run"
    itself = replace(record, plan=record.plan.model_copy(update={"against_itself": True}))
    assert dict(words.again(itself, name="run"))["run again"] == "fairtrial run run/study.merged.yaml --aa"


def test_the_script_to_recompute_a_report_by_another_factor_is_its_own(record: Record) -> None:
    for contrast, report in (("journal", "report"), ("users", "report/by-users")):
        commands = dict(words.again(record, name="run", contrast=contrast))
        assert commands["recompute in R"] == f"Rscript run/{report}/raw_data.r"


@pytest.mark.parametrize("kept", KEPT, ids=[path.name for path in KEPT])
def test_the_study_to_run_again_plans_the_trials_of_its_record(kept: Path) -> None:
    found = record.read(kept)
    command = dict(words.again(found, name=str(kept)))["run again"]
    merged = study.load(Path(command.removeprefix("fairtrial run ")), catalogue=catalogue())
    assert plan.make(merged, catalogue=catalogue()).trials == found.plan.trials
