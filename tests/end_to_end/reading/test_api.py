"""The tutorial's Python on a real record, word for word, and what a notebook pays for the import."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

TUTORIAL = Path(__file__).parents[3] / "docs" / "first-study.md"
EXAMPLE_RUN = re.compile(r'"runs/[^"]*"')


def example() -> str:
    """The tutorial's Python block."""
    (block,) = re.findall(r"(?s)```python\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"))
    return str(block)


def test_the_tutorials_example_runs_on_a_real_record(real_run: Path) -> None:
    code, replaced = EXAMPLE_RUN.subn(repr(str(real_run)), example())
    assert replaced == 1, "the example reads one run"
    names: dict[str, Any] = {}
    exec(compile(code, str(TUTORIAL), "exec"), names)  # the documentation itself is the test
    run = names["run"]
    assert run.trials.height == 12


@pytest.mark.parametrize("line", [line.split("#")[0].strip() for line in example().splitlines() if "run." in line])
def test_every_line_of_the_example_gives_a_table_with_rows(real_run: Path, line: str) -> None:
    import fairtrial  # noqa: PLC0415 - as the example does

    names = {"run": fairtrial.read(real_run), "pl": pl}
    found = eval(line, {"fairtrial": fairtrial}, names)
    assert isinstance(found, pl.DataFrame)
    assert found.height > 0


def test_a_script_reads_a_record_and_pays_only_when_it_does(real_run: Path) -> None:
    script = (
        "import json, sys, fairtrial\n"
        "heavy = {'polars', 'numpy', 'pydantic', 'scipy'}\n"
        "before = sorted(heavy & set(sys.modules))\n"
        f"run = fairtrial.read({str(real_run)!r})\n"
        "print(json.dumps([before, run.trials.height, sorted(heavy & set(sys.modules))]))\n"
    )
    ran = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    before, trials, after = json.loads(ran.stdout)
    assert before == []
    assert trials == 12
    assert "polars" in after
