"""What `history` and `gate` print can be had again: from the records' scalars alone, which `verify` computes again."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from support.command_line import Desk
from support.real_record import adjust_hash

from fairtrial.record.files import hashes

RUNS = 6


@pytest.fixture
def runs(real_run: Path, here: Desk) -> Path:
    """One real record as six, of six days: every metric the same but for the throughput of each day's trials."""
    whole = here.directory / "nightly"
    for day in range(RUNS):
        copied = whole / f"night-{day}"
        shutil.copytree(real_run, copied)
        for path in copied.glob("trials/*/trial.json"):
            content = json.loads(path.read_bytes())
            content["scalars"]["throughput_tpm"] *= 1 + 0.01 * math.sin(5 * day)
            content["started"] = content["started"].replace(content["started"][:10], f"2026-01-{day + 1:02d}")
            path.write_text(json.dumps(content), encoding="utf-8")
    return whole


def history(here: Desk, *runs: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(here.fairtrial("history", *runs, "--json").stdout)
    return found


def by_hand(run: Path, *, users: str, journal: str) -> list[float]:
    """Throughput of the valid trials of one cell and arm, from their files."""
    trials = [json.loads(path.read_bytes()) for path in sorted(run.glob("trials/*/trial.json"))]
    return [
        trial["scalars"]["throughput_tpm"]
        for trial in trials
        if trial["valid"] and trial["levels"] == {"users": users, "journal": journal}
    ]


def test_every_point_of_a_history_is_the_geometric_mean_of_the_trials_in_the_records(here: Desk, runs: Path) -> None:
    found = [each for each in history(here, runs)["series"] if each["metric"] == "throughput_tpm"]
    assert len(found) == 4, "two cells, two arms"
    for each in found:
        _, users, journal = each["series"].split(" · ")
        assert each["runs"] == [f"night-{day}" for day in range(RUNS)]
        for day, (value, error, n) in enumerate(zip(each["values"], each["standard_errors"], each["ns"], strict=True)):
            logs = [math.log(one) for one in by_hand(runs / f"night-{day}", users=users, journal=journal)]
            assert n == len(logs) == 3
            assert value == pytest.approx(math.exp(fmean(logs)), rel=1e-12)
            assert error == pytest.approx(stdev(logs) / math.sqrt(n), rel=1e-9)


def test_a_history_looked_at_again_or_from_elsewhere_is_the_same(here: Desk, runs: Path) -> None:
    first = history(here, runs)
    assert history(here, runs) == first
    moved = here.directory / "elsewhere" / "deeper"
    moved.parent.mkdir()
    shutil.copytree(runs, moved)
    assert history(here, moved) == first
    one_by_one = [runs / f"night-{day}" for day in reversed(range(RUNS))]
    assert history(here, *one_by_one) == first, "their times order them, not their arguments"


def test_looking_at_records_changes_none_of_them(here: Desk, runs: Path) -> None:
    before = hashes(runs)
    here.fairtrial("history", runs)
    here.fairtrial("gate", runs, code=None)
    assert hashes(runs) == before


def test_a_gate_says_again_what_it_said(here: Desk, runs: Path) -> None:
    said = here.fairtrial("gate", runs, code=None)
    again = here.fairtrial("gate", runs, code=None)
    assert (said.stdout, said.returncode) == (again.stdout, again.returncode)
    assert "checks" in said.stdout


def test_a_history_of_flattered_records_is_found_by_verifying_them(here: Desk, runs: Path) -> None:
    """The scalars were changed above; with hashes to match, the raw files still do not give them."""
    run = runs / "night-1"
    for trial in (run / "trials").iterdir():
        adjust_hash(run, trial.name, "trial.json")
    said = here.fairtrial("verify", run, code=1).stdout
    assert said.count("/trial.json: throughput_tpm is ") == len(list((run / "trials").iterdir()))
