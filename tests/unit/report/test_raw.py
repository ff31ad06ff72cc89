"""A run's raw_data.csv given to `fairtrial analyse`: the trials its estimates use, no verdict that a rule spoils."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from support.inference.tables import judged, only_comparison

from fairtrial.errors import InputError
from fairtrial.imports.asking import MARKS
from fairtrial.metrics import frames
from fairtrial.record import Record
from fairtrial.report import raw

ASKED = {"values": ("throughput_tpm",), "arm": "journal", "by": ("users",), "block": "block", "baseline": "delete"}


def test_rows_that_the_run_did_not_use_are_left_out_and_counted(record: Record) -> None:
    found = judged(raw.csv(record), **ASKED)
    counts = found.counts
    assert (counts.finished, counts.valid, counts.invalid, counts.used) == (26, 25, 1, 24)
    assert only_comparison(found, "throughput_tpm", "high").n == 6
    assert set(MARKS) <= set(raw.LEADING)


def test_a_column_used_of_anyones_table_marks_nothing() -> None:
    rows = [f"{arm},{block},false,{block + (arm == 'b')}" for block in range(1, 7) for arm in "ab"]
    found = judged("arm,block,used,tpm\n" + "\n".join(rows), values=("tpm",), arm="arm", block="block")
    assert found.counts.used == 12


def test_a_table_without_any_used_row_is_refused(record: Record) -> None:
    with pytest.raises(InputError, match="no row is marked as used"):
        judged(raw.csv(record).replace(",true,true,", ",true,false,"), **ASKED)


def test_a_rule_that_could_stop_the_run_leaves_no_verdict(record: Record) -> None:
    fixed, text = raw.csv(record), raw.csv(_stopped(record))
    assert "stopped_by" not in fixed.splitlines()[0]
    assert "sequential, looks from 4 to 6 blocks" in text
    found = judged(text, **ASKED)
    assert only_comparison(judged(fixed, **ASKED), "throughput_tpm", "low").verdict == "faster"
    assert only_comparison(found, "throughput_tpm", "low").verdict == "none"
    assert "stopped_early" in {doubt.code for doubt in found.doubts}


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_no_spreadsheet_computes_what_a_record_says(record: Record, start: str) -> None:
    formula = f'{start}HYPERLINK("http://evil","x")'
    first, *others = record.trials
    trial = first.model_copy(update={"valid": False, "invalid_reason": formula, "levels": {"journal": formula}})
    found = replace(record)
    found.__dict__["committed"] = (trial, *others)
    cells = next(csv.DictReader(io.StringIO(raw.csv(found))))
    assert cells["invalid_reason"] == cells["journal"] == f"'{formula}"
    assert float(cells["throughput_tpm"]) == first.scalars["throughput_tpm"]


def test_names_of_columns_are_cells_too(record: Record) -> None:
    formula = "=1+1"
    plan = record.plan.model_copy(update={"factors": {formula: ["a"], **record.plan.factors}})
    trials = tuple(each.model_copy(update={"levels": {formula: "a", **each.levels}}) for each in record.trials)
    found = replace(record, plan=plan)
    found.__dict__["committed"] = trials
    assert raw.csv(found).startswith("'=1+1,")


def test_a_metric_called_like_a_factor_or_a_column_keeps_both(record: Record) -> None:
    """As in records of before studies were refused for it."""
    own = {"used": 3.0, "journal": 4.0, "metric_journal": 5.0, "fine": 6.0, "stopped_by": 7.0}
    found = _stopped(record)
    found.__dict__["committed"] = tuple(each.model_copy(update={"scalars": own}) for each in record.trials)
    frame = frames.trials(found)
    assert frame["journal"].to_list() == [trial.levels["journal"] for trial in record.trials]
    assert set(frame["used"]) == {True, False}
    columns = frames.metric_columns(found)
    assert list(columns.values()) == ["metric_used", "metric_metric_journal", "metric_journal", "fine", "stopped_by"]
    assert frame.select(columns.values()).row(0) == tuple(own.values())
    cells = next(csv.DictReader(io.StringIO(raw.csv(found))))
    assert [cells[name] for name in ("journal", *columns.values())] == ["delete", "3.0", "4.0", "5.0", "6.0", "7.0"]


def _stopped(record: Record) -> Record:
    design = record.plan.design.model_copy(update={"stop": "sequential", "min_blocks": 4})
    return replace(record, plan=record.plan.model_copy(update={"design": design}))
