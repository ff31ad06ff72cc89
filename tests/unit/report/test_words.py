from __future__ import annotations

from dataclasses import replace

from fairtrial.record import Record
from fairtrial.report import words


def test_commands_to_run_again_name_the_record_and_its_size(record: Record) -> None:
    small = replace(record, plan=record.plan.model_copy(update={"size": "ci"}))
    commands = dict(words.again(small))
    assert commands["run again"] == f"fairtrial run {record.directory.name}/study.yaml --size ci"
    assert commands["check this record"] == f"fairtrial verify {record.directory.name}"
