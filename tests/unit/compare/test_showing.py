"""What a comparison prints and exports: every figure the analysis has, in units that fit, and nothing it has not."""

from __future__ import annotations

import csv
import io
import json
import math
import re

import pytest
from rich.console import Console
from support.inference.tables import judged, rows_of

from fairtrial.analyse.models import Analysis
from fairtrial.compare import exporting, showing
from fairtrial.compare.compiling import CompareOptions
from fairtrial.compare.trying import Calibration, StartupFloor
from fairtrial.errors import InputError
from fairtrial.workloads.command import Command
from fairtrial.workloads.command.parameters import CommandParameters

WISHES = CompareOptions(("sleep 1 | cat", "sleep 2"), names=("old", "new"))
FLOOR = StartupFloor(program="true", elapsed_s=0.001, reach=0.031, max_resident_bytes=2 << 20)
METRICS = ("elapsed_s", "user_s", "max_resident_bytes", "major_faults")


def analysis(*, scale: float = 1.0, ratio: float = 0.5, resident: float = 8 << 20) -> Analysis:
    lines = ["name,block," + ",".join(METRICS)]
    for block in range(1, 9):
        for name, factor in (("old", 1.0), ("new", ratio)):
            noise = math.sin(7 * block + 3 * (name == "new")) / 100
            figures = [scale * factor * (1 + noise), scale / 2 * (1 + noise), resident * (1 + noise), 0.0]
            lines.append(",".join([name, str(block), *map(repr, figures)]))
    definitions = Command(CommandParameters(run="true")).metrics()
    found = judged(rows_of("\n".join(lines)), values=METRICS, arm="name", block="block", better=("lower",))
    return found.model_copy(update={"metrics": {name: definitions[name] for name in METRICS}})


def shown(found: Analysis, *, runs: int = 1) -> str:
    stream = io.StringIO()
    calibration = Calibration(elapsed_s={"old": 1.0, "new": 1.0}, runs=runs, floor=FLOOR)
    Console(file=stream, width=200).print(showing.render(found, WISHES, calibration))
    return stream.getvalue()


def test_each_command_has_its_mean_spread_and_range_and_the_ratio_its_interval() -> None:
    found = analysis()
    (new,) = found.cells[0].comparisons["elapsed_s"]
    row = next(line for line in shown(found).splitlines() if line.startswith("new ") and "±" in line)
    summary = showing.summaries(found, "elapsed_s")["new"]
    scale = showing.scale_of("s", [each.mean for each in showing.summaries(found, "elapsed_s").values()])
    figures = [summary.mean, summary.sd, min(summary.values), max(summary.values)]
    assert [scale.value(figure) for figure in figures if scale.value(figure) not in row] == []
    assert f"{new.ratio.estimate:.3f}" in row
    assert f"{new.ratio.low:.3f} – {new.ratio.high:.3f}" in row
    assert "faster" in row


@pytest.mark.parametrize(("scale", "unit"), [(90.0, "s"), (1.1, "s"), (0.02, "ms"), (0.00003, "µs")])
def test_times_are_printed_in_the_unit_that_fits(scale: float, unit: str) -> None:
    row = next(line for line in shown(analysis(scale=scale)).splitlines() if line.startswith("old ") and "±" in line)
    assert re.search(rf"± [\d.]+ {unit}\b", row)


@pytest.mark.parametrize(("ratio", "winner", "loser"), [(0.5, "new", "old"), (2.0, "old", "new")])
def test_the_sentence_names_the_faster_one_whichever_stands_first(ratio: float, winner: str, loser: str) -> None:
    pattern = r"(\w+) is ([\d.]+) times as fast as (\w+) \(([\d.]+) to ([\d.]+)\)"
    (said,) = re.findall(pattern, shown(analysis(ratio=ratio)))
    assert (said[0], said[2]) == (winner, loser)
    assert float(said[3]) < float(said[1]) < float(said[4])
    assert float(said[1]) == pytest.approx(2, abs=0.02)


def test_equal_commands_get_no_sentence() -> None:
    assert "times as" not in shown(analysis(ratio=1.0))


def test_what_never_happened_takes_no_line_and_raises_no_doubt() -> None:
    found = shown(analysis())
    assert "major page faults" not in found
    assert "events that never happened" not in found


def test_the_cost_of_a_start_is_said_of_short_commands_only() -> None:
    assert "which does nothing, takes 1.000 ms" in shown(analysis(scale=0.004))
    assert "± 3.1 %" in shown(analysis(scale=0.004))
    assert "which does nothing" not in shown(analysis(scale=0.4))


def test_several_runs_in_a_trial_and_memory_that_cannot_be_told_are_said() -> None:
    assert "each trial is the mean of 7 runs" in shown(analysis(), runs=7)
    assert "resident sets below 2.000 MiB are not measurable" in shown(analysis(resident=2 << 20))
    assert "not measurable" not in shown(analysis())


def exported(name: str) -> str:
    calibration = Calibration(elapsed_s={"old": 1.0, "new": 1.0}, runs=1, floor=FLOOR)
    return exporting.render(name, analysis(), options=WISHES, calibration=calibration)


def test_the_csv_gives_the_same_analysis_again() -> None:
    again = judged(exported("r.csv"), values=METRICS, arm="name", block="block", baseline="old", better=("lower",))
    (one,) = analysis().cells[0].comparisons["elapsed_s"]
    (other,) = again.cells[0].comparisons["elapsed_s"]
    assert other == one
    rows = list(csv.DictReader(io.StringIO(exported("r.csv"))))
    assert [row["command"] for row in rows[:2]] == ["sleep 1 | cat", "sleep 2"], "as they ran"
    assert len(rows) == 16


def test_the_json_is_the_whole_analysis() -> None:
    document = json.loads(exported("r.json"))
    assert document["analysis"] == json.loads(analysis().model_dump_json())
    assert document["commands"] == {"old": "sleep 1 | cat", "new": "sleep 2"}
    assert document["floor"]["program"] == "true"


def test_the_markdown_is_a_table_whose_rows_have_as_many_cells_as_its_header() -> None:
    lines = [line.replace("\\|", "") for line in exported("r.md").splitlines() if line.startswith("|")]
    assert len(lines) == 4
    assert len({line.count("|") for line in lines}) == 1
    assert "| new | `sleep 2` |" in lines[3]


def test_a_file_that_names_no_format_is_refused() -> None:
    with pytest.raises(InputError, match=r"expected a name that ends in \.csv, \.json, \.md, found `r\.xlsx`"):
        exporting.check("r.xlsx")
