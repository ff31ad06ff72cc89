"""A record of every format version there was opens in this one: `tests/records` keeps the smallest of each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import fairtrial
from fairtrial import record, report, verify
from fairtrial.history import series
from fairtrial.report.analysing import analysed
from fairtrial.serve.overview import side_by_side

KEPT = sorted(path for path in (Path(__file__).parents[2] / "records").iterdir() if path.is_dir())
MOST_BYTES = 256 << 10


@pytest.fixture(params=KEPT, ids=[path.name for path in KEPT])
def kept(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def test_it_is_of_its_version_and_small(kept: Path) -> None:
    assert json.loads((kept / "plan.json").read_bytes())["format_version"] == int(kept.name)
    assert sum(path.stat().st_size for path in kept.rglob("*") if path.is_file()) < MOST_BYTES


def test_its_report_is_written_and_its_numbers_follow_from_its_files(kept: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(kept, copy)
    found = record.read(copy)
    assert found.finished
    analysis = analysed(found)
    assert analysis.cells[0].comparisons
    report.write(found, analysis, copy / "report", drawn=False)
    assert record.verify_hashes(found) == []
    assert verify.recompute(found) == []


def test_it_stands_beside_others_and_in_histories(kept: Path, tmp_path: Path) -> None:
    runs = [tmp_path / name for name in ("one", "other")]
    for run in runs:
        shutil.copytree(kept, run)
        found = record.read(run)
        report.write(found, analysed(found), run / "report", drawn=False)
    beside = side_by_side.side_by_side(runs)
    assert beside.runs == ("one", "other")
    assert beside.metrics
    every = series.read(runs)
    assert every.left_out == {}
    assert {len(each.points) for each in every.series} == {2}
    assert fairtrial.read(kept).trials.height == len(record.read(kept).trials)
