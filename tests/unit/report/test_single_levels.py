"""Tables of verdicts: a row says what tells it apart, conditions of one level and the only arm are not in it."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from support.inference.analysis_cases import Case

from fairtrial.analyse import analyse
from fairtrial.analyse.models import Analysis
from fairtrial.errors import InputError
from fairtrial.record import Record
from fairtrial.report import page, tables
from fairtrial.report.scene import Scene
from fairtrial.report.text import console


@pytest.fixture
def single(analysis: Analysis) -> Analysis:
    """The analysis as it is where every cell has one more level, the same in all."""
    cells = [cell.model_copy(update={"levels": {"memory": "plenty", **cell.levels}}) for cell in analysis.cells]
    return analysis.model_copy(update={"cells": tuple(cells)})


def printed(analysis: Analysis) -> list[str]:
    """Header and rows of the tables."""
    file = io.StringIO()
    Console(file=file, width=200, color_system=None).print(console.render(analysis))
    return [line for line in file.getvalue().splitlines() if line.startswith(("users ", "low ", "high "))]


def verdict_table(record: Record, analysis: Analysis) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the page's first table."""
    html = page.render(Scene(record=record, analysis=analysis), ratios=[], cells=[])
    body = html[html.index('<table class="verdicts"') :]
    body = body[: body.index("</table>")]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in body.split("<tr>")[1:]]
    assert len(re.findall(r"<col[ >]", body)) == len(cells[0])
    return cells[0], cells[1:]


def test_what_is_the_same_in_all_rows_is_in_no_table(single: Analysis, analysis: Analysis) -> None:
    assert tables.conditions(single) == ("users",)
    assert printed(single) == printed(analysis)
    assert len(printed(single)) >= 3


def test_the_page_names_two_arms_above_their_means_and_more_in_a_column(record: Record, single: Analysis) -> None:
    header, rows = verdict_table(record, single)
    assert header[:4] == ["users", *single.levels, "ratio"]
    assert {len(row) for row in rows} == {len(header)}
    assert [row[0] for row in rows] == ["low", "high"]
    more = single.model_copy(update={"levels": (*single.levels, "third")})
    header, rows = verdict_table(record, more)
    assert header[:4] == ["users", "arm", single.levels[0], "arm’s mean"]
    assert {len(row) for row in rows} == {len(header)}
    assert {row[1] for row in rows} == {single.levels[1]}


def test_a_factor_of_one_level_compares_nothing() -> None:
    case = Case({"kernel": ("a", "b"), "load": ("low",)}, blocks=3)
    with pytest.raises(InputError, match="factor load has only the level `low`: expected two or more"):
        analyse(case.plan(), case.trials(tpm=lambda _levels, _block: 1.0), contrast="load")
