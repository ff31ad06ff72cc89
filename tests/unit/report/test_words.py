from __future__ import annotations

from dataclasses import replace

from fairtrial.analyse.models import Analysis
from fairtrial.record import Record
from fairtrial.report import words


def test_a_percentile_on_few_observations_is_doubted(record: Record, analysis: Analysis) -> None:
    (doubt,) = words.tail_doubts(record, analysis)
    least = min(trial.scalars["latency_count"] for trial in record.trials if trial.valid)
    assert doubt.metric == "latency_ns_p99"
    assert f"{least / 100:.0f} observations" in doubt.message


def test_a_percentile_on_many_observations_is_not(record: Record, analysis: Analysis) -> None:
    many = replace(record)
    many.__dict__["trials"] = tuple(
        trial.model_copy(update={"scalars": trial.scalars | {"latency_count": 1e6}}) for trial in record.trials
    )
    assert words.tail_doubts(many, analysis) == ()


def test_commands_to_run_again_name_the_record_and_its_size(record: Record) -> None:
    small = replace(record, plan=record.plan.model_copy(update={"size": "ci"}))
    commands = dict(words.again(small))
    assert commands["run again"] == f"fairtrial run {record.directory.name}/study.yaml --size ci"
    assert commands["check this record"] == f"fairtrial verify {record.directory.name}"
