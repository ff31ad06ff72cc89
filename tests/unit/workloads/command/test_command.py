"""Metrics of a command: by regular expression, JSON path and metrics file, from the record's own files."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fairtrial.errors import PlaceError
from fairtrial.record.models import Window
from fairtrial.workloads.command import Command
from fairtrial.workloads.command.parameters import CommandMetric, CommandParameters

WINDOW = Window(start_ns=0, end_ns=1)
USAGE = {
    "elapsed_s": 1.5,
    "user_s": 1.0,
    "system_s": 0.25,
    "max_resident_bytes": 1 << 20,
    "minor_faults": 3,
    "major_faults": 0,
    "voluntary_switches": 2,
    "involuntary_switches": 1,
}


def scalars(directory: Path, output: str, metrics: dict[str, Any], *, file: object = None) -> dict[str, float]:
    (directory / "log").mkdir()
    (directory / "log" / "load.log").write_text(output)
    (directory / "usage.json").write_text(json.dumps(USAGE))
    if file is not None:
        (directory / "metrics.json").write_text(json.dumps(file))
    parameters = CommandParameters.model_validate({"run": "true", "metrics": metrics})
    return Command(parameters).scalars(directory, WINDOW)


def test_the_kernels_accounting_is_always_there(tmp_path: Path) -> None:
    assert scalars(tmp_path, "", {}) == USAGE


def test_the_last_match_of_an_expression_counts(tmp_path: Path) -> None:
    found = scalars(tmp_path, "rate: 1.5\nrate: 2.5e3\n", {"rate": {"regex": r"^rate: (\S+)$"}})
    assert found["rate"] == 2500.0


def test_a_json_path_goes_through_lists_and_text_around_the_document(tmp_path: Path) -> None:
    output = 'warming up {not json}\n{"jobs": [{"read": {"iops": 7.5}}]}\nbye\n'
    assert scalars(tmp_path, output, {"iops": {"json_path": "jobs[0].read.iops"}})["iops"] == 7.5


def test_a_path_that_begins_in_a_list_goes_into_the_last_document_that_is_one(tmp_path: Path) -> None:
    output = '[INFO] begun\n[{"score": 1}]\n[{"score": 2}, {"score": 3}]\n{"list": [{"score": 4}]}\n'
    assert scalars(tmp_path, output, {"score": {"json_path": "[0].score"}})["score"] == 2.0


def test_lists_are_no_documents_for_a_path_into_an_object(tmp_path: Path) -> None:
    output = '{"score": 1}\n[2]\n[{"score": 3}]\n'
    assert scalars(tmp_path, output, {"score": {"json_path": "score"}})["score"] == 3.0


def test_a_metrics_file_is_read_by_key(tmp_path: Path) -> None:
    assert scalars(tmp_path, "", {"score": {"file_key": "a.score"}}, file={"a": {"score": 3}})["score"] == 3.0


@pytest.mark.parametrize(
    ("metric", "output"),
    [
        ({"regex": "x=(.*)"}, "nothing"),
        ({"regex": "x=(.*)"}, "x=fast"),
        ({"json_path": "a.b"}, '{"a": 1}'),
        ({"json_path": "a"}, "no json"),
        ({"json_path": "[0]"}, '{"a": [1]}'),
        ({"json_path": "a"}, '{"a": 1' + "0" * 400 + "}"),
        ({"file_key": "a"}, ""),
    ],
)
def test_a_missing_metric_is_an_error_that_shows_the_output(
    tmp_path: Path, metric: dict[str, str], output: str
) -> None:
    with pytest.raises(PlaceError, match="cannot read metric m") as caught:
        scalars(tmp_path, output, {"m": metric})
    assert output[-20:] in str(caught.value)


@pytest.mark.parametrize(
    "metric",
    [
        {},
        {"regex": "(a)", "file_key": "b"},
        {"regex": "(a"},
        {"regex": "no group"},
        {"regex": "(two)(groups)"},
        {"json_path": "a b"},
    ],
)
def test_bad_metrics_are_refused_before_anything_runs(metric: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        CommandMetric.model_validate(metric)


def test_declared_metrics_join_the_definitions() -> None:
    parameters = CommandParameters.model_validate(
        {"run": "x", "metrics": {"iops": {"regex": "(.)", "better": "higher", "unit": "1/s"}}}
    )
    definitions = Command(parameters).metrics()
    assert definitions["iops"].better == "higher"
    assert set(USAGE) < set(definitions)
