"""Programs linked in several orders, in every form of a report: text, page, figure, R, and checked by `verify`."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from contextlib import closing
from pathlib import Path

import altair as alt
import pytest
from rich.console import Console
from support.records import RESOLVED, planned, tiny_plan, trial_record

from fairtrial import verify
from fairtrial.analyse.designs import detecting
from fairtrial.analyse.inference import sensitivity
from fairtrial.plan.layouts import order_of
from fairtrial.record import create, read
from fairtrial.record.events import RunFinished
from fairtrial.report import document, page, r_script, raw, text
from fairtrial.report.analysing import analysed
from fairtrial.report.figures import hosts as figures
from fairtrial.report.scene import Scene
from fairtrial.report.text import console
from fairtrial.study.builds import Builds
from fairtrial.workloads import workload_of
from fairtrial.workloads.command import USAGE
from fairtrial.workloads.command.runs import OUTPUT

BLOCKS, ORDERS = 12, 6


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A command's run: arm `b` takes 4 to 9 % longer, layout by layout."""
    base = tiny_plan()
    builds = Builds(program="/p", objects={"a": ["/a/*.o"], "b": ["/b/*.o"]}, link="cc -o {output} {objects}")
    definitions = dict(workload_of(RESOLVED.workload).metrics())
    plan = base.model_copy(
        update={
            "builds": builds.model_copy(update={"link_orders": ORDERS}),
            "metrics": base.metrics.model_copy(update={"definitions": definitions}),
            "trials": [planned(block, arm) for block in range(1, BLOCKS + 1) for arm in "ab"],
            "design": base.design.model_copy(update={"blocks": BLOCKS}),
        }
    )
    with closing(create(tmp_path_factory.mktemp("linked") / "run", plan=plan, sources={"study.yaml": ""})) as writer:
        for trial in plan.trials:
            order = order_of(plan, trial)
            slower = 1.03 + order / 100 if trial.arm == "b" else 1.0
            scalars = dict.fromkeys(definitions, slower * (1 + trial.position * 37 % 11 / 5000))
            raw_files = writer.begin(trial.id)
            (raw_files / USAGE).write_text(json.dumps(scalars), encoding="utf-8")
            (raw_files / OUTPUT).parent.mkdir(exist_ok=True)
            (raw_files / OUTPUT).touch()
            writer.commit(trial_record(trial).model_copy(update={"scalars": scalars, "layout": f"order-{order:04d}"}))
        writer.append(RunFinished())
        record = writer.record()
    return Scene(record=record, analysis=analysed(record))


def test_text_and_page_say_what_holds_for_layouts_like_these(scene: Scene) -> None:
    said, shown = text.render(scene), page.render(scene, ratios=[], cells=[])
    assert "Table 1j. Layouts like these." in said
    assert "order-0006" in said
    assert "<summary>Layouts like these</summary>" in shown
    assert "Verdicts hold for the 6 layouts that each program was linked in." in shown
    assert "Hosts like these" not in said + shown


def test_the_terminal_says_for_which_layouts_verdicts_hold(scene: Scene) -> None:
    shown = Console(file=io.StringIO(), width=500, color_system=None)
    with shown.capture() as captured:
        shown.print(console.render(scene.analysis))
    assert "Verdicts hold for the 6 layouts that each program was linked in." in captured.get()


def test_the_raw_data_name_each_trials_layout(scene: Scene) -> None:
    header, first, *_ = csv.reader(raw.csv(scene.record).splitlines())
    assert dict(zip(header, first, strict=True))["layout"] == scene.record.trials[0].layout
    assert "host" not in header


def test_what_more_layouts_would_show_follows_from_how_much_these_differ(scene: Scene) -> None:
    (found,) = detecting.layouts(scene.analysis)
    over = scene.analysis.cells[0].comparisons["elapsed_s"][0].over_layouts
    assert over is not None
    assert over.heterogeneity is not None
    assert found.between == over.heterogeneity.tau
    few, many = (found.at(1000, alpha=0.05, layouts=count) or 0 for count in (5, 20))
    assert few == pytest.approx(math.expm1(sensitivity.shift(4, alpha=0.05) * found.between / math.sqrt(5)), rel=0.01)
    assert many < few / 2
    assert found.at(1000, alpha=0.05, layouts=1) is None


def test_the_figure_has_each_layout(scene: Scene) -> None:
    (cell,) = scene.analysis.cells
    (figure,) = (each for table in scene.tables for each in figures.by_host(scene, cell, table))
    assert (figure.name, figure.title) == ("layouts-elapsed_s", "wall time by layout")
    alt.LayerChart.from_dict(figure.spec, validate=True)
    rows = max(figure.spec["datasets"].values(), key=len)
    names = [*(f"order-{number:04d}" for number in range(1, 1 + ORDERS)), "layouts like these", "a further layout"]
    assert [row["host"] for row in rows] == names
    assert "host" not in figure.note


def test_verify_recomputes_what_layouts_say_and_r_has_them(scene: Scene, tmp_path: Path) -> None:
    directory = shutil.copytree(scene.record.directory, tmp_path / "run")
    path = directory / "report" / verify.REPORT
    path.parent.mkdir()
    path.write_text(document.render(scene), encoding="utf-8")
    assert verify.recompute(read(directory)) == []
    report = json.loads(path.read_bytes())
    report["analysis"]["cells"][0]["comparisons"]["elapsed_s"][0]["over_layouts"]["share"] = 0.5
    path.write_text(json.dumps(report), encoding="utf-8")
    assert any("over_layouts.share is 0.5 but recomputed" in each for each in verify.recompute(read(directory)))
    assert '"order-0001"' in r_script.render(scene.analysis)
