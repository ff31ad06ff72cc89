"""Figures of several runs of one trial, put together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError
from fairtrial.protocol import generated as wire
from fairtrial.protocol.endpoints import Endpoint, FilesEndpoint
from fairtrial.protocol.generated import MysqlEndpoint, PostgresEndpoint
from fairtrial.study import load
from fairtrial.wire.fake import USAGE
from fairtrial.workloads.command.parameters import CommandParameters
from fairtrial.workloads.command.runs import LARGEST, CommandRun, accounting, reaching


def ran(elapsed_ns: int, **changes: Any) -> CommandRun:
    usage = wire.Usage.model_validate(USAGE.model_dump() | changes)
    return CommandRun(start_ns=1000, end_ns=1000 + elapsed_ns, usage=usage, failure="")


def test_one_runs_figures_are_its_own() -> None:
    found = json.loads(accounting([ran(1_500_000_000, minor_faults=7)]))
    assert found == {**USAGE.model_dump(), "minor_faults": 7, "elapsed_s": 1.5}


def test_of_several_the_mean_counts_and_of_memory_the_largest() -> None:
    found = json.loads(accounting([ran(1_000_000_000, max_resident_bytes=5), ran(2_000_000_000, max_resident_bytes=3)]))
    assert found["elapsed_s"] == 1.5
    assert found[LARGEST] == 5
    assert [run["elapsed_s"] for run in found["runs"]] == [1.0, 2.0]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 10**12), min_size=2, max_size=20))
def test_the_mean_lies_between_the_runs_and_does_not_depend_on_their_order(elapsed: list[int]) -> None:
    runs = [ran(each, minor_faults=each % 1000) for each in elapsed]
    found, turned = json.loads(accounting(runs)), json.loads(accounting(runs[::-1]))
    assert min(elapsed) / 1e9 * (1 - 1e-12) <= found["elapsed_s"] <= max(elapsed) / 1e9 * (1 + 1e-12)
    assert turned["elapsed_s"] == pytest.approx(found["elapsed_s"], rel=1e-12)
    assert turned["minor_faults"] == pytest.approx(found["minor_faults"], rel=1e-12)


def test_a_figure_of_the_output_is_of_one_run_only() -> None:
    with pytest.raises(ValueError, match="`runs` must be 1"):
        CommandParameters.model_validate({"run": "x", "runs": 2, "metrics": {"a": {"regex": "(.)"}}})
    CommandParameters.model_validate({"run": "x", "runs": 1, "warm_ups": 5, "metrics": {"a": {"regex": "(.)"}}})


STUDY = """\
study: prepared
question: Which is faster?
system: {command: {}}
workload: {command: {run: "true", prepare: "dd if=/dev/zero of=x", runs: RUNS, warm_ups: 2}}
factors:
  arm:
    one: {workload: {command: {label: one, runs: 1}}}
    two: {workload: {command: {label: two}}}
arm: arm
trials: {blocks: 1, seed: 1}
metrics:
  primary: elapsed_s
  secondary: [user_s, major_faults, disk_written_bytes]
  guardrails: [cpu_user_share]
"""


@pytest.mark.parametrize("runs", [1, 3])
def test_telemetry_of_several_runs_would_be_of_what_prepares_them_too(tmp_path: Path, runs: int) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.replace("RUNS", str(runs)))
    if runs == 1:
        load(path, catalogue=catalogue())
        return
    with pytest.raises(InputError) as refused:
        load(path, catalogue=catalogue())
    found = refused.value.problems
    assert [(each.line, each.field) for each in found] == [(13, "metrics.secondary"), (14, "metrics.guardrails")]
    assert found[0].message == (
        "metric `disk_written_bytes` is telemetry of the whole window, which also holds what `prepare` does between "
        "runs, with arm=two"
    )
    assert "set `runs: 1`" in found[0].suggestion


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        (None, {}),
        (FilesEndpoint(directory="/d"), {}),
        (
            MysqlEndpoint(socket="/s", user="root", database="d"),
            {"FAIRTRIAL_SOCKET": "/s", "FAIRTRIAL_USER": "root", "FAIRTRIAL_DATABASE": "d"},
        ),
        (
            MysqlEndpoint(host="h", port=1, user="u", password="p", database="d"),
            {
                "FAIRTRIAL_HOST": "h",
                "FAIRTRIAL_PORT": "1",
                "FAIRTRIAL_USER": "u",
                "FAIRTRIAL_PASSWORD": "p",
                "FAIRTRIAL_DATABASE": "d",
            },
        ),
        (
            PostgresEndpoint(socket_directory="/s", port=2, user="u", database="d"),
            {
                "FAIRTRIAL_SOCKET_DIRECTORY": "/s",
                "FAIRTRIAL_PORT": "2",
                "FAIRTRIAL_USER": "u",
                "FAIRTRIAL_DATABASE": "d",
                "PGHOST": "/s",
                "PGPORT": "2",
                "PGUSER": "u",
                "PGDATABASE": "d",
            },
        ),
    ],
)
def test_a_program_is_told_how_to_reach_the_system(endpoint: Endpoint | None, told: dict[str, str]) -> None:
    assert reaching(endpoint) == told


@pytest.mark.parametrize("wrong", [{"runs": 0}, {"warm_ups": -1}, {"runs": 10_001}, {"prepare": ""}, {"prepare": "'"}])
def test_limits(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        CommandParameters.model_validate({"run": "x", **wrong})
