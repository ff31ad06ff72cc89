"""A run's raw_data.csv given to `fairtrial analyse`: the trials its estimates use, no verdict that a rule spoils."""

from __future__ import annotations

import csv
import io
from contextlib import closing
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import cast

import pytest
from support.inference.analysis_cases import Case, invalid, trial
from support.inference.tables import judged, only_comparison

from fairtrial.analyse.models import Analysis
from fairtrial.errors import InputError
from fairtrial.imports.asking import MARKS
from fairtrial.metrics import frames
from fairtrial.plan import replacement
from fairtrial.record import Record, create
from fairtrial.record.events import RunFinished
from fairtrial.report import raw
from fairtrial.report.analysing import analysed
from fairtrial.report.figures import verdicts
from fairtrial.report.scene import Scene
from fairtrial.run.schedule import Schedule

ASKED = {"values": ("throughput_tpm",), "arm": "journal", "by": ("users",), "block": "block", "baseline": "delete"}


def test_rows_that_the_run_did_not_use_are_left_out_and_counted(record: Record) -> None:
    found = judged(raw.csv(record), **ASKED)
    counts = found.counts
    assert (counts.finished, counts.valid, counts.invalid, counts.used) == (26, 25, 1, 24)
    assert only_comparison(found, "throughput_tpm", "high").n == 6
    assert set(MARKS) <= set(raw.LEADING)


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Block 2 of cell `1` is void; block 5 replaces it at the end of round 3 of 4."""
    plan = Case({"kernel": ["a", "b"], "users": ["1", "2"]}, blocks=4).plan()
    schedule = Schedule(plan=plan, replacement=partial(replacement, plan))
    with closing(create(tmp_path_factory.mktemp("repaired") / "run", plan=plan, sources={"study.yaml": ""})) as writer:
        while (of := schedule.next_trial()) is not None:
            made = trial(of, levels={"kernel": of.arm, "users": of.cell}, scalars={"tpm": 100.0 + of.position % 7})
            made = invalid(made) if (of.cell, of.block, of.arm) == ("1", 2, "a") else made
            writer.begin(of.id)
            writer.commit(made.model_copy(update={"window": None}))
            schedule.finish(of.id, valid=made.valid)
            while events := schedule.repairs():
                for event in events:
                    writer.append(event)
                    schedule.apply(event)
        writer.append(RunFinished())
        return writer.record()


@pytest.mark.parametrize(("contrast", "used"), [("kernel", 16), ("users", 14)])
def test_a_report_by_another_factor_marks_what_its_own_estimates_use(
    repaired: Record, *, contrast: str, used: int
) -> None:
    """The block that replaces another ran apart from the block of its number in other cells."""
    scene = Scene(repaired, analysed(repaired, contrast=contrast))
    assert scene.analysis.counts.used == sum(each.used for each in scene.trials) == used
    rows = csv.DictReader(io.StringIO(raw.csv(repaired, used=scene.used)))
    assert sum(row["used"] == "true" for row in rows) == used
    assert sum(row["used"] for row in raw.shown(scene)["rows"]) == used
    fates = {each.trial.trial.id: each.fate for each in scene.trials}
    assert (fates["1.b02.a"], fates["1.b02.b"]) == ("broken on purpose", "its block was voided")
    assert fates["1.b05.a"] == ("used" if contrast == "kernel" else "only comparisons by kernel use its block")


class _NotSearched(tuple[tuple[str, int], ...]):
    __slots__ = ()

    def __contains__(self, _: object) -> bool:
        raise AssertionError


def test_a_trials_fate_searches_no_list_of_void_blocks(repaired: Record) -> None:
    """There may be tens of thousands of either."""
    scene = Scene(repaired, analysed(repaired))
    vars(scene)["_selection"] = replace(scene._selection, voided=_NotSearched(scene._selection.voided))
    assert [each.trial.trial.id for each in scene.trials if "voided" in each.fate] == ["1.b02.b"]


@pytest.mark.parametrize("contrast", ["kernel", "users"])
def test_a_late_block_of_a_farm_is_late_in_every_report(contrast: str) -> None:
    """Nobody uses it: neither the arm's comparisons nor another factor's."""
    case = Case({"kernel": ["a", "b"], "users": ["1", "2"]}, blocks=8)
    trials = case.trials(tpm=lambda levels, block: (90.0 if levels["kernel"] == "b" else 100.0) + block % 3)
    plan = case.plan()
    rule = {"stop": "sequential", "min_blocks": 3}
    plan = plan.model_copy(update={"design": plan.design.model_copy(update=rule)})
    hosted = tuple(each.model_copy(update={"host": f"node-{each.trial.block % 2}"}) for each in trials)
    record = cast("Record", SimpleNamespace(plan=plan, trials=hosted, voided_blocks=()))
    scene = Scene(record, cast("Analysis", SimpleNamespace(contrast=contrast)))
    assert scene.fate(hosted[0]) == "used"
    assert scene.fate(hosted[-1]) == "its round came after its cell's last"


def test_trials_are_drawn_in_the_order_in_which_they_ran(repaired: Record) -> None:
    scene = Scene(repaired, analysed(repaired))
    figures = [verdicts.trials(scene, cell, scene.tables[0]) for cell in scene.analysis.cells]
    specs = [figure.spec for figure in figures if figure is not None]
    drawn = [row for spec in specs for rows in spec["datasets"].values() for row in rows if "trial" in row]
    in_order = [row["trial"] for row in sorted(drawn, key=lambda row: row["order"])]
    assert in_order == [each.trial.id for each in repaired.trials]
    assert in_order.index("1.b05.a") < in_order.index("1.b04.a")


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


def test_trials_of_one_boot_can_be_told(record: Record) -> None:
    design = record.plan.design.model_copy(update={"per_boot": 2})
    booted = [
        each.model_copy(
            update={
                "trial": each.trial.model_copy(
                    update={"boot": f"{each.trial.arm}.{each.trial.block // 2}", "repeat": 1 + each.trial.block % 2}
                )
            }
        )
        for each in record.trials
    ]
    found = replace(record, plan=record.plan.model_copy(update={"design": design}))
    found.__dict__["committed"] = tuple(booted)
    text = raw.csv(found)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["boot"], int(row["repeat"])) for row in rows] == [(e.trial.boot, e.trial.repeat) for e in booted]
    whole = judged(text, **{**ASKED, "block": None, "cluster": "boot"})
    assert (whole.counts.rows, only_comparison(whole, "throughput_tpm", "low").n) == (24, 3)
    assert "boot" not in raw.csv(record).splitlines()[0].split(",")


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
