"""The made-up record of the bench: its files are such that `verify` and a report take it for a run's."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from long_record import ARMS, RAMP_UP_S, Size, make

from fairtrial import record as records
from fairtrial import report, verify
from fairtrial.metrics import latency
from fairtrial.metrics.latency import merged_latency
from fairtrial.record import Record
from fairtrial.report.analysing import analysed
from fairtrial.report.scene import POINTS_PER_FIGURE

SIZE = Size(cells=2, blocks=9, seconds=70)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return make(tmp_path_factory.mktemp("long") / "run", SIZE, workers=1)


@pytest.fixture(scope="module")
def written(made: Record) -> Path:
    report.write(made, analysed(made), made.directory / "report")
    return made.directory / "report"


def test_it_has_every_trial_in_balanced_order(made: Record) -> None:
    assert len(made.trials) == 2 * SIZE.cells * SIZE.blocks
    assert [trial.trial.position for trial in made.trials] == list(range(len(made.trials)))
    first = [trial.trial.arm for trial in made.trials if trial.trial.position % 2 == 0]
    assert sorted(set(first)) == sorted(ARMS), "neither arm is always first"
    assert made.finished


def test_it_is_as_written_and_every_number_of_its_report_follows_from_its_raw_files(
    made: Record, written: Path
) -> None:
    assert (written / "report.json").exists()
    assert records.verify_hashes(made) == []
    assert verify.recompute(made) == []


def test_its_faster_arm_is_found_and_explained_by_what_was_made_to_change(written: Path) -> None:
    analysis = json.loads((written / "report.json").read_bytes())["analysis"]
    assert len(analysis["why"]) == SIZE.cells
    for why in analysis["why"]:
        strongest = [change["counter"] for change in why["changes"][:12]]
        assert "vmstat:pswpin" in strongest
        assert "cpu:iowait share" in strongest


def test_every_second_has_a_line_per_type_a_row_and_a_sample(made: Record) -> None:
    directory = made.trial_directory(made.trials[0].trial.id)
    lines = [line for line in (directory / latency.FILE).read_text().splitlines() if line[0] != "#"]
    assert len(lines) == 5 * SIZE.seconds
    for name in ("timeline", "telemetry-vmstat", "telemetry-server"):
        assert pl.read_parquet(directory / f"{name}.parquet").height == SIZE.seconds + RAMP_UP_S
    assert (directory / merged_latency.FILE).exists()


def test_its_files_are_as_wide_as_those_of_a_machine(made: Record) -> None:
    """Linux 6.1 on two virtual processors gave 193 columns of vmstat, 55 of meminfo, 171 of disks."""
    directory = made.trial_directory(made.trials[0].trial.id)
    widths = {path.stem: len(pl.read_parquet_schema(path)) for path in directory.glob("telemetry-*.parquet")}
    assert 180 <= widths["telemetry-vmstat"] <= 200
    assert 50 <= widths["telemetry-memory"] <= 60
    assert widths["telemetry-disks"] >= 80


def test_the_page_draws_thinned_lines_whose_extremes_are_those_of_the_timelines(made: Record, written: Path) -> None:
    page = (written / "report.html").read_text(encoding="utf-8")
    inlined = page.partition('id="figures"')[2].partition(">")[2].partition("</script>")[0]
    specs = json.loads(inlined)
    lines = [
        rows for spec in specs for rows in spec["datasets"].values() if rows and set(rows[0]) == {"s", "v", "t", "arm"}
    ]
    assert len(lines) == SIZE.cells
    for rows in lines:
        assert len(rows) <= POINTS_PER_FIGURE * 1.1
        for trial in {row["t"] for row in rows}:
            drawn = [row["v"] for row in rows if row["t"] == trial]
            raw = pl.read_parquet(made.trial_directory(trial) / "timeline.parquet")
            done = raw.select(done=pl.sum_horizontal("^.*_(committed|rolled_back)$"))["done"]
            assert max(drawn) == pytest.approx(done.max())
            assert min(drawn) == pytest.approx(done.min())


def test_the_same_seed_makes_the_same_files(made: Record, tmp_path: Path) -> None:
    again = make(tmp_path / "again", Size(cells=1, blocks=1, seconds=70), workers=1)
    trial = again.trials[0]
    (same,) = [each for each in made.trials if each.trial.seed == trial.trial.seed]
    assert trial.scalars == same.scalars
