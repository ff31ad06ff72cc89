from __future__ import annotations

from dataclasses import replace

from fairtrial.record import Record
from fairtrial.report import words


def test_commands_to_run_again_name_the_record_and_its_size(record: Record) -> None:
    small = replace(record, plan=record.plan.model_copy(update={"size": "ci"}))
    commands = dict(words.again(small, name="2026-run"))
    assert commands["run again"] == "fairtrial run 2026-run/study.yaml --size ci"
    assert commands["check this record"] == "fairtrial verify 2026-run"
