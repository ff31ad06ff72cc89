"""What the bench of whole runs says of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from suite import Run, table

BENCH = Path(__file__).parents[3] / "benches" / "suite.py"


def run(setup_s: float, *, failed: str = "") -> Run:
    return Run(accompanied=False, seconds={"setup": setup_s, "lint": 60.0, "test": 800.0}, failed=failed)


def test_sums_are_of_runs_and_not_of_parts() -> None:
    lines = [line.split() for line in table([run(300), run(200), run(250)])]
    assert ["setup", "200", "250", "300"] in lines
    assert ["make", "test", "1000", "1050", "1100"] in lines
    assert [".ci/run", "1060", "1110", "1160"] in lines


def test_a_run_that_failed_has_no_times() -> None:
    lines = [line.split() for line in table([run(300), run(200, failed="test")])]
    assert ["setup", "300", "300", "300"] in lines
    assert table([run(200, failed="test")]) == ["no run passed"]


def test_a_part_that_fails_is_named_and_its_output_is_kept(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, BENCH, "--runs", "2", "--companion", "1", "--parts", "no-such-target", "--logs", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "run 1: no-such-target FAILED" in done.stdout
    assert done.stdout.count("0 of 1 runs passed") == 2
    assert "No rule to make target" in (tmp_path / "2-no-such-target.txt").read_text(encoding="utf-8")
