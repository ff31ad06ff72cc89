"""Points of many records, from records that the writer wrote."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.records import planned, tiny_plan, trial_record

from fairtrial import record
from fairtrial.errors import InputError, RecordError
from fairtrial.history import series as across_runs
from fairtrial.record.events import RunFinished
from fairtrial.record.models import BlockVoided, Cell, CellLook, LookTaken, RangeExpectation

SOURCES = {"study.yaml": "study: tiny\n"}
Values = Mapping[tuple[int, str], float]


def written(
    directory: Path,
    values: Values,
    *,
    finished: bool = True,
    events: Sequence[BlockVoided | LookTaken] = (),
    change: Callable[[dict], dict] = dict,
    **changed: Any,
) -> Path:
    """A record with one value of elapsed_s per block and arm; `change` alters trials, `changed` the plan."""
    writer = record.create(directory, plan=tiny_plan().model_copy(update=changed), sources=SOURCES)
    for (block, arm), value in values.items():
        trial = trial_record(planned(block, arm))
        writer.begin(trial.trial.id)
        facts = change({"scalars": {"elapsed_s": value, "extra": 2 * value}})
        writer.commit(trial.model_copy(update=facts))
    for event in events:
        writer.append(event)
    if finished:
        writer.append(RunFinished())
    writer.close()
    return directory


def voided(block: int) -> BlockVoided:
    return BlockVoided(cell="all", block=block, reason="on purpose")


VALUES = {(1, "a"): 1.0, (1, "b"): 2.0, (2, "a"): 4.0, (2, "b"): 2.0}


def test_a_point_is_the_geometric_mean_of_its_trials_with_the_error_of_their_logarithms(tmp_path: Path) -> None:
    found = across_runs.read([written(tmp_path / "r1", VALUES)])
    a, b = found.series
    assert (a.name, b.name, a.metric, a.unit, a.better, a.margin, a.role) == (
        *("tiny · a", "tiny · b", "elapsed_s", "s", "lower"),
        *(0.02, "primary"),
    )
    (point,) = a.points
    assert (point.run, point.n, point.estimate) == ("r1", 2, pytest.approx(2))
    logs = [math.log(1), math.log(4)]
    assert point.standard_error == pytest.approx((logs[1] - logs[0]) / 2)  # sd / √2, of two values
    assert b.points[0].standard_error == 0


def test_values_whose_squares_no_number_holds_have_an_error(tmp_path: Path) -> None:
    values = {key: 1e200 * (value - 2) for key, value in VALUES.items()}
    (point,) = across_runs.read([written(tmp_path / "r1", values)]).series[0].points
    assert point.standard_error == pytest.approx(1.5e200)


def test_runs_are_in_the_order_of_their_beginning_whatever_they_are_called(tmp_path: Path) -> None:
    for name in ("z", "m", "a"):
        written(tmp_path / name, VALUES)
    found = across_runs.read(across_runs.record_directories([tmp_path]))
    assert [point.run for point in found.series[0].points] == ["z", "m", "a"]


def test_trials_of_voided_blocks_give_no_points(tmp_path: Path) -> None:
    found = across_runs.read([written(tmp_path / "r1", VALUES, events=[voided(2)])])
    assert [(series.points[0].estimate, series.points[0].n) for series in found.series] == [(1, 1), (2, 1)]
    assert found.series[0].points[0].standard_error is None


def test_rounds_after_the_one_that_stopped_their_cell_give_no_points(tmp_path: Path) -> None:
    """Hosts of a farm have them under way by then."""
    first = CellLook(cell="all", blocks=1, information=0.5, decision="continue")
    last = CellLook(cell="all", blocks=2, information=1, decision="stop", reason="difference")
    looks = [
        LookTaken(round=1, decision="continue", cells=[first]),
        LookTaken(round=2, decision="stop", cells=[last]),
    ]
    late = {(3, "a"): 100.0, (3, "b"): 100.0}
    for count, n in ((1, 3), (2, 2)):
        run = written(tmp_path / f"r{count}", VALUES | late, events=looks[:count])
        assert [series.points[0].n for series in across_runs.read([run]).series] == [n, n]


def test_an_a_a_run_is_in_no_series(tmp_path: Path) -> None:
    runs = [written(tmp_path / name, VALUES) for name in ("r0", "r1")]
    aa = written(tmp_path / "aa", VALUES, against_itself=True, factors={"arm": ["a", "a-again"]})
    for by in (["cell"], ["cell", "arm"]):
        found = across_runs.read([*runs, aa], by=by)
        assert found.series == across_runs.read(runs, by=by).series
        assert found.left_out == {"aa": across_runs.AGAIN}


def test_a_guardrail_has_its_own_margin_and_a_metric_its_resolution(tmp_path: Path) -> None:
    plan = tiny_plan()
    known = plan.metrics.definitions["elapsed_s"].model_copy(update={"resolution": 0.018})
    metrics = plan.metrics.model_copy(
        update={
            "primary": ["extra"],
            "guardrails": ["elapsed_s"],
            "guardrail_margins": {"elapsed_s": 0.5},
            "definitions": {"elapsed_s": known},
        }
    )
    run = written(tmp_path / "r", VALUES, metrics=metrics)
    found = {each.metric: (each.margin, each.resolution) for each in across_runs.read([run]).series}
    assert found == {"extra": (0.02, 0.0), "elapsed_s": (0.5, 0.018)}
    both = metrics.model_copy(update={"primary": ["elapsed_s"]})
    for each in across_runs.read([written(tmp_path / "twice", VALUES, metrics=both)]).series:
        assert (each.role, each.margin) == ("primary", 0.02), "as in the run's report"


def test_unfinished_and_empty_runs_are_left_out_with_the_reason(tmp_path: Path) -> None:
    written(tmp_path / "whole", VALUES)
    written(tmp_path / "cut", VALUES, finished=False)
    written(tmp_path / "lost", {(1, "a"): 1.0}, events=[voided(1)])
    found = across_runs.read(across_runs.record_directories([tmp_path]))
    assert found.left_out == {"cut": "unfinished", "lost": "no trial counts towards estimates"}
    assert [point.run for point in found.series[0].points] == ["whole"]


def test_the_newest_run_is_known_even_where_it_gives_no_point(tmp_path: Path) -> None:
    written(tmp_path / "old", VALUES)
    assert across_runs.read([tmp_path / "old"]).series[0].newest == "old"
    written(tmp_path / "new", dict.fromkeys(VALUES, math.nan))
    written(tmp_path / "newer", {}, finished=False)
    for names, newest in ((["old", "new"], "new"), (["old", "newer"], "newer")):
        for series in across_runs.read([tmp_path / name for name in names]).series:
            assert ([point.run for point in series.points], series.newest) == (["old"], newest)


def test_a_series_that_the_newest_run_neither_plans_nor_measures_says_so(tmp_path: Path) -> None:
    written(tmp_path / "r1", VALUES)
    written(tmp_path / "r2", {(1, "a"): 1.0, (1, "c"): 1.0}, factors={"arm": ["a", "c"]})
    runs = [tmp_path / name for name in ("r1", "r2")]
    found = {each.name: each.unplanned for each in across_runs.read(runs).series}
    assert found == {"tiny · a": False, "tiny · c": False, "tiny · b": True}
    measured = across_runs.read(runs, metrics=["extra"]).series  # no plan defines it, and every trial has it
    assert {each.name: each.unplanned for each in measured} == found


def test_a_directory_that_is_named_like_a_column_and_its_value_gives_its_points(tmp_path: Path) -> None:
    runs = [written(tmp_path / "study=nightly" / "entry=1" / name, VALUES) for name in ("r1", "r2")]
    (tmp_path / "plain").mkdir()
    plain = [written(tmp_path / "plain" / name, VALUES) for name in ("r1", "r2")]
    found, others = across_runs.read(runs), across_runs.read(plain)
    assert [each.name for each in found.series] == [each.name for each in others.series] == ["tiny · a", "tiny · b"]
    assert [len(each.points) for each in found.series] == [2, 2]


def test_a_cell_that_failed_an_expectation_gives_no_points(tmp_path: Path) -> None:
    cells = [Cell(name="all", levels={"load": "low"})]
    expected = RangeExpectation(factor="load", level="low", metric="extra", low=None, high=9.0, text="extra: ..9")
    slow = VALUES | {(1, "a"): 6.0}  # a mean of the baseline arm of 10, and 5 in the others
    for name, values in (("r1", VALUES), ("r2", slow), ("r3", VALUES)):
        written(tmp_path / name, values, cells=cells, expectations=[expected])
    for names, kept, newest in (("123", ["r1", "r3"], "r3"), ("12", ["r1"], "r2")):
        found = across_runs.read([tmp_path / f"r{each}" for each in names])
        assert found.left_out == {"r2": "without the cells that failed an expectation: `all`"}
        for series in found.series:
            assert [point.run for point in series.points] == kept
            assert (series.newest, series.unmet) == (newest, newest == "r2")


def test_a_run_without_a_valid_trial_failed_no_expectation(tmp_path: Path) -> None:
    expecting = {
        "cells": [Cell(name="all", levels={"load": "low"})],
        "expectations": [RangeExpectation(factor="load", level="low", metric="extra", low=None, high=9.0, text="")],
    }
    written(tmp_path / "r1", VALUES, **expecting)
    written(
        tmp_path / "r2", VALUES, change=lambda facts: {**facts, "valid": False, "invalid_reason": "lost"}, **expecting
    )
    found = across_runs.read([tmp_path / "r1", tmp_path / "r2"])
    assert found.left_out == {"r2": "no trial counts towards estimates"}
    assert [(each.newest, each.unmet) for each in found.series] == [("r2", False)] * 2


def test_a_series_that_the_newest_run_does_not_plan_is_not_undecided_for_it(tmp_path: Path) -> None:
    cells = [Cell(name="all", levels={"load": "low"})]
    expected = RangeExpectation(factor="load", level="low", metric="extra", low=None, high=0.0, text="")
    written(tmp_path / "r1", VALUES, cells=cells)
    written(tmp_path / "r2", {(1, "a"): 1.0}, cells=cells, expectations=[expected], factors={"arm": ["a", "c"]})
    found = {
        each.name: (each.newest, each.unmet) for each in across_runs.read([tmp_path / "r1", tmp_path / "r2"]).series
    }
    assert found["tiny · a"] == ("r2", True)
    assert found["tiny · b"] == ("", False)


def test_a_cut_last_line_of_the_journal_is_no_harm(tmp_path: Path) -> None:
    written(tmp_path / "r1", VALUES)
    with (tmp_path / "r1" / "journal.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"sequence": 99, "ti')
    assert len(across_runs.read([tmp_path / "r1"]).series) == 2


def test_other_metrics_are_read_when_asked_for(tmp_path: Path) -> None:
    found = across_runs.read([written(tmp_path / "r1", VALUES)], metrics=["extra"])
    assert [(each.metric, each.points[0].estimate) for each in found.series] == [
        ("extra", pytest.approx(4)),
        ("extra", pytest.approx(4)),
    ]


def test_trials_that_share_what_series_are_by_make_one_point(tmp_path: Path) -> None:
    (found,) = across_runs.read([written(tmp_path / "r1", VALUES)], by=["cell"]).series
    assert (found.name, found.points[0].n) == ("tiny", 4)
    assert found.points[0].estimate == pytest.approx(2)  # of the arms' means 2 and 2
    assert found.points[0].standard_error == pytest.approx(math.log(4) / 2 / 2)  # half of the one arm's


def test_points_of_one_series_are_means_of_the_same_cells_and_arms(tmp_path: Path) -> None:
    """A run that lacks one would jump, for no cause in what ran."""
    without = {at: value for at, value in VALUES.items() if at[1] == "a"}
    runs = [written(tmp_path / f"r{number}", values) for number, values in enumerate([VALUES, without, VALUES])]
    found = across_runs.read(runs, by=["cell"])
    assert [point.run for point in found.series[0].points] == ["r0", "r2"]
    assert found.left_out == {"r1": across_runs.INCOMPLETE}
    newest = across_runs.read(runs[:2], by=["cell"])
    assert [point.run for point in newest.series[0].points] == ["r0"]
    assert newest.series[0].newest == "r1"
    assert across_runs.read(runs).left_out == {}


def test_a_level_that_the_newest_plan_no_longer_has_is_not_averaged(tmp_path: Path) -> None:
    runs = [written(tmp_path / name, VALUES) for name in ("r0", "r1")]
    plan = json.loads((runs[1] / "plan.json").read_text(encoding="utf-8"))
    plan["factors"][plan["arm"]].remove("b")
    (runs[1] / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    (found,) = across_runs.read(runs, by=["cell"]).series
    assert [point.n for point in found.points] == [2, 2]


def test_a_factor_tells_series_apart_too(tmp_path: Path) -> None:
    found = across_runs.read([written(tmp_path / "r1", VALUES)], by=["arm"]).series
    assert [each.name for each in found] == ["tiny · a", "tiny · b"]
    with pytest.raises(InputError, match="unknown factor `disk`; expected one of `arm`, `cell`"):
        across_runs.read([tmp_path / "r1"], by=["disk"])


def test_values_that_are_not_positive_are_averaged_as_they_are(tmp_path: Path) -> None:
    found = across_runs.read([written(tmp_path / "r1", {(1, "a"): -1.0, (2, "a"): 5.0})])
    (point,) = found.series[0].points
    assert (point.estimate, point.standard_error) == (2, pytest.approx(3))


def test_one_value_without_a_logarithm_puts_the_whole_series_into_units(tmp_path: Path) -> None:
    """A mean in units beside geometric means, with errors of either kind, would be two scales in one series."""
    runs = [
        written(tmp_path / "r1", {(1, "a"): 1.0, (2, "a"): 4.0}),
        written(tmp_path / "r2", {(1, "a"): 0.0, (2, "a"): 6.0}),
    ]
    (series,) = across_runs.read(runs).series
    assert [point.estimate for point in series.points] == [2.5, 3.0]
    assert [point.standard_error for point in series.points] == [pytest.approx(1.5), pytest.approx(3.0)]
    assert series.in_units
    assert not series.positive
    (alone,) = across_runs.read(runs[:1]).series
    assert alone.positive
    assert alone.points[0].estimate == pytest.approx(2)


def test_what_ran_is_known_of_each_point(tmp_path: Path) -> None:
    def change(facts: dict) -> dict:
        return {**facts, "subject": {"kernel": "6.1"}, "system_facts": {"version": "3"}, "options": {"cache": "8"}}

    found = across_runs.read([written(tmp_path / "r1", VALUES, change=change)])
    assert found.series[0].points[0].facts == {"kernel": "6.1", "version": "3", "option cache": "8"}


def test_a_damaged_trial_is_named(tmp_path: Path) -> None:
    directory = written(tmp_path / "r1", VALUES)
    next(directory.glob("trials/*/trial.json")).write_text("{", encoding="utf-8")
    with pytest.raises(RecordError, match="cannot read a record"):
        across_runs.read([directory])


@pytest.mark.parametrize("file", ["plan.json", "trials/all.b02.a/trial.json"])
def test_an_empty_file_is_named_and_no_trial_less(tmp_path: Path, file: str) -> None:
    directory = written(tmp_path / "r1", VALUES)
    assert (directory / file).stat().st_size > 0
    (directory / file).write_text("", encoding="utf-8")
    with pytest.raises(RecordError, match=f"cannot read {re.escape(str(directory / file))}: the file is empty"):
        across_runs.read([written(tmp_path / "r0", VALUES), directory])


def test_a_journal_with_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    journal = written(tmp_path / "r1", VALUES) / "journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    number = next(place for place, line in enumerate(lines) if "trial_finished" in line)
    journal.write_text("".join([*lines[:number], "{\n", *lines[number + 1 :]]), encoding="utf-8")
    with pytest.raises(RecordError, match=f"{re.escape(str(journal))}: a line before number {number + 1} is damaged"):
        across_runs.read([tmp_path / "r1"])


def test_a_plan_without_its_design_is_named_with_the_field(tmp_path: Path) -> None:
    path = written(tmp_path / "r1", VALUES) / "plan.json"
    plan = json.loads(path.read_text(encoding="utf-8"))
    del plan["design"]
    path.write_text(json.dumps(plan), encoding="utf-8")
    with pytest.raises(RecordError, match=rf"^cannot read {re.escape(str(path))}: design: [^\n]*$"):
        across_runs.read([tmp_path / "r1"])


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a run or a directory of runs"):
        across_runs.record_directories([tmp_path])


def test_a_run_counts_once_however_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = written(tmp_path / "runs" / "r1", VALUES)
    monkeypatch.chdir(tmp_path)
    named = [Path("runs"), tmp_path / "runs", run, Path("runs/../runs/r1")]
    assert across_runs.record_directories(named) == [Path("runs/r1")]


def test_a_size_is_a_series_of_its_own(tmp_path: Path) -> None:
    small, whole = written(tmp_path / "r1", VALUES), written(tmp_path / "r2", VALUES)
    plan = json.loads((small / "plan.json").read_text(encoding="utf-8"))
    (small / "plan.json").write_text(json.dumps({**plan, "size": "ci"}), encoding="utf-8")
    found = across_runs.read([small, whole])
    assert {each.name for each in found.series} == {"tiny (ci) · a", "tiny (ci) · b", "tiny · a", "tiny · b"}


def test_diagnostic_trials_give_no_points_and_void_no_block(tmp_path: Path) -> None:
    directory = written(tmp_path / "r1", VALUES, finished=False)
    writer = record.resume(directory)
    for arm, valid in (("a", True), ("b", False)):
        probed = planned(1, arm).model_copy(update={"id": f"all.d01.{arm}", "diagnostic": True})
        writer.begin(probed.id)
        writer.commit(trial_record(probed, valid=valid).model_copy(update={"scalars": {"elapsed_s": 1e9}}))
    writer.append(RunFinished())
    writer.close()
    plain = across_runs.read([written(tmp_path / "r2", VALUES)])
    found = across_runs.read([directory])
    shown = [[(point.estimate, point.n, point.standard_error) for point in each.points] for each in found.series]
    assert shown == [
        [(point.estimate, point.n, point.standard_error) for point in each.points] for each in plain.series
    ]


def test_a_record_with_a_link_is_refused(tmp_path: Path) -> None:
    run = written(tmp_path / "r1", VALUES)
    trial = next((run / "trials").iterdir())
    (trial / "trial.json").rename(tmp_path / "outside")
    (trial / "trial.json").symlink_to(tmp_path / "outside")
    with pytest.raises(RecordError, match="is a symbolic link"):
        across_runs.read([run])


@pytest.mark.parametrize("name", ["../../r2/trials/all.b01.a", "/r2"])
def test_a_journal_that_names_a_trial_of_another_record_is_refused(tmp_path: Path, name: str) -> None:
    run, _other = written(tmp_path / "r1", VALUES), written(tmp_path / "r2", VALUES)
    journal = run / "journal.jsonl"
    text = journal.read_text(encoding="utf-8").replace('"trial":"all.b01.a"', f'"trial":"{name}"')
    journal.write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match="expected a valid file name"):
        across_runs.read([run])


@pytest.mark.parametrize("file", ["plan.json", "trials/all.b01.a/trial.json"])
def test_a_record_of_another_version_is_refused(tmp_path: Path, file: str) -> None:
    path = written(tmp_path / "r1", VALUES) / file
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format_version": 99}))
    with pytest.raises(RecordError, match=r"found 99 at format_version") as refused:
        across_runs.read([tmp_path / "r1"])
    assert str(path) in str(refused.value)
    assert "newer one" in refused.value.hint
