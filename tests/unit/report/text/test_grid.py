from __future__ import annotations

from fairtrial.analyse.models import Analysis
from fairtrial.report.tables import MetricTable, metric_tables
from fairtrial.report.text.grid import grid


def _table(analysis: Analysis, *levels: dict[str, str]) -> MetricTable:
    """The primary table with as many cells as `levels` names."""
    source = analysis.cells[0]
    cells = tuple(source.model_copy(update={"levels": each}) for each in levels)
    return metric_tables(analysis.model_copy(update={"cells": cells}))[0]


def test_two_factors_make_rows_and_columns(analysis: Analysis) -> None:
    levels = [{"memory": memory, "users": users} for memory in ("under", "over") for users in ("low", "high")]
    lines = grid(_table(analysis, *levels), factors=["memory", "users"], arm="wal")
    assert [part.strip() for part in lines[1].strip("|").split("|")] == ["", "users low", "users high"]
    assert lines[3].startswith("| memory under |")
    assert lines[6].startswith("| memory over ")
    assert lines[3].count("18,562 / 24,221") == 2
    assert lines[4].count("[4,801, 6,518]") == 2
    assert len({len(line) for line in lines}) == 1


def test_one_factor_makes_rows(analysis: Analysis) -> None:
    lines = grid(metric_tables(analysis)[0], factors=["users"], arm="wal")
    assert "delete / wal" in lines[1]
    assert [line.split("|")[1].strip() for line in (lines[3], lines[6])] == ["users low", "users high"]


def test_a_cell_that_did_not_run_stays_empty(analysis: Analysis) -> None:
    levels = [{"a": "1", "b": "1"}, {"a": "1", "b": "2"}, {"a": "2", "b": "1"}]
    lines = grid(_table(analysis, *levels), factors=["a", "b"], arm="wal")
    assert lines[6].split("|")[3].strip() == ""


def test_no_grid_without_conditions_or_where_it_would_not_fit(analysis: Analysis) -> None:
    assert grid(_table(analysis, {}), factors=[], arm="wal") == []
    wide = [{"a": "1", "b": str(index)} for index in range(10)]
    assert grid(_table(analysis, *wide), factors=["a", "b"], arm="wal") == []
