"""Programs with their versions; a missing one is told with its package."""

from __future__ import annotations

import re
from pathlib import Path

from support.seen import seen

from fairtrial.doctor import judged
from fairtrial.doctor.programs import PROGRAMS, findings


def test_a_program_is_told_with_version_and_path() -> None:
    place = seen(programs={"fio": ("/usr/bin/fio", "fio-3.33")}, looked_for_programs=True)
    found = {finding.name: finding for finding in findings(place)}
    assert found["program fio"].value == "fio-3.33 (/usr/bin/fio)"
    assert found["program fio"].grade == "fine"
    assert found["program mariadbd"].grade == "caution"
    assert found["program mariadbd"].fix == "`apt install mariadb-server` at the place, as root"


def test_a_program_that_says_no_version_is_there_all_the_same() -> None:
    place = seen(programs={"perf": ("/usr/bin/perf", "")}, looked_for_programs=True)
    assert {f.name: f.value for f in findings(place)}["program perf"] == "version unknown (/usr/bin/perf)"


def test_where_programs_were_not_looked_for_nothing_is_said_of_them() -> None:
    assert list(findings(seen())) == []


def test_every_program_that_is_looked_for_says_what_it_is_for() -> None:
    assert [program.name for program in PROGRAMS.values() if not program.use] == []


def test_names_of_findings_are_told_apart() -> None:
    names = [finding.name for finding in judged(seen(looked_for_programs=True))]
    assert len(set(names)) == len(names)


def test_every_finding_is_on_the_page_and_no_other() -> None:
    page = (Path(__file__).parents[3] / "docs" / "guides" / "places.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"(?m)^\| finding .*?\n\n", page + "\n\n", re.DOTALL)
    named = {name for row in table.strip().splitlines()[2:] for name in re.findall(r"`(\w+)", row.split("|")[1])}
    shown = {finding.name.split()[0] for finding in judged(seen(looked_for_programs=True))}
    assert named == shown
