"""Mistakes in a fio job are found when the study is read, with line and field."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError, Problem
from fairtrial.study import load
from fairtrial.workloads.fio import checking
from fairtrial.workloads.fio.parameters import RESERVED

STUDY = """\
study: one
question: Does it?
system: {files: {}}
workload:
  fio:
    accesses: 1000
WORKLOAD
factors:
  pattern:
    read: {}
    write: {workload: {fio: {rw: randwrite}}}
arm: pattern
metrics: {primary: throughput_iops}
"""
INSTALLED = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed here")


def problems(directory: Path, workload: str) -> list[Problem]:
    path = directory / "study.yaml"
    path.write_text(STUDY.replace("WORKLOAD", "\n".join(f"    {line}" for line in workload.splitlines())))
    try:
        load(path, catalogue=catalogue())
    except InputError as error:
        return error.problems
    return []


def test_a_good_job_has_no_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, "distribution: zipf:0.8\noptions: {thinktime: 5us, rwmixread: 70}") == []


@pytest.mark.parametrize(
    ("option", "key"),
    [("numjobs", "jobs"), ("bs", "block_size"), ("ramp_time", "warm_up"), ("randseed", "trials.seed")],
)
def test_what_the_run_sets_is_refused_with_the_key_that_says_it(tmp_path: Path, option: str, key: str) -> None:
    (found,) = problems(tmp_path, f"options:\n  thinktime: 1\n  {option}: 4")
    assert found.message == f"fio's `{option}` is set by the run"
    assert found.line == 9
    assert found.field == f"workload.fio.options.{option}"
    assert f"use `{key}" in found.suggestion


@pytest.mark.parametrize("option", ["filename: /etc/passwd", "log_store_compressed: 1", "stats: 0"])
def test_what_is_not_to_be_had_is_to_be_left_out(tmp_path: Path, option: str) -> None:
    (found,) = problems(tmp_path, f"options: {{{option}}}")
    assert found.field == f"workload.fio.options.{option.partition(':')[0]}"
    assert found.suggestion == "leave it out"


@pytest.mark.parametrize("method", ["crc32c", "pattern"])
def test_reads_of_prepared_files_cannot_be_verified_by_fio(tmp_path: Path, method: str) -> None:
    """The files hold none of its headers, so each read would fail; what it has written itself it can verify."""
    (found,) = problems(tmp_path, f"rw: read\noptions:\n  thinktime: 1\n  verify: {method}")
    assert (found.line, found.field) == (10, "workload.fio.options.verify")
    assert "finds none of its headers in prepared files" in found.message
    assert problems(tmp_path, f"rw: randrw\noptions: {{verify: {method}, verify_pattern: 1}}") == []


def test_a_distribution_of_sequential_access_would_have_no_effect(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "rw: rw\ndistribution: zipf:0.8")
    assert (found.line, found.field) == (8, "workload.fio.distribution")
    assert found.message == "fio draws no block with `rw: rw`, so `distribution` has no effect, with pattern=read"
    assert problems(tmp_path, "rw: rw\ndistribution: random") == []


@pytest.mark.parametrize("method", ["0", "null"])
def test_a_verification_that_verifies_nothing_is_no_mistake(tmp_path: Path, method: str) -> None:
    assert problems(tmp_path, f"options: {{verify: '{method}'}}") == []


@pytest.mark.parametrize("name", ["include", "include_it"])
def test_another_job_file_is_not_read_into_the_job(tmp_path: Path, name: str) -> None:
    (tmp_path / "part").write_text("exec_prerun=touch ran\nnosuch=1\n")
    (found,) = problems(tmp_path, f"options: {{{name}: {tmp_path}/part}}")
    assert found.message == f"fio's `{name}` is set by the run"


@pytest.mark.parametrize("engine", ["./engine.so", "/tmp/engine.so", "external:/tmp/engine.so"])
def test_an_engine_is_named_and_no_file_that_fio_would_load(tmp_path: Path, engine: str) -> None:
    (found,) = problems(tmp_path, f"engine: '{engine}'")
    assert found.field == "workload.fio.engine"


def test_every_reserved_option_that_is_set_elsewhere_names_a_key() -> None:
    assert RESERVED["rw"] == "rw"
    assert {name for name, key in RESERVED.items() if not key} >= {
        "directory",
        "filename",
        "write_hist_log",
        "invalidate",
    }


@INSTALLED
def test_an_option_that_fio_does_not_know_is_named_at_its_line(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "options:\n  thinktime: 1\n  nosuch: 3")
    assert found.line == 9
    assert found.field == "workload.fio.options.nosuch"
    assert found.message == "fio rejects `nosuch`: <nosuch=3>"


@INSTALLED
def test_every_value_that_fio_does_not_take_is_named(tmp_path: Path) -> None:
    found = problems(tmp_path, "options:\n  rwmixread: 300\n  fsync: 4\n  thinktime: soon")
    assert [(each.line, each.field.rpartition(".")[2]) for each in found] == [(8, "rwmixread"), (10, "thinktime")]
    assert "max value out of range: 300 (100 max)" in found[0].message


@INSTALLED
def test_a_field_that_fio_does_not_take_is_named_in_its_words(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "distribution: zipf:1.0")
    assert found.field == "workload.fio.distribution"
    assert found.line == 7
    assert "zipf theta must different than 1.0" in found.message  # fio's own grammar


@pytest.mark.parametrize("text", ["zipf", "pareto:x", "normal:-3", "zipf:0.8:0.1:7"])
def test_a_skew_without_a_number_is_refused_without_asking_fio(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking.shutil, "which", lambda _name: None)
    (found,) = problems(tmp_path, f"distribution: '{text}'")
    assert "does not have a valid parameter" in found.message
    assert found.field == "workload.fio.distribution"


def test_without_a_fio_here_the_place_is_left_to_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking.shutil, "which", lambda _name: None)
    checking._said_against.cache_clear()
    try:
        assert problems(tmp_path, "options: {nosuch: 7}") == []
    finally:
        checking._said_against.cache_clear()


def test_a_factor_over_systems_other_than_files_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.replace("WORKLOAD", "").replace("{files: {}}", "{sqlite: {}}"))
    with pytest.raises(InputError, match="`fio` does not run on the system `sqlite`; expected `files`"):
        load(path, catalogue=catalogue())


def test_words_leave_out_what_says_nothing() -> None:
    said = [
        "rwmixread: max value out of range: 300 (100 max)",
        "fio: failed parsing rwmixread=300",
        "Bad option <nosuch=3>",
        "fio: job job dropped",
        "",
    ]
    assert checking.words(said) == "rwmixread: max value out of range: 300 (100 max); <nosuch=3>"
    assert checking.words(["fio: job job dropped"]) == "it exited with an error and printed nothing"
    assert len(checking.words(["x" * 5000])) == checking.SAID
