"""Everything that `report.write` leaves in its directory."""

from __future__ import annotations

import io
import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console
from support.inference.tables import judged, only_comparison

from fairtrial import report
from fairtrial.analyse.models import Analysis
from fairtrial.record import Record, read


@pytest.fixture(scope="module")
def written(record: Record, analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("written") / "report"
    (directory / "figures").mkdir(parents=True)
    (directory / "figures" / "stale.svg").write_text("<svg/>", encoding="utf-8")
    report.write(record, analysis, directory)
    return directory


def test_every_form_is_there(written: Path) -> None:
    assert {path.name for path in written.iterdir()} == {
        "report.txt",
        "report.html",
        "report.json",
        "raw_data.csv",
        "raw_data.r",
        "figures",
    }


def test_a_plain_one_has_neither_page_nor_figures_and_none_of_an_earlier_one_stays(
    record: Record, analysis: Analysis, written: Path, *, tmp_path: Path
) -> None:
    directory = tmp_path / "report"
    shutil.copytree(written, directory)
    (directory / "notes.txt").write_text("mine", encoding="utf-8")
    assert report.write(record, analysis, directory, drawn=False) == directory / "report.txt"
    plain = {"report.txt", "report.json", "raw_data.csv", "raw_data.r"}
    assert {path.name for path in directory.iterdir()} == {*plain, "notes.txt"}
    assert all((directory / name).read_bytes() == (written / name).read_bytes() for name in plain)


def test_json_holds_the_analysis_whole_and_what_it_came_from(written: Path, analysis: Analysis) -> None:
    document = json.loads((written / "report.json").read_bytes())
    assert Analysis.model_validate(document["analysis"]) == analysis
    assert document["record"]["factors"] == {"journal": ["delete", "wal"], "users": ["low", "high"]}
    assert document["record"]["invalid"] == [{"label": "0015-high-wal-b3", "value": "the server restarted"}]
    assert {"label": "kernel", "value": "6.1.0-18-amd64"} in document["record"]["places"][0]["facts"]


def test_csv_has_every_trial_at_full_precision(written: Path, record: Record) -> None:
    frame = pl.read_csv(written / "raw_data.csv")
    assert frame["id"].to_list() == [trial.trial.id for trial in record.trials]
    assert frame.columns[:3] == ["journal", "users", "id"]
    assert frame["throughput_tpm"].to_list() == [trial.scalars["throughput_tpm"] for trial in record.trials]
    assert frame.filter(~pl.col("used")).height == 2


def test_figures_are_svg_with_plain_names_and_stale_ones_are_gone(written: Path) -> None:
    figures = sorted((written / "figures").iterdir())
    assert len(figures) == 3 + 2 * 6
    for figure in figures:
        assert re.fullmatch(r"[a-z0-9-]+\.svg", figure.name)
        assert ET.fromstring(figure.read_text(encoding="utf-8")).tag.endswith("svg")
    assert "stale.svg" not in {figure.name for figure in figures}


def test_the_terminal_shows_verdicts_in_a_line_each_then_doubts(analysis: Analysis) -> None:
    console = Console(width=100, force_terminal=False, file=io.StringIO())
    console.print(report.terminal(analysis))
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert lines[1].split() == ["users", "delete", "(baseline)", "wal", "ratio", "95", "%", "interval", "verdict"]
    assert lines[2].startswith("low")
    assert lines[2].endswith("faster")
    assert any(line.startswith("doubt high: 1 of 12 blocks was voided.") for line in lines)
    assert "24 of 26 finished trials used, 1 invalid, 1 block voided, 1 replaced" in lines


def printed(analysis: Analysis) -> list[str]:
    console = Console(width=200, file=io.StringIO())
    console.print(report.terminal(analysis))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_the_terminal_names_the_baseline_however_many_arms_there_are(analysis: Analysis) -> None:
    assert "delete (baseline)" in printed(analysis)[1]
    header = printed(analysis.model_copy(update={"levels": ("delete", "wal", "persist")}))[1]
    assert re.split(r" {2,}", header.strip())[:4] == ["users", "arm", "delete (baseline)", "mean"]
    named = printed(analysis.model_copy(update={"levels": ("baseline", "patched")}))[1]
    assert re.split(r" {2,}", named.strip())[:3] == ["users", "baseline", "patched"]


def test_a_claim_without_a_ratio_has_its_size_in_the_metrics_unit() -> None:
    noise = [0.1, -0.3, 0.2, 0.4, -0.1, 0.3, -0.2, 0.0, -0.4, 0.0]
    arms = (("a", -99.7, 1), ("b", -94.7, -1))
    rows = [f"{arm},{at},{value + noise[at] * sign}" for at in range(10) for arm, value, sign in arms]
    found = judged("arm,block,idle_percent\n" + "\n".join(rows), values=("idle_percent",), arm="arm", block="block")
    difference = only_comparison(found, "idle_percent").difference
    (row,) = [line for line in printed(found) if line.rstrip().endswith("faster")]
    interval = f"[{difference.low:.2f}, {difference.high:.2f}]"
    assert re.split(r" {2,}", row.strip())[2:] == ["difference +5.00 pp", interval, "faster"]


@pytest.mark.parametrize("width", [50, 80, 120])
def test_a_doubt_stays_within_the_terminal_and_beside_its_first_word(analysis: Analysis, width: int) -> None:
    long = analysis.doubts[0].model_copy(update={"message": "a reason " * 30 + "ends", "advice": "some advice " * 20})
    console = Console(width=width, file=io.StringIO())
    console.print(report.terminal(analysis.model_copy(update={"doubts": (long,)})))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("doubt "))
    last = next(index for index, line in enumerate(lines) if line.startswith("24 of 26"))
    told = [line.rstrip() for line in lines[first:last]]
    assert max(map(len, told)) <= width
    assert {line[:6] for line in told[1:]} == {" " * 6}
    advice = next(index for index, line in enumerate(told) if line.strip().startswith("– Some advice"))
    assert told[advice - 1].endswith("ends.")


def test_a_record_of_a_plain_command_has_no_series_and_still_a_whole_report(
    record: Record, analysis: Analysis, tmp_path: Path
) -> None:
    """No timeline, latency log or telemetry; no conditions; three arms."""
    bare = tmp_path / "run"
    shutil.copytree(record.directory, bare, ignore=shutil.ignore_patterns("*.parquet", "*.hlog"))
    cell = analysis.cells[0]
    third = {metric: (*arms, arms[1].model_copy(update={"arm": "memory"})) for metric, arms in cell.summaries.items()}
    compared = {
        metric: (*found, found[0].model_copy(update={"arm": "memory", "verdict": "equivalent"}))
        for metric, found in cell.comparisons.items()
    }
    only = cell.model_copy(update={"cell": "all", "levels": {}, "summaries": third, "comparisons": compared})
    plain = analysis.model_copy(update={"cells": (only,), "levels": (*analysis.levels, "memory")})
    report.write(read(bare), plain, bare / "report")
    text = " ".join((bare / "report" / "report.txt").read_text(encoding="utf-8").split())
    assert "With journal memory instead of delete" not in text  # equivalent is no claim
    assert "They are equivalent within 2 % in throughput with journal memory instead of delete." in text
    assert {path.name for path in (bare / "report" / "figures").iterdir()} == {
        *(f"ratio-{metric.replace('_', '-')}.svg" for metric in analysis.metrics),
        *(f"cell0-all-trials-trials-{metric.replace('_', '-')}.svg" for metric in analysis.metrics),
    }
    assert "equivalent (within 2 %)" in (bare / "report" / "report.html").read_text(encoding="utf-8")
    console = Console(width=100, file=io.StringIO())
    console.print(report.terminal(plain))
    assert isinstance(console.file, io.StringIO)
    assert "memory" in console.file.getvalue()


def test_a_run_stopped_before_its_first_trial_still_has_a_report(
    record: Record, analysis: Analysis, tmp_path: Path
) -> None:
    nothing = tmp_path / "run"
    (nothing / "trials").mkdir(parents=True)
    shutil.copy(record.directory / "plan.json", nothing)
    (nothing / "journal.jsonl").write_text("", encoding="utf-8")
    cells = tuple(cell.model_copy(update={"summaries": {}, "comparisons": {}}) for cell in analysis.cells)
    empty = analysis.model_copy(update={"cells": cells, "finished": False, "doubts": ()})
    report.write(read(nothing), empty, nothing / "report")
    assert "preliminary" in (nothing / "report" / "report.txt").read_text(encoding="utf-8")
    assert (nothing / "report" / "raw_data.csv").read_text(encoding="utf-8").startswith("journal,users,id,")
