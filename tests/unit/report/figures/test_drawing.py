"""Figures as specifications: valid for Vega-Lite, all rows referred to, the still ones without what a pointer needs."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import altair as alt
import jsonschema
import pytest

from fairtrial.analyse.models import Analysis, Guardrail, Interval
from fairtrial.errors import PlaceError
from fairtrial.record import Record
from fairtrial.report import page, replaced
from fairtrial.report.figures import series, svg
from fairtrial.report.figures.verdicts import CellFigures, Drawing, Figure, arm_colour, arm_dash, arm_shape, forest
from fairtrial.report.scene import Scene
from fairtrial.report.tables import metric_tables
from fairtrial.study.resolved import Section
from fairtrial.workloads import WORKLOADS

NUMBER = re.compile(r"-?\d+\.\d+")


@pytest.fixture(scope="module")
def scene(record: Record, analysis: Analysis) -> Scene:
    return Scene(record=record, analysis=analysis)


@pytest.fixture(scope="module")
def cells(scene: Scene) -> list[CellFigures]:
    return list(page.cell_figures(scene))


@pytest.fixture(scope="module")
def drawn(scene: Scene, cells: list[CellFigures]) -> list[Figure]:
    return page.ratio_figures(scene) + [figure for cell in cells for figure in (*cell.figures, *cell.telemetry)]


def data_names(part: Any) -> Iterator[str]:
    """Every dataset that a specification refers to."""
    if isinstance(part, dict):
        if isinstance(part.get("data"), dict) and "name" in part["data"]:
            yield part["data"]["name"]
        for below in part.values():
            yield from data_names(below)
    elif isinstance(part, list):
        for below in part:
            yield from data_names(below)


def fields(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("field"), str):
            yield part["field"]
        for below in part.values():
            yield from fields(below)
    elif isinstance(part, list):
        for below in part:
            yield from fields(below)


def test_there_are_figures_of_every_kind(drawn: list[Figure]) -> None:
    kinds = {figure.name.partition("-")[0] for figure in drawn}
    assert kinds == {"ratio", "trials", "timeline", "latency", "telemetry"}


def test_every_specification_is_valid(drawn: list[Figure]) -> None:
    """A report does not ask Altair to check them, because that takes longer than all else."""
    for figure in drawn:
        alt.LayerChart.from_dict(figure.spec, validate=True)


def test_a_specification_that_is_not_valid_would_be_refused(drawn: list[Figure]) -> None:
    broken = json.loads(json.dumps(drawn[0].spec))
    broken["layer"][0]["mark"] = {"type": "cloud"}
    with pytest.raises(jsonschema.ValidationError):
        alt.LayerChart.from_dict(broken, validate=True)


def test_every_dataset_is_drawn_and_every_reference_has_one(drawn: list[Figure]) -> None:
    for figure in drawn:
        assert set(data_names(figure.spec)) == set(figure.spec["datasets"]), figure.name
        assert all(figure.spec["datasets"].values()), "a layer without rows makes Vega warn"


def test_every_field_of_a_layer_is_in_its_rows(drawn: list[Figure]) -> None:
    for figure in drawn:
        for layer in figure.spec["layer"]:
            rows = figure.spec["datasets"][layer.get("data", figure.spec.get("data"))["name"]]
            for field in fields(layer["encoding"]):
                assert field in rows[0], (figure.name, field)


def test_numbers_are_finite_and_where_there_are_many_as_short_as_a_pixel_needs(drawn: list[Figure]) -> None:
    for figure in drawn:
        assert json.dumps(figure.spec, allow_nan=False)
        many = [rows for rows in figure.spec["datasets"].values() if len(rows) > 20]
        text = json.dumps(many)
        digits = [len(number.replace(".", "").lstrip("-0")) for number in NUMBER.findall(text)]
        assert max(digits, default=0) <= 7, figure.name


def test_layers_of_a_figure_agree_on_the_legend(drawn: list[Figure]) -> None:
    for figure in drawn:
        coloured = [layer["encoding"]["color"] for layer in figure.spec["layer"] if "color" in layer["encoding"]]
        assert len({json.dumps(colour.get("legend")) for colour in coloured}) <= 1, figure.name


def test_arms_have_the_same_colour_everywhere(scene: Scene, drawn: list[Figure]) -> None:
    expected = list(scene.colours.values())
    found = [
        layer["encoding"]["color"]["scale"]["range"]
        for figure in drawn
        for layer in figure.spec["layer"]
        if "color" in layer["encoding"]
    ]
    assert found
    assert all(colours == expected for colours in found)
    assert len(set(expected)) == len(expected)


def test_equivalence_is_drawn_with_the_interval_of_its_own_tests(scene: Scene) -> None:
    low, high = scene.analysis.cells
    (compared,) = low.comparisons["throughput_tpm"]
    within = Interval(estimate=1.0, low=0.995, high=1.005)
    told = compared.model_copy(update={"verdict": "equivalent", "equivalence_interval": within})
    equal = low.model_copy(update={"comparisons": low.comparisons | {"throughput_tpm": (told,)}})
    analysis = scene.analysis.model_copy(update={"cells": (equal, high)})
    figure = forest(Scene(record=scene.record, analysis=analysis), metric_tables(analysis)[0])
    first, second = next(rows for rows in figure.spec["datasets"].values() if "printed" in rows[0])
    (other,) = high.comparisons["throughput_tpm"]
    assert (first["low"], first["high"], first["confidence"]) == (0.995, 1.005, "90 %")
    assert (second["low"], second["confidence"]) == (pytest.approx(other.ratio.low, rel=1e-4), "95 %")
    assert figure.note.startswith("Point and 95 % interval (90 % where equivalence is claimed); ")
    assert forest(scene, metric_tables(scene.analysis)[0]).note.startswith("Point and 95 % interval; ")


def test_a_margin_that_judges_no_row_is_no_band(scene: Scene) -> None:
    def bands(analysis: Analysis) -> list[Any]:
        figure = forest(Scene(record=scene.record, analysis=analysis), metric_tables(analysis)[0])
        return [layer for layer in figure.spec["layer"] if layer["mark"]["type"] == "rect"]

    cells = [
        cell.model_copy(update={"comparisons": {"throughput_tpm": (each.model_copy(update={"margin": 0.0002}),)}})
        for cell in scene.analysis.cells
        for each in cell.comparisons["throughput_tpm"]
    ]
    assert len(bands(scene.analysis)) == 1
    assert bands(scene.analysis.model_copy(update={"cells": tuple(cells)})) == []


def test_a_guardrails_figure_has_the_verdict_and_the_margin_of_its_table(scene: Scene) -> None:
    (table,) = [each for each in metric_tables(scene.analysis) if each.role == "guardrail"]
    rail = Guardrail(margin=0.1, outcome="kept", bound=1.064, difference_bound=None, p_kept=0.01, p_breached=1.0)
    update = {"verdict": "slower", "guardrail": rail}
    rows = tuple(replace(row, comparison=row.comparison.model_copy(update=update)) for row in table.rows)
    figure = forest(scene, replace(table, rows=rows))
    datasets = list(figure.spec["datasets"].values())
    assert {row["verdict"] for each in datasets for row in each if "verdict" in row} == {"kept (at worst 1.064)"}
    assert [{"low": 1.0, "high": 1.1}] in datasets
    assert figure.note.endswith("; the grey band is the guardrail's margin, 10 %.")


def colours_of(scene: Scene, arms: int) -> dict[str, str]:
    """With so many arms besides the baseline."""
    many = scene.analysis.model_copy(update={"levels": ("base", *(f"arm{index}" for index in range(arms)))})
    return Scene(record=scene.record, analysis=many).colours


def test_twelve_arms_have_colours_of_their_own(scene: Scene) -> None:
    colours = colours_of(scene, 12)
    assert len(set(colours.values())) == 13
    assert arm_dash(colours) == arm_shape(colours) == {}
    assert arm_colour(colours).to_dict()["legend"]["symbolType"] == "circle"


def test_more_arms_than_colours_go_round_with_other_marks_and_never_take_the_baselines(scene: Scene) -> None:
    colours = colours_of(scene, 14)
    assert list(colours.values()).count(colours["base"]) == 1
    assert colours["arm0"] == colours["arm12"] != colours["arm1"]
    for channel, encoding in (("strokeDash", arm_dash(colours)), ("shape", arm_shape(colours))):
        scale = encoding[channel].to_dict()["scale"]
        marks = dict(zip(scale["domain"], scale["range"], strict=True))
        assert list(marks) == list(colours)
        assert marks["base"] == marks["arm0"] == marks["arm1"] != marks["arm12"]
        assert encoding[channel].to_dict()["legend"] == arm_colour(colours).to_dict()["legend"]


def test_a_legend_that_one_line_would_cut_off_has_columns() -> None:
    short, long = (
        {f"{arm}{index}": f"#{index:06x}" for index in range(6)} for arm in ("arm", "a-long-name-of-an-arm-")
    )
    assert "columns" not in arm_colour(short).to_dict()["legend"]
    assert arm_colour(long).to_dict()["legend"]["columns"] == 3


def test_rows_of_a_drawing_have_names_of_their_own() -> None:
    drawing = Drawing()
    first, second = drawing.rows([{"x": 1}]), drawing.rows([{"x": 2}, {"x": 3}])
    assert first.name != second.name
    chart = alt.layer(alt.Chart(first).mark_point(), alt.Chart(second).mark_point())
    spec = drawing.finished(chart, height=77)
    assert spec["datasets"] == {first.name: [{"x": 1}], second.name: [{"x": 2}, {"x": 3}]}
    assert (spec["width"], spec["height"]) == ("container", 77)


def test_two_drawings_do_not_share_rows() -> None:
    one, other = Drawing(), Drawing()
    one.rows([{"x": 1}])
    name = other.rows([{"x": 2}]).name
    assert other.finished(alt.layer(alt.Chart(alt.NamedData(name=name)).mark_point()))["datasets"] == {name: [{"x": 2}]}


def test_a_colour_without_a_legend_says_so(scene: Scene) -> None:
    assert arm_colour(scene.colours, legend=False).to_dict()["legend"] is None
    assert arm_colour(scene.colours).to_dict()["legend"]["symbolOpacity"] == 1


def invisible(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [layer for layer in spec["layer"] if layer["mark"].get("opacity") == 0]


def test_a_still_figure_has_no_marks_that_cannot_be_seen_and_nothing_that_waits_for_a_pointer(
    drawn: list[Figure],
) -> None:
    pointed = [figure for figure in drawn if invisible(figure.spec)]
    assert pointed, "otherwise nothing is shown here"
    for figure in drawn:
        still = svg.still(figure.spec)
        assert invisible(still) == []
        assert len(still["layer"]) == len(figure.spec["layer"]) - len(invisible(figure.spec))
        assert "params" not in still
        assert not re.search(r'"(condition|tooltip|param)"', json.dumps(still["layer"]))
        assert still["datasets"] is figure.spec["datasets"]
        alt.LayerChart.from_dict(still, validate=True)


def test_making_it_still_leaves_the_pages_figure_alone(drawn: list[Figure]) -> None:
    for figure in drawn:
        before = json.dumps(figure.spec)
        svg.still(figure.spec)
        assert json.dumps(figure.spec) == before


def test_a_lines_opacity_without_a_pointer_is_the_one_of_lines_that_are_not_pointed_at(drawn: list[Figure]) -> None:
    (timeline, *_) = [figure for figure in drawn if figure.name == "timeline"]
    opacities = [
        layer["encoding"]["opacity"] for layer in svg.still(timeline.spec)["layer"] if "opacity" in layer["encoding"]
    ]
    assert opacities == [{"value": 0.55}]


@pytest.mark.parametrize(
    ("workload", "unit"),
    [
        ("tpcc", "transactions/s"),  # new orders and all others, whatever the throughput is counted in
        ("hammerdb", "transactions/s"),
        ("fio", "accesses/s"),
        ("locks", "acquisitions/s"),
        ("of a plugin that is not here", "transactions/s"),
    ],
)
def test_a_timelines_axis_names_what_its_workload_counts(record: Record, workload: str, unit: str) -> None:
    parameters = dict(WORKLOADS[workload].example) if workload in WORKLOADS else {}
    trial = record.trials[0]
    of = trial.resolved.model_copy(update={"workload": Section({workload: parameters})})
    assert series._unit(trial.model_copy(update={"resolved": of})) == unit


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        (["cell0", "users low · memory 1 GiB", "trials-tpm"], "cell0-users-low-memory-1-gib-trials-tpm"),
        (["ratio-latency_ns_p99"], "ratio-latency-ns-p99"),
        (["../../etc/passwd"], "etc-passwd"),
        (["Ärger", "…"], "rger"),
    ],
)
def test_file_names_have_letters_digits_and_dashes_only(parts: list[str], name: str) -> None:
    assert svg._file_name(parts) == name


def test_cells_whose_names_look_alike_do_not_overwrite_each_other(tmp_path: Path, cells: list[CellFigures]) -> None:
    figure = next(figure for figure in cells[0].figures if figure.name.startswith("trials"))
    alike = [CellFigures(label=label, figures=(figure,), telemetry=()) for label in ("a b", "a·b")]
    with svg.SvgWriter(tmp_path / "figures") as writer:
        for index, cell in enumerate(alike):
            writer.draw(figure, f"cell{index}", cell.label)
    assert len(list((tmp_path / "figures").iterdir())) == 2


def test_arms_whose_names_look_alike_do_not_overwrite_each_other(tmp_path: Path, drawn: list[Figure]) -> None:
    long = "level " * 60
    for directory in (tmp_path / "figures", tmp_path / "again"):
        with svg.SvgWriter(directory) as writer:
            for within in ([], [long]):
                for arm in ("8+", "8-", "8"):
                    writer.draw(replace(drawn[0], name=f"hosts-tpm-{arm}"), *within)
    names = sorted(path.stem for path in (tmp_path / "figures").iterdir())
    assert len(names) == 6
    assert "hosts-tpm-8" in names
    assert max(map(len, names)) <= 251
    assert all(re.fullmatch("[a-z0-9-]+", name) for name in names)
    assert sorted(path.stem for path in (tmp_path / "again").iterdir()) == names


def test_names_longer_than_a_file_system_takes_are_cut_and_stay_apart(tmp_path: Path, drawn: list[Figure]) -> None:
    long = " · ".join(f"{factor} {'level_' * 13}" for factor in ("memory", "users", "storage", "pages"))
    arms = [Figure(name=f"hosts-{'metric_' * 11}-{'arm_' * 20}{end}" * 2, title="", note="", spec={}) for end in "ab"]
    names = [svg._file_name([*within, each.name]) for within in ([], ["cell0", long], ["cell1", long]) for each in arms]
    assert len({*names}) == len(names)
    assert max(map(len, names)) <= 251
    with svg.SvgWriter(tmp_path / "figures") as writer:
        writer.draw(drawn[0], "cell12", long)
    (path,) = (tmp_path / "figures").iterdir()
    assert path.name.startswith("cell12-memory-level-level-")
    assert path.name.endswith(f"-{svg._file_name([drawn[0].name])}.svg")


def test_a_renderer_that_is_killed_is_told_and_is_no_closed_pipe_of_the_command_line(tmp_path: Path) -> None:
    figure = Figure(name="late", title="", note="", spec={"layer": []})
    with (  # noqa: PT012
        pytest.raises(PlaceError, match="late cannot be drawn: signal 9 ended the renderer"),
        svg.SvgWriter(tmp_path / "figures") as writer,
    ):
        writer._renderer.kill()
        writer._renderer.wait()
        writer.draw(figure)


def test_an_interrupt_ends_the_renderer_at_once(tmp_path: Path, drawn: list[Figure]) -> None:
    with pytest.raises(KeyboardInterrupt), svg.SvgWriter(tmp_path / "figures") as writer:  # noqa: PT012
        os.kill(writer._renderer.pid, signal.SIGSTOP)  # it would never answer
        writer.draw(drawn[0])
        raise KeyboardInterrupt
    assert writer._renderer.returncode == -signal.SIGKILL


def test_without_an_interpreter_the_way_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(PlaceError, match="cannot draw figures") as failure:
        svg.SvgWriter(tmp_path / "figures")
    assert "--plain" in failure.value.hint


def test_a_figure_that_cannot_be_drawn_is_an_error(tmp_path: Path) -> None:
    layer = {"mark": {"type": "no such mark"}, "encoding": {}}
    broken = Figure(name="broken", title="", note="", spec={"layer": [layer]})
    with pytest.raises(RuntimeError, match="broken cannot be drawn"), svg.SvgWriter(tmp_path / "figures") as writer:
        writer.draw(broken)


def test_only_drawn_figures_stay_and_other_files_are_left(tmp_path: Path) -> None:
    figures = tmp_path / "report" / "figures"
    figures.mkdir(parents=True)
    (figures / "old.svg").write_text("<svg/>")
    (figures / "notes.txt").write_text("mine")
    (tmp_path / "report" / "by-users").mkdir()
    (tmp_path / "report" / "report.txt").write_text("old")
    with replaced(tmp_path / "report") as fresh:
        (fresh / "figures").mkdir()
        (fresh / "report.txt").write_text("new")
    assert [path.name for path in figures.iterdir()] == ["notes.txt"]
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == ["by-users", "figures", "report.txt"]
    assert (tmp_path / "report" / "report.txt").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_report_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "report.txt").write_text("old")
    with pytest.raises(FileNotFoundError), replaced(tmp_path / "report") as fresh:
        (fresh / "missing" / "report.txt").write_text("new")
    assert (tmp_path / "report" / "report.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def written(directory: Path, *names: str, content: str) -> None:
    for name in names:
        (directory / name).write_text(content)


@pytest.mark.parametrize("failure", [PermissionError, KeyboardInterrupt])
def test_whatever_fails_while_files_take_their_places_no_note_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]
) -> None:
    report = tmp_path / "report"
    (report / "mine").mkdir(parents=True)
    (report / "mine" / "notes.txt").write_text("mine")
    written(report, "raw_data.csv", "report.txt", content="old")
    moved: list[Path] = []

    def failing(path: Path, target: Path) -> None:
        moved.append(path)
        if len(moved) > 1:
            raise failure
        shutil.move(path, target)

    for name in ("rename", "replace"):
        monkeypatch.setattr(Path, name, failing)
    with pytest.raises(failure), replaced(report) as fresh:
        written(fresh, "raw_data.csv", "report.txt", content="new")
    assert (report / "mine" / "notes.txt").read_text() == "mine"
    assert {(report / name).read_text() for name in ("raw_data.csv", "report.txt")} <= {"old", "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_a_directory_where_a_file_belongs_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "report" / "report.txt").mkdir(parents=True)
    (tmp_path / "report" / "raw_data.csv").write_text("old")
    with pytest.raises(PlaceError, match=r"report\.txt is a directory"), replaced(tmp_path / "report") as fresh:
        written(fresh, "raw_data.csv", "report.txt", content="new")
    assert (tmp_path / "report" / "report.txt").is_dir()
    assert (tmp_path / "report" / "raw_data.csv").read_text() == "old"


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "old.svg").write_text("mine")
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "figures").symlink_to(outside)
    with replaced(tmp_path / "report") as fresh:
        (fresh / "figures").mkdir()
        (fresh / "figures" / "new.svg").write_text("new")
    assert [path.name for path in outside.iterdir()] == ["old.svg"]
    assert [path.name for path in (tmp_path / "report" / "figures").iterdir()] == ["new.svg"]
