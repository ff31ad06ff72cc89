"""From what a system refused back to the line that says it, through files, levels and folded texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError, PlaceError, Problem

STUDY = """\
study: shop
system: {sqlite: {}}
workload: {script: {file: shop/own.yaml, duration: 1s}}
factors:
  script:
    own: {}
    busy: {workload: {script: {content: {transactions: {look: {weight: 3}}}}}}
    other: {workload: {script: {file: other.yaml}}}
arm: script
metrics: {primary: throughput_tps}
"""
OWN = """\
transactions:
  look:
    statements:
      - SELECT 1
      - {rows: 1, sql: 'SELECT 2'}
      - sql: |
          SELECT 3
"""
OTHER = "transactions: {look: {statements: [SELECT 4, SELECT 5, SELECT 6]}}\n"


@pytest.fixture
def loaded(tmp_path: Path) -> study.Study:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "own.yaml").write_text(OWN)
    (tmp_path / "other.yaml").write_text(OTHER)
    (tmp_path / "study.yaml").write_text(STUDY)
    return study.load(tmp_path / "study.yaml", catalogue=catalogue())


def statement(number: int) -> Problem:
    return Problem("refused", "script", field=f"workload.script.content.transactions.look.statements.{number}.sql")


def placed(loaded: study.Study, problem: Problem, level: str) -> str:
    error = study.located(InputError([problem], hint="mend it"), loaded, {"script": level})
    assert error.hint == "mend it"
    (found,) = error.problems
    return f"{Path(found.file).name}:{found.line}:{found.column}"


@pytest.mark.parametrize(
    ("number", "at"), [(0, "own.yaml:4:9"), (1, "own.yaml:5:25"), (2, "own.yaml:7:11"), (9, "own.yaml:4:7")]
)
def test_a_statement_is_found_where_its_first_letter_stands(loaded: study.Study, number: int, at: str) -> None:
    assert placed(loaded, statement(number), "own") == at


def test_each_level_s_statements_are_found_in_the_file_that_it_names(loaded: study.Study) -> None:
    assert placed(loaded, statement(1), "busy") == "own.yaml:5:25", "the level changes a weight alone"
    assert placed(loaded, statement(1), "other") == "other.yaml:1:46"


def test_what_has_a_line_or_no_field_of_a_trial_stays_as_it_is(loaded: study.Study) -> None:
    known = Problem("wrong", "times.txt", line=3, column=1, field="workload.script.content")
    assert placed(loaded, known, "own") == "times.txt:3:1"
    assert placed(loaded, Problem("changed", "times.txt"), "own") == "times.txt:0:0"
    assert placed(loaded, Problem("no such size", "--size", field="sizes.small"), "own") == "--size:0:0"


def test_what_a_place_lacks_is_found_where_the_level_asks_for_it(loaded: study.Study) -> None:
    def said(field: str) -> str:
        lack = PlaceError("not there", hint="bring it", field=field)
        found = study.located_lack(lack, loaded, {"script": "busy"})
        assert found.hint == "bring it"
        return str(found).rpartition("/")[2]

    weight = "workload.script.content.transactions.look.weight"
    assert said(weight) == f"study.yaml:7:72: {weight}: not there"
    assert said("place.container.image").endswith(": place.container.image: not there")


PROBED = (
    STUDY
    + """\
telemetry:
  probes:
    - perf_stat
    - bpftrace: locks.bt
    - {command: vmstat 1}
"""
)


@pytest.mark.parametrize(
    ("field", "at"),
    [
        ("telemetry.probes.0.perf_stat", "study.yaml:13:7"),
        ("telemetry.probes.1.bpftrace", "study.yaml:14:17"),
        ("telemetry.probes.2.command", "study.yaml:15:17"),
        ("telemetry.probes.7.command", "study.yaml:13:5"),
        ("telemetry.interval", "study.yaml:12:3"),
        ("trials.blocks", "probes:0:0"),
    ],
)
def test_a_probe_is_found_where_it_is_named(loaded: study.Study, tmp_path: Path, *, field: str, at: str) -> None:
    del loaded  # its files are what is wanted
    (tmp_path / "study.yaml").write_text(PROBED)
    (tmp_path / "locks.bt").write_text("BEGIN { exit(); }")
    again = study.load(tmp_path / "study.yaml", catalogue=catalogue())
    assert placed(again, Problem("not here", "probes", field=field), "own") == at


def test_the_study_that_is_kept_with_a_record_still_has_the_lines_of_its_probes(
    loaded: study.Study, tmp_path: Path
) -> None:
    """Once the study's own file says something else, mistakes are located in the merged copy."""
    del loaded
    (tmp_path / "study.yaml").write_text(PROBED)
    (tmp_path / "locks.bt").write_text("BEGIN { exit(); }")
    dumped = study.dump(study.load(tmp_path / "study.yaml", catalogue=catalogue()))
    (tmp_path / "study.merged.yaml").write_text(dumped)
    again = study.load(tmp_path / "study.merged.yaml", catalogue=catalogue())
    at = placed(again, Problem("not here", "probes", field="telemetry.probes.2.command"), "own")
    line = next(number for number, each in enumerate(dumped.splitlines(), start=1) if "vmstat 1" in each)
    assert at.startswith(f"study.merged.yaml:{line}:")


@pytest.mark.parametrize(
    ("field", "at"),
    [("place", "5:10"), ("place.ssh.host", "5:23"), ("tls", "6:8"), ("address", "10:44"), ("command.run", "4:18")],
)
def test_where_a_load_runs_is_found_beside_its_kind(tmp_path: Path, field: str, at: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        "study: far\nsystem: {mariadb: {}}\nworkload:\n  command: {run: a}\n  place: {ssh: {host: far}}\n  tls: true\n"
        "factors:\n  script:\n    one: {}\n    two: {workload: {command: {}, address: 10.0.0.1}}\n"
        "arm: script\nmetrics: {primary: elapsed_s}\n"
    )
    loaded = study.load(path, catalogue=catalogue())
    assert placed(loaded, Problem("refused", "workload", field=f"workload.{field}"), "two") == f"study.yaml:{at}"
