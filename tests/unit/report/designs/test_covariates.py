"""Covariates in every form of a report: text, summary, page, R, and checked by `verify`."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import shutil
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from support.records import RESOLVED, planned, tiny_plan, trial_record
from support.skips import require

from fairtrial import verify
from fairtrial.analyse.designs import detecting
from fairtrial.analyse.designs.covariates import by_class
from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.models import Comparison
from fairtrial.metrics.covariates import FILE
from fairtrial.protocol.generated import Covariates
from fairtrial.record import Record, create, read
from fairtrial.record.events import RunFinished
from fairtrial.report import document, page, r_script, text
from fairtrial.report.analysing import analysed
from fairtrial.report.designs import covariates, interactions
from fairtrial.report.scene import Scene
from fairtrial.report.text import console, summary
from fairtrial.workloads import workload_of
from fairtrial.workloads.command import USAGE
from fairtrial.workloads.command.runs import OUTPUT

BLOCKS = 12


@pytest.fixture(scope="module", params=[False, True], ids=["beside", "deciding"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A command's run: arm `b` takes 3 % longer, and the calibration loop sees most of the noise."""
    base = tiny_plan()
    definitions = dict(workload_of(RESOLVED.workload).metrics())
    chosen = ["calibration_loop_ns", "time_since_boot_s", "processor_frequency_hz"]
    named = {"covariates": chosen, "adjust": request.param}
    metrics = base.metrics.model_copy(update={"definitions": definitions, "secondary": ["user_s"], **named})
    trials = [planned(block, arm) for block in range(1, BLOCKS + 1) for arm in "ab"]
    design = base.design.model_copy(update={"blocks": BLOCKS})
    plan = base.model_copy(update={"metrics": metrics, "trials": trials, "design": design})
    random = np.random.default_rng(5)
    with closing(create(tmp_path_factory.mktemp("with") / "run", plan=plan, sources={"study.yaml": ""})) as writer:
        for trial in trials:
            slow, rest = random.normal(0, [0.03, 0.004])
            scalars = dict.fromkeys(definitions, float(np.exp(slow + rest) * (1.03 if trial.arm == "b" else 1.0)))
            measured = Covariates(
                calibration_loop_ns=round(3e7 * np.exp(slow)),
                time_since_boot_s=100.0 + trial.position,
                memory_fragmentation=0.25,
                processor_frequency_hz=None,
            )
            raw_files = writer.begin(trial.id)
            (raw_files / USAGE).write_text(json.dumps(scalars), encoding="utf-8")
            (raw_files / FILE).write_text(measured.model_dump_json(), encoding="utf-8")
            (raw_files / OUTPUT).parent.mkdir(exist_ok=True)
            (raw_files / OUTPUT).touch()
            known = {name: float(each) for name, each in measured.model_dump(exclude_none=True).items()}
            writer.commit(trial_record(trial).model_copy(update={"scalars": {**scalars, **known}}))
        writer.append(RunFinished())
        record: Record = writer.record()
    return Scene(record=record, analysis=analysed(record))


def compared(scene: Scene) -> Comparison:
    (comparison,) = scene.analysis.cells[0].comparisons["elapsed_s"]
    return comparison


def test_text_and_page_say_both_estimates_and_what_each_covariate_did(scene: Scene) -> None:
    said, shown = text.render(scene), page.render(scene, ratios=[], cells=[])
    assert "Table 1h. Adjusted for covariates." in said
    assert "Table 2h" not in said
    assert "<summary>Adjusted for covariates</summary>" in shown
    adjusted = compared(scene).covariates
    assert adjusted is not None
    columns = covariates.columns(scene.tables[0].rows[0], confidence=0.95)
    assert columns["width"] == f"{adjusted.width:.2f}"
    assert columns["adjusted"] == f"{adjusted.ratio:.3f}"
    for part in (*columns.values(), "processor frequency (left out: missing in some trials)"):
        assert part in said
        assert html.escape(part) in shown


def test_a_ratio_has_as_many_decimals_as_its_interval(scene: Scene) -> None:
    (row,) = scene.tables[0].rows
    assert row.comparison.covariates is not None
    narrow = {"ratio": 1.00009, "low": 1.00008, "high": 1.0001}
    narrow |= {f"plain_{name}": value for name, value in narrow.items()}
    found = row.comparison.covariates.model_copy(update=narrow)
    other = replace(row, comparison=row.comparison.model_copy(update={"covariates": found}))
    columns = covariates.columns(other, confidence=0.95)
    assert list(columns.values())[:4] == ["1.00009", "1.00008 – 1.00010"] * 2


def test_the_summary_says_how_much_it_narrows_and_who_decides(scene: Scene) -> None:
    adjusted = compared(scene).covariates
    assert adjusted is not None
    (sentence,) = (each for each in summary.sentences(scene.analysis) if each.startswith("Adjusted for"))
    assert f"intervals are {adjusted.width:.2f} times as wide: as " in sentence
    decides = "adjusted" if adjusted.decides else "plain"
    assert sentence.endswith(f"Verdicts are of the {decides} estimates, as the study chose before the run.")


def test_the_terminal_says_whose_verdicts_it_gives(scene: Scene) -> None:
    shown = Console(file=io.StringIO(), width=500, color_system=None)
    with shown.capture() as captured:
        shown.print(console.render(scene.analysis))
    (sentence,) = covariates.sentences(summary.judged_tables(scene.analysis))
    assert sentence in captured.get()


def test_the_summary_does_not_call_adjusted_what_is_not(scene: Scene) -> None:
    (table, *_) = scene.tables
    (row,) = table.rows
    assert row.comparison.covariates is not None
    without = row.comparison.covariates.model_copy(update={"width": None, "reason": "few_blocks"})
    other = replace(row, comparison=row.comparison.model_copy(update={"covariates": without}))
    (sentence,) = covariates.sentences([replace(table, rows=(row, other))])
    assert ("1 comparison could not be adjusted" in sentence) is row.comparison.covariates.decides


def test_values_known_by_class_are_said_to_be_plain_and_no_script_adjusts_them(scene: Scene) -> None:
    (table, *_) = scene.tables
    (row,) = table.rows
    assert row.comparison.covariates is not None
    plain = by_class(row.comparison.covariates, row.comparison.ratio)
    other = replace(row, comparison=row.comparison.model_copy(update={"covariates": plain}))
    (sentence,) = covariates.sentences([replace(table, rows=(other,))])
    assert sentence.endswith("Verdicts are of the plain estimates.")
    assert covariates.columns(other, confidence=0.95)["adjusted"] == "none: values are known by class"
    (cell,) = scene.analysis.cells
    comparisons = {**cell.comparisons, "elapsed_s": (other.comparison,)}
    cells = (cell.model_copy(update={"comparisons": comparisons}),)
    said = r_script.render(scene.analysis.model_copy(update={"cells": cells}))
    assert f'by_class <- c("elapsed_s {cell.cell} b")' in said


def test_verify_recomputes_covariates_and_estimates(scene: Scene, tmp_path: Path) -> None:
    directory = shutil.copytree(scene.record.directory, tmp_path / "run")
    path = directory / "report" / verify.REPORT
    path.parent.mkdir()
    path.write_text(document.render(scene), encoding="utf-8")
    assert verify.recompute(read(directory)) == []
    trial = scene.record.trials[0].trial.id
    raw = directory / "trials" / trial / FILE
    changed = Covariates.model_validate_json(raw.read_bytes()).model_copy(update={"calibration_loop_ns": 1})
    raw.write_text(changed.model_dump_json(), encoding="utf-8")
    found = verify.recompute(read(directory))
    assert any(each.startswith(f"trials/{trial}/trial.json: calibration_loop_ns is") for each in found)
    assert any("covariates.width is" in each for each in found)


def test_what_more_blocks_would_show_follows_from_the_adjusted_interval(scene: Scene) -> None:
    adjusted = compared(scene).covariates
    (found,) = detecting.adjusted(scene.analysis)
    assert adjusted is not None
    assert (found.of[:2], found.taken) == (("elapsed_s", "all"), BLOCKS - 1 - (adjusted.df or 0))
    reach = math.log(adjusted.high or 0) - math.log(adjusted.low or 0)
    noise = reach / 2 / t_tests.quantile(0.975, adjusted.df or 0) * math.sqrt(BLOCKS)
    assert found.noise == pytest.approx(noise, rel=0.2)  # but for what the covariates' own means add
    assert found.at(4, alpha=0.05) is None
    assert (found.at(40, alpha=0.05) or 1) < (found.at(10, alpha=0.05) or 0) / 2


def test_tests_of_interactions_say_that_they_are_not_adjusted(scene: Scene) -> None:
    assert interactions.PLAIN in interactions.notes(scene.analysis)


@pytest.mark.servers
def test_r_adjusts_in_the_same_way(scene: Scene, tmp_path: Path) -> None:
    require("Rscript")
    path = tmp_path / "raw_data.r"
    path.write_text(r_script.render(scene.analysis), encoding="utf-8")
    ran = subprocess.run(["Rscript", "--vanilla", str(path)], capture_output=True, text=True, check=True, timeout=120)
    (row,) = csv.DictReader(io.StringIO(ran.stdout.partition("\n\n")[2]), delimiter="\t")
    comparison = compared(scene)
    adjusted = comparison.covariates
    assert adjusted is not None
    expected = {
        "adjusted_ratio": adjusted.ratio,
        "adjusted_low": adjusted.low,
        "adjusted_high": adjusted.high,
        "adjusted_df": adjusted.df,
        "adjusted_p": comparison.p if adjusted.decides else adjusted.p,
        "width": adjusted.width,
        **({"p_in_family": comparison.p_adjusted} if adjusted.decides else {}),
    }
    for name, value in expected.items():
        assert float(row[name]) == pytest.approx(value, rel=1e-6), name
