"""Files that a stranger names or wrote: reading ends, fits in memory, and a terminal obeys nothing in what is said."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import polars as pl
import pytest
from support.command_line import desk
from support.fuzzing.targets import SEEDS

from fairtrial import foreign, record, verify
from fairtrial.audit.claims import file as claims
from fairtrial.catalogue import catalogue
from fairtrial.cli import app, guarding
from fairtrial.errors import InputError, RecordError
from fairtrial.history import series
from fairtrial.metrics import covariates, drive, parquet
from fairtrial.metrics.telemetry import shutdown
from fairtrial.record import acknowledgements
from fairtrial.study import load

DEEP = b"[" * 100_000 + b"]" * 100_000
TERMINAL = "\x1b]0;owned\x07\x1b[2J\u202e\x9b31m[/b][link=file:///etc]"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    made = tmp_path / "pipe.lua"
    os.mkfifo(made)  # a test of what reads it would wait for its writer
    return made


@pytest.mark.parametrize("name", ["pipe.lua", "/dev/zero", "."])
def test_only_regular_files_are_read(pipe: Path, name: str) -> None:
    with pytest.raises(OSError, match="not a regular file"):
        foreign.read(pipe.parent / name)


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(1 << 40)  # takes no room
    with pytest.raises(OSError, match="larger than 1 MiB"):
        foreign.read(large, most_bytes=1 << 20)


STUDY = """
study: one
SAID
workload: {command: {run: "true"}}
factors: {arm: {a: {}, b: {workload: {command: {label: b}}}}}
arm: arm
metrics: {primary: elapsed_s}
"""
NAMING = {
    "include": "include: pipe.lua",
    "bpftrace": "telemetry: {probes: [{bpftrace: pipe.lua}]}",
    "device": "include: /dev/zero",
}


@pytest.mark.parametrize("said", NAMING.values(), ids=NAMING)
def test_a_study_that_names_what_has_no_end_is_refused(pipe: Path, said: str) -> None:
    study = pipe.with_name("study.yaml")
    study.write_text(STUDY.replace("SAID", said))
    with pytest.raises(InputError, match="not a regular file"):
        load(study, catalogue=catalogue())


def test_a_script_that_has_no_end_is_refused(pipe: Path) -> None:
    study = pipe.with_name("study.yaml")
    workload = "workload: {sysbench: {file: pipe.lua, duration: 5s}}\nsystem: {mariadb: {}}"
    study.write_text(STUDY.replace("SAID", workload).replace('workload: {command: {run: "true"}}\n', ""))
    with pytest.raises(InputError, match="not a regular file"):
        load(study, catalogue=catalogue())


@pytest.mark.parametrize("key", ["data", "description", "r_output"])
@pytest.mark.parametrize("name", ["pipe.lua", "/dev/zero"])
def test_claims_that_name_what_has_no_end_are_refused(pipe: Path, key: str, name: str) -> None:
    files = {"data": "data.csv", "description": "", "r_output": "", key: name}
    pipe.with_name("data.csv").write_text("arm,tps\na,1\nb,2\n")
    text = f"data: {files['data']}\nmetrics: {{tps: {{unit: tps, better: higher}}}}\nfactors: {{arm: [a, b]}}\n"
    text += "".join(f"{each}: {files[each]}\n" for each in ("description", "r_output") if files[each])
    text += "claims: [{where: page 1, says: higher, metric: tps, contrast: arm}]\n"
    path = pipe.with_name("claims.yaml")
    path.write_text(text)
    with pytest.raises(InputError, match="not a regular file"):
        claims.read(path)


def test_a_list_of_acknowledgements_that_has_no_end_is_refused(pipe: Path) -> None:
    with pytest.raises(InputError, match="not a regular file"):
        acknowledgements.read(pipe)


def _plan(copy: Path) -> Any:
    (copy / "plan.json").write_bytes(b'{"format_version": ' + DEEP + b"}")
    return record.read(copy)


def _trial(copy: Path) -> Any:
    trial = next((copy / "trials").iterdir())
    (trial / "trial.json").write_bytes(b'{"format_version": 1, "trial": ' + DEEP + b"}")
    return record.read(copy).committed


def _journal(copy: Path) -> Any:
    with (copy / "journal.jsonl").open("ab") as file:
        file.write(b'{"sequence": 1, "entry": ' + DEEP + b"}\n")
    return record.read(copy)


@pytest.mark.parametrize("opened", [_plan, _trial, _journal])
def test_json_that_is_nested_without_end_is_a_damaged_record(real_copy: Path, opened: Callable[[Path], Any]) -> None:
    with pytest.raises(RecordError, match="recursion limit exceeded"):
        opened(real_copy)


@pytest.mark.parametrize("name", ["plan.json", "journal.jsonl"])
def test_a_file_of_a_record_that_would_fill_memory_is_not_read(real_copy: Path, name: str) -> None:
    os.truncate(real_copy / name, 1 << 40)  # takes no room
    with pytest.raises(RecordError, match=r"larger than (256|1024) MiB"):
        record.read(real_copy)


@pytest.mark.parametrize(
    ("module", "read"), [(drive, drive.read), (shutdown, shutdown.compute), (covariates, covariates.compute)]
)
def test_a_document_of_a_trial_that_would_fill_memory_is_not_read(
    tmp_path: Path, module: Any, read: Callable[[Path], Any]
) -> None:
    with (tmp_path / module.FILE).open("wb") as file:
        file.truncate(1 << 40)  # takes no room
    with pytest.raises(RecordError, match="larger than 64 MiB"):
        read(tmp_path)


def test_a_report_that_is_nested_without_end_is_a_mismatch(real_copy: Path) -> None:
    (real_copy / "report" / "report.json").write_bytes(DEEP)
    (said,) = [each for each in verify.recompute(record.read(real_copy)) if "report.json" in each]
    assert "cannot be read" in said


def test_a_directory_that_is_a_pattern_is_only_itself(real_copy: Path) -> None:
    both = [real_copy.with_name("a*c"), real_copy.with_name("abc")]
    real_copy.rename(both[0])
    both[1].mkdir()
    for name in ("plan.json", "journal.jsonl"):
        (both[1] / name).write_text("not even JSON")
    assert series.read([both[0]]).series


def test_a_small_file_of_very_many_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "many.parquet"
    pl.DataFrame({"a": pl.repeat(1, 1_000_000, eager=True)}).write_parquet(path)
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(parquet, "MOST_VALUES", 999_999)
    with pytest.raises(pl.exceptions.PolarsError, match="more than 999,999 values"):
        parquet.read(path)


def test_a_file_of_a_record_that_ends_its_reader_is_a_damaged_one(real_copy: Path) -> None:
    (damaged, *_) = (real_copy / "trials").glob("*/latency-merged.parquet")
    damaged.write_bytes((SEEDS / "ends-its-reader.parquet").read_bytes())
    with desk() as here:
        done = here.fairtrial("report", real_copy, code=RecordError.exit_code)
    assert f"{damaged} cannot be read: it ends the program that reads it (-6)" in done.stderr


@pytest.mark.parametrize("command", [app.report, app.watch, app.verify, app._beside])
def test_commands_that_only_read_a_record_have_another_process_read_it_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Callable[[Path], None]
) -> None:
    begin = Mock(side_effect=InterruptedError)  # before anything of the record is looked at
    monkeypatch.setattr(guarding, "begin", begin)
    with pytest.raises(InterruptedError):
        command(tmp_path)
    begin.assert_called_once_with()


@pytest.mark.parametrize("command", ["report", "verify", "history", "plan"])
def test_a_terminal_obeys_nothing_that_a_record_says(real_copy: Path, command: str) -> None:
    plan = json.loads((real_copy / "plan.json").read_text(encoding="utf-8"))
    plan |= {"study": f"study {TERMINAL}", "question": TERMINAL, "warnings": [TERMINAL]}
    for definition in plan["metrics"]["definitions"].values():
        definition |= {"label": TERMINAL, "unit": TERMINAL}
    (real_copy / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    trial = next((real_copy / "trials").iterdir()) / "trial.json"
    document = json.loads(trial.read_text(encoding="utf-8"))
    trial.write_text(json.dumps(document | {"invalid_reason": TERMINAL, "valid": False}), encoding="utf-8")
    with desk() as here:
        done = here.fairtrial(command, real_copy, *(["--effects"] if command == "plan" else []), code=None)
    assert done.returncode in (0, 1, 2, 3), done.stderr
    report = real_copy / "report" / "report.txt"
    for said in (done.stdout, done.stderr, report.read_text(encoding="utf-8")):
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(said)


def test_a_terminal_obeys_no_error(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text('study: "\\e]0;owned\\a"\nnosuch\\\\: "\\e[2J"\n')
    with desk() as here:
        done = here.fairtrial("plan", study, code=None)
    assert done.returncode == InputError.exit_code
    assert "\\x1b" in done.stderr
    assert "\x1b" not in done.stderr
