"""Files of a comparison: what a spreadsheet, a script and a forge make of them."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest
from support.inference.tables import judged, rows_of

from fairtrial.analyse.models import Analysis, Stopping
from fairtrial.compare import exporting, showing
from fairtrial.compare.compiling import CompareOptions
from fairtrial.compare.trying import Calibration, StartupFloor
from fairtrial.errors import InputError
from fairtrial.report.concerns import concerns
from fairtrial.report.text.summary import estimands
from fairtrial.workloads.command import Command
from fairtrial.workloads.command.parameters import CommandParameters

METRICS = ("elapsed_s", "user_s")
FLOOR = StartupFloor(program="true", elapsed_s=0.001, reach=math.nan, max_resident_bytes=2 << 20)
BLOCKS = 6
COMMANDS = ("grep -E 'a|b' x", 'say "one, two"', "sleep 2")


def analysis(ratios: tuple[float, ...] = (1.0, 0.5, 2.0), *, scale: float = 1.0) -> Analysis:
    lines = ["name,block," + ",".join(METRICS)]
    for block in range(1, BLOCKS + 1):
        for index, ratio in enumerate(ratios):
            noise = math.sin(7 * block + 3 * index) / 100
            figures = [scale * ratio * (1 + noise), scale / 3]
            lines.append(",".join(["abc"[index], str(block), *map(repr, figures)]))
    definitions = Command(CommandParameters(run="true")).metrics()
    found = judged(rows_of("\n".join(lines)), values=METRICS, arm="name", block="block", better=("lower",))
    return found.model_copy(update={"metrics": {name: definitions[name] for name in METRICS}})


def exported(name: str, found: Analysis | None = None, *, runs: int = 3) -> str:
    found = analysis() if found is None else found
    options = CompareOptions(COMMANDS[: len(found.levels)], names=tuple("abc"[: len(found.levels)]))
    calibration = Calibration(elapsed_s=dict.fromkeys(found.levels, 1.0), runs=runs, floor=FLOOR)
    return exporting.render(name, found, options=options, calibration=calibration)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("name", ["r.csv", "r.json", "r.md", "some.folder/r.v2.json"])
def test_the_end_of_a_name_decides(name: str) -> None:
    exporting.check(name)
    assert exported(name).endswith("\n")


@pytest.mark.parametrize("name", ["r", "r.CSV", "r.html", "json", ".md", "r.json.gz"])
def test_names_of_other_ends_are_refused_with_those_that_are_known(name: str) -> None:
    with pytest.raises(InputError) as refused:
        exporting.check(name)
    assert ".csv, .json, .md" in str(refused.value)


def test_the_table_has_a_row_per_trial_in_the_order_of_blocks() -> None:
    found = rows(exported("r.csv"))
    assert [(row["block"], row["name"]) for row in found] == [
        (str(block), name) for block in range(1, BLOCKS + 1) for name in "abc"
    ]


def test_the_table_has_every_value_to_the_last_bit() -> None:
    whole = analysis()
    for metric in METRICS:
        for name, summary in showing.summaries(whole, metric).items():
            found = [float(row[metric]) for row in rows(exported("r.csv")) if row["name"] == name]
            assert found == list(summary.values)


def test_a_table_of_trials_that_a_rule_stopped_gets_no_verdict() -> None:
    by_rule = Stopping(rule="looks from 3 to 20 blocks", first=3, last=20, cells=(), share=0.3)
    asked = {"values": ("elapsed_s",), "arm": "name", "block": "block", "better": ("lower",)}
    verdicts = []
    for stopping in (None, by_rule):
        text = exported("r.csv", analysis().model_copy(update={"stopping": stopping}))
        found = judged(text, **asked)
        verdicts.append([each.verdict for each in found.cells[0].comparisons["elapsed_s"]])
        said = [doubt.message for doubt in found.doubts if doubt.code == "stopped_early"]
    assert verdicts == [["faster", "slower"], ["none", "none"]]
    assert said == ["the trials stopped early, depending on their results: looks from 3 to 20 blocks"]


def test_commands_with_separators_and_quotes_come_back_as_they_were() -> None:
    assert {row["name"]: row["command"] for row in rows(exported("r.csv"))} == dict(zip("abc", COMMANDS, strict=True))


def test_a_metric_that_a_trial_lacks_is_an_empty_cell() -> None:
    whole = analysis()
    (cell,) = whole.cells
    several = ("values", "blocks", "positions")
    short = [
        each.model_copy(update={"n": each.n - 1, **{name: getattr(each, name)[1:] for name in several}})
        for each in cell.summaries["user_s"]
    ]
    cells = (cell.model_copy(update={"summaries": {**cell.summaries, "user_s": tuple(short)}}),)
    found = rows(exported("r.csv", whole.model_copy(update={"cells": cells})))
    assert [row["user_s"] for row in found if row["block"] == "1"] == ["", "", ""]
    assert all(row["user_s"] for row in found if row["block"] != "1")


def test_the_document_says_how_it_came_about() -> None:
    document = json.loads(exported("r.json", runs=5))
    assert document["format_version"] == exporting.FORMAT_VERSION
    assert document["runs_per_trial"] == 5
    assert document["commands"] == dict(zip("abc", COMMANDS, strict=True))
    assert document["floor"]["max_resident_bytes"] == 2 << 20


def test_the_document_has_null_where_there_is_no_number() -> None:
    """NaN is no JSON: strict readers refuse the whole file."""
    text = exported("r.json")
    assert "NaN" not in text
    assert json.loads(text)["floor"]["reach"] is None


def test_the_document_holds_an_analysis_that_reads_back() -> None:
    whole = analysis()
    assert Analysis.model_validate(json.loads(exported("r.json"))["analysis"]) == whole


def cells_of(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.replace("\\|", "¦").strip("|").split("|")] for line in lines]


def test_the_table_for_a_forge_has_a_row_per_command_under_its_header() -> None:
    header, rule, *body = cells_of(exported("r.md"))
    assert header[1] == "command"
    assert header[-2:] == ["95 % interval", "verdict"]
    assert len({len(row) for row in (header, rule, *body)}) == 1
    assert [row[0] for row in body] == ["a", "b", "c"]


def test_a_bar_in_a_command_does_not_end_its_cell() -> None:
    assert cells_of(exported("r.md"))[2][1] == "`grep -E 'a¦b' x`"


def test_the_baseline_has_no_interval_and_the_others_have_the_analysis_ratios() -> None:
    whole = analysis()
    body = cells_of(exported("r.md"))[2:]
    assert body[0][-3:] == ["1", "", "baseline"]
    for row, compared in zip(body[1:], whole.cells[0].comparisons["elapsed_s"], strict=True):
        assert row[-3] == f"{compared.ratio.estimate:.3f}"
        assert row[-2] == f"{compared.ratio.low:.3f} – {compared.ratio.high:.3f}"
        assert row[-1].startswith(compared.verdict)


def test_one_unit_stands_in_the_header_and_fits_all_rows() -> None:
    header, _, *body = cells_of(exported("r.md", analysis(scale=0.01)))
    assert header[2].endswith("[ms]")
    means = [float(row[2].split(" ± ")[0]) for row in body]
    assert means == pytest.approx([10, 5, 20], rel=0.02)


def test_what_one_person_would_tell_another_stands_below() -> None:
    (said,) = [line for line in exported("r.md").splitlines() if line.startswith("paired over blocks")]
    assert "b is 2.0" in said
    assert "times as fast as a" in said
    assert "a is 2.0" in said
    assert "times as fast as c" in said


def test_claims_leave_with_what_they_are_about_and_with_their_doubts() -> None:
    whole = analysis()
    below = exported("r.md", whole).split("\n\n", maxsplit=2)[2]
    about, doubts = below.split("\n\n")
    assert (about,) == estimands(whole)
    found = concerns(showing.worth_saying(whole))
    assert found
    said = [f"{concern.message} – {concern.advice}" for concern in found]
    assert [line.split(": ", maxsplit=1)[1] for line in doubts.splitlines()] == said
    assert "- doubt elapsed_s: " in doubts


@pytest.mark.parametrize(("scale", "unit"), [(2.5, "s"), (0.0025, "ms"), (2.5e-6, "µs"), (2.5e-8, "ns")])
def test_seconds_are_shown_in_the_unit_that_fits(scale: float, unit: str) -> None:
    chosen = showing.scale_of("s", [scale, None])
    assert chosen.unit == unit
    assert 1 <= float(chosen.value(scale)) < 1000
    assert float(chosen.value(scale)) * chosen.divisor == pytest.approx(scale, rel=1e-3)


def test_other_units_stay_their_own() -> None:
    assert showing.scale_of("B", [3 << 20]).unit == "MiB"
    assert showing.scale_of("faults", [5.0]).unit == "faults"


@pytest.mark.parametrize("command", ["=HYPERLINK(x)", "-v x", "@x", "+1", "\tx", "a\r=1"])
def test_no_spreadsheet_computes_a_command(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setitem(globals(), "COMMANDS", (command, *COMMANDS[1:]))
    first, *others = rows(exported("r.csv"))
    assert first["command"] == ("a =1" if command[0] == "a" else f"'{command}")
    assert others[0]["command"] == COMMANDS[1]
    assert first["elapsed_s"] == repr(float(first["elapsed_s"]))
