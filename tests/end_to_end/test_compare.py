"""`fairtrial compare` as installed: real commands, from one line to a verdict, its files and its exit code."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

import pytest
from support.command_line import Desk, desk

FAST, SLOW = "sleep 0.05", "sleep 0.6"
# What they print differs by as much, and a little by chance; no standstill of a machine changes it.
TOLD = "; n=$(cat count); echo $((n + 1)) >count; echo took = $((MS + n % 3)) ms"
FAST_TOLD, SLOW_TOLD = FAST + TOLD.replace("MS", "50"), SLOW + TOLD.replace("MS", "600")
JUDGED = ("--metric", r"took = (\d+)", "--better", "lower", "--shell")
QUICKLY = ("--blocks", "6", "--stop", "fixed", "--warm-up", "0")


@pytest.fixture
def here() -> Iterator[Desk]:
    with desk() as found:
        yield found


def test_a_slower_command_is_found_exported_and_fails_the_caller_who_asked(here: Desk) -> None:
    files = ("--export", "r.json", "--export", "r.csv", "--export", "r.md")
    (here.directory / "count").write_text("0")
    done = here.fairtrial("compare", FAST_TOLD, SLOW_TOLD, *JUDGED, *QUICKLY, *files, "--fail-if", "slower", code=1)
    assert "slower" in done.stdout
    assert "A is " in done.stdout
    document = json.loads((here.directory / "r.json").read_text())
    (found,) = document["analysis"]["cells"][0]["comparisons"]["took"]
    assert (found["verdict"], found["n"]) == ("slower", 6)
    rows = list(csv.DictReader(io.StringIO((here.directory / "r.csv").read_text())))
    assert {row["command"] for row in rows} == {FAST_TOLD, SLOW_TOLD}
    assert all(float(row["elapsed_s"]) >= float(row["command"].split()[1].rstrip(";")) for row in rows)
    assert f"| B | `{SLOW_TOLD}` |" in (here.directory / "r.md").read_text()
    assert not here.runs


def test_two_commands_that_differ_a_lot_stop_early_and_the_record_verifies_until_it_is_changed(here: Desk) -> None:
    """Verdict, journal, text and `verify` agree on when the run stopped, and why."""
    done = here.fairtrial("compare", FAST, SLOW, "--warm-up", "0", "--output", "runs", "--export", "r.json")
    analysis = json.loads((here.directory / "r.json").read_text())["analysis"]
    (found,) = analysis["cells"][0]["comparisons"]["elapsed_s"]
    blocks = found["n"]
    assert found["verdict"] == "slower"
    assert 4 <= blocks < 20  # 4 on an idle machine; one that stutters needs a block more
    assert f"stopped after {blocks} of 20 blocks" in done.stdout
    assert found["p_once"] <= found["p"] < 0.05
    assert analysis["stopping"]["cells"] == [{"cell": "all", "blocks": blocks, "round": blocks, "reason": "difference"}]
    journal = here.run / "journal.jsonl"
    events = [json.loads(line)["entry"] for line in journal.read_text().splitlines()]
    decisions = [cell["decision"] for event in events for cell in event.get("cells", ())]
    assert decisions == [*["continue"] * (blocks - 1), "stop"]
    assert len(list((here.run / "trials").iterdir())) == 2 * blocks
    here.fairtrial("verify", here.run)
    journal.write_text(journal.read_text().replace('"reason":"difference"', '"reason":"equivalence"'))
    assert f"recomputed {blocks} blocks (difference)" in here.fairtrial("verify", here.run, code=1).stdout


def test_all_blocks_are_run_where_that_is_asked(here: Desk) -> None:
    done = here.fairtrial("compare", FAST, SLOW, "--warm-up", "0", "--blocks", "5", "--stop", "fixed")
    assert "· 5 blocks ·" in done.stdout
    assert "stopped after" not in done.stdout


def test_the_saved_study_runs_again_and_a_kept_record_verifies(here: Desk) -> None:
    here.fairtrial("compare", FAST, FAST, "--blocks", "2", "--save", "again.yaml", "--output", "runs")
    here.fairtrial("verify", here.run)
    assert (here.run / "report" / "report.html").exists()
    assert (here.directory / "again.yaml").read_text().startswith("# Measured with FAIRTRIAL_ENVIRONMENT='*': set it")
    here.fairtrial("run", "again.yaml", "--output", "second")
    assert len(list((here.directory / "second").iterdir())) == 1


def test_a_number_of_the_output_is_judged_in_its_own_direction(here: Desk) -> None:
    (here.directory / "count").write_text("0")
    script = "n=$(cat count); echo $((n + 1)) >count; echo score = $((X + n % 3))"
    commands = [script.replace("X", value) for value in ("100", "200")]
    asked = ("--metric", r"score = (\d+)", "--better", "higher", "--shell")
    done = here.fairtrial("compare", *commands, *asked, *QUICKLY, "--fail-if", "slower")
    assert "score, higher is better" in done.stdout
    assert "B is " in done.stdout
    assert "wall time" in done.stdout


def test_what_is_wrong_with_a_command_is_said_before_anything_is_measured(here: Desk) -> None:
    done = here.fairtrial("compare", "true", "false", code=2)
    assert "B: `false` ended with exit code 1" in done.stderr
    assert "--exit-code" in done.stderr
    assert "did you mean --shell?" in here.fairtrial("compare", "true", "true | cat", code=2).stderr
    assert "did you mean slower?" in here.fairtrial(
        "compare", "true", "true", "--fail-if", "slow", code=2
    ).stderr.replace("`", "")
    assert (
        "expected a name that ends in" in here.fairtrial("compare", "true", "true", "--export", "x.xls", code=2).stderr
    )
