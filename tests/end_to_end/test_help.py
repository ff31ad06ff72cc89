"""`fairtrial --help` must not wait for what only a command needs; shown by what is imported, not by a clock."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"numpy", "polars", "pydantic", "scipy", "statsmodels", "altair", "ruamel.yaml", "hdrh", "jinja2", "vl_convert"}
PROGRAM = """\
import json, sys
sys.argv = ["fairtrial", *{arguments!r}]
from fairtrial.cli import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported(*arguments: str, code: int = 0) -> set[str]:
    program = PROGRAM.format(arguments=arguments)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_help_imports_nothing_heavy() -> None:
    assert not imported("--help") & HEAVY


@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), (["run", "--help"], 0), (["no-such"], 2), ([], 2)])
def test_what_ends_before_a_command_starts_imports_nothing_heavy(arguments: list[str], code: int) -> None:
    assert not imported(*arguments, code=code) & (HEAVY - {"pydantic"})  # typer itself converts arguments by pydantic


def test_a_command_that_needs_them_imports_them() -> None:
    assert {"pydantic", "ruamel.yaml"} <= imported("schema")


def test_a_run_without_figures_imports_nothing_that_draws(real_run: Path, tmp_path: Path) -> None:
    program = f"""\
import json, sys
from pathlib import Path
import fairtrial.cli.running.run
from fairtrial import record, report
from fairtrial.report.analysing import analysed
found = record.read(Path({str(real_run)!r}))
report.write(found, analysed(found), Path({str(tmp_path)!r}), drawn=False)
print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (tmp_path / "raw_data.r").exists()
    assert not set(json.loads(done.stdout)) & {"altair", "vl_convert", "scipy.stats"}
