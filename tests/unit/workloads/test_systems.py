"""A workload that needs a database is refused with the study, at the line that names it, before anything starts."""

from pathlib import Path

import pytest

from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError, Problem

STUDY = """\
study: systems
{system}
workload: {{tpcc: {{duration: 5s}}}}
factors:
  users: {{one: {one}, two: {{workload: {{tpcc: {{virtual_users: 2}}}}}}}}
arm: users
metrics: {{primary: throughput_tpm}}
"""


def problems(directory: Path, *, system: str = "", one: str = "{}") -> list[Problem]:
    path = directory / "study.yaml"
    path.write_text(STUDY.format(system=system, one=one))
    try:
        study.load(path, catalogue=catalogue())
    except InputError as error:
        return error.problems
    return []


@pytest.mark.parametrize("system", ["", "system: {command: {}}"])
def test_tpcc_without_a_database_is_refused_at_its_line(tmp_path: Path, system: str) -> None:
    (problem,) = problems(tmp_path, system=system)
    assert (problem.line, problem.column, problem.field) == (3, 12, "workload.tpcc")
    assert "`command`" in problem.message
    assert "`mariadb`, `mysql`, `postgres`, `sqlite`" in problem.message
    assert "system" in problem.suggestion


def test_a_level_that_takes_the_database_away_is_named(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, system="system: {sqlite: {}}", one="{system: {command: {}}}")
    assert problem.message.endswith("with users=one")


@pytest.mark.parametrize("system", ["system: {sqlite: {}}", "system: {mariadb: {}}", "system: {postgres: {}}"])
def test_tpcc_runs_on_databases(tmp_path: Path, system: str) -> None:
    assert problems(tmp_path, system=system) == []


def test_a_command_runs_on_any_system_and_what_is_misspelt_is_said_once(tmp_path: Path) -> None:
    assert problems(tmp_path, system="system: {mariadb: {}}", one="{workload: {command: {run: x}}}")[0].field == (
        "metrics.primary"
    )
    (problem,) = problems(tmp_path, system="system: {sqlit: {}}")
    assert "did you mean `sqlite`" in problem.suggestion
