"""The gate of packaging/ci: both templates measure and judge by the same lines, and no input becomes a script."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ci_gate import script  # benches/ci_gate.py
from ruamel.yaml import YAML
from support.command_line import shell_program

ROOT = Path(__file__).parents[3]
OWN = "# From here on"


def template(name: str) -> Any:
    return YAML(typ="safe").load((ROOT / "packaging" / "ci" / name).read_text(encoding="utf-8"))


ACTION, JOB = template("action.yml"), template("gitlab.yml")[".fairtrial-gate"]


def shared(lines_of: str) -> list[str]:
    """The lines that every template has."""
    lines = lines_of.partition(OWN)[0].splitlines()
    return [line for line in lines if not line.startswith("# The same lines")]


def test_both_templates_measure_and_judge_alike() -> None:
    assert shared(JOB["script"][-1]) == shared(script())
    assert len(shared(script())) > 5
    assert JOB["allow_failure"] == {"exit_codes": [5]}


def test_no_input_of_the_action_becomes_text_of_a_script() -> None:
    steps = ACTION["runs"]["steps"]
    assert len(steps) == 3
    assert [step["run"] for step in steps if "${{" in step["run"]] == []
    used = set(re.findall(r"inputs\.([a-z]+)", str(steps)))
    assert used == set(ACTION["inputs"])


def test_the_guide_has_every_input_and_variable() -> None:
    page = (ROOT / "docs/guides/continuous-integration.md").read_text(encoding="utf-8")
    names = [*ACTION["inputs"], *(name for name in JOB["variables"] if name != "GIT_DEPTH")]
    assert [name for name in names if f"`{name}`" not in page] == []


def job(text: str, here: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the text of a step where `fairtrial`, `python3` and such are those below `here`."""
    environment = {name: str(here / name) for name in ("RUNNER_TEMP", "CI_PROJECT_DIR", "GITHUB_PATH")}
    environment |= {name: str(here / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    given = {f"FAIRTRIAL_GATE_{name}": variables.pop(name, "") for name in ("COMMAND", "STUDY", "BUILD", "OPTIONS")}
    given |= {f"FAIRTRIAL_GATE_{name}": name.lower() for name in ("BASE", "HEAD", "LEDGER")}
    environment |= {"PATH": f"{here}/programs:/usr/bin:/bin", **given, **variables}
    return subprocess.run(["sh", "-c", text], cwd=here, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("compare", "gate", "undecided", "job_ends"),
    [
        (0, 0, "pass", (0, "passed")),
        (0, 1, "pass", (1, "failed")),
        (0, 5, "pass", (0, "undecided")),
        (0, 5, "Pass", (5, "undecided")),
        (0, 2, "pass", (2, None)),
        (3, 0, "pass", (3, None)),
    ],
)
def test_the_job_passes_only_what_was_measured_and_judged(
    *, compare: int, gate: int, undecided: str, job_ends: tuple[int, str | None], tmp_path: Path
) -> None:
    """A record and a table that a commit brought are gone before anything is measured."""
    (tmp_path / "fairtrial-gate").mkdir()
    (tmp_path / "fairtrial-gate.md").touch()
    measures = f"if [ $1 = compare ]; then ls -d fairtrial-gate* 2>&- && exit 9; exit {compare}; fi"
    shell_program(tmp_path / "programs" / "fairtrial", f"{measures}\necho table >fairtrial-gate.md\nexit {gate}")
    done = job(script(), tmp_path, COMMAND="./bench", FAIRTRIAL_GATE_UNDECIDED=undecided)
    code, outcome = job_ends
    assert (done.returncode, done.stderr) == (code, "")
    said = tmp_path / "GITHUB_OUTPUT"
    assert (said.read_text() if said.exists() else None) == (f"outcome={outcome}\n" if outcome else None)


def test_the_next_gate_of_a_job_leaves_the_files_of_a_gate_with_a_name(tmp_path: Path) -> None:
    measures = "if [ $1 = compare ]; then mkdir fairtrial-gate; exit; fi"
    shell_program(
        tmp_path / "programs" / "fairtrial", f"{measures}\necho table >fairtrial-gate.md; >fairtrial-gate.xml"
    )
    for name in ("clang", "clang", ""):
        assert job(script(), tmp_path, FAIRTRIAL_GATE_NAME=name).returncode == 0
    names = {f"fairtrial-gate{name}{suffix}" for name in ("", "-clang") for suffix in ("", ".md", ".xml")}
    assert {path.name for path in tmp_path.glob("fairtrial-gate*")} == names
    assert (tmp_path / "GITHUB_STEP_SUMMARY").read_text() == 3 * "table\n"


def commented(here: Path, **variables: str) -> tuple[str, str]:
    """The mark of the comment of a gate, and the filter by which its earlier one is sought."""
    given = {"GITHUB_WORKFLOW": 'say "speed"', "GITHUB_JOB": "speed", "JOB_INDEX": "0", "FAIRTRIAL_GATE_NAME": ""}
    given |= {"GITHUB_REPOSITORY": "a/b", "ISSUE": "1", "GH_TOKEN": "t", **variables}
    name = given["FAIRTRIAL_GATE_NAME"]
    (here / f"fairtrial-gate{name and '-'}{name}.md").write_text("table\n")
    done = job(str(ACTION["runs"]["steps"][2]["run"]), here, **given)
    assert (done.returncode, done.stderr) == (0, "")
    mark, table = (here / "fairtrial-gate.comment.md").read_text().splitlines()
    assert table == "table"
    return mark, (here / "sought").read_text()


def test_every_gate_has_a_comment_of_its_own(tmp_path: Path) -> None:
    """A job's token cannot ask who it is; a personal one can, and its comments are no bot's."""
    sought = 'case "$*" in *--paginate*) echo "$5" >sought ;; "api user "*) '
    shell_program(tmp_path / "programs" / "gh", f"{sought} exit 1 ;; esac")
    mark, by = commented(tmp_path)
    assert (mark, by) == commented(tmp_path)
    assert re.fullmatch(r"<!-- fairtrial gate: speed [0-9 ]+ -->", mark)
    assert by == f'.[] | select(.user.type == "Bot" and (.body | startswith("{mark}"))) | .id\n'
    others = [{"JOB_INDEX": "1"}, {"FAIRTRIAL_GATE_NAME": "clang"}, {"GITHUB_WORKFLOW": "w"}, {"GITHUB_JOB": "size"}]
    assert len({mark, *(commented(tmp_path, **other)[0] for other in others)}) == 5
    shell_program(tmp_path / "programs" / "gh", f"{sought} echo ada ;; esac")
    assert 'select(.user.login == "ada" and' in commented(tmp_path)[1]


def test_the_program_under_test_does_not_get_the_python_of_fairtrial(tmp_path: Path) -> None:
    made = 'mkdir -p "$3/bin"; for name in python fairtrial; do printf "#!/bin/sh\n" >"$3/bin/$name"; done'
    shell_program(tmp_path / "programs" / "python3", f'{made}; chmod 755 "$3"/bin/*')
    install = str(ACTION["runs"]["steps"][0]["run"])
    assert job(install, tmp_path, REQUIREMENT="fairtrial").returncode == 0
    added = Path((tmp_path / "GITHUB_PATH").read_text().strip())
    assert [path.name for path in added.iterdir() if path.resolve().is_file()] == ["fairtrial"]
    shown = 'echo "$FAIRTRIAL_GATE_BASE ${FAIRTRIAL_GATE_NOTE_TOKEN-none}"; ls "${PATH%%:*}"'
    merged = {"CI_MERGE_REQUEST_TARGET_BRANCH_SHA": "tip", "CI_MERGE_REQUEST_DIFF_BASE_SHA": "fork"}
    secret = {"FAIRTRIAL_GATE_REQUIREMENT": "fairtrial", "FAIRTRIAL_GATE_NOTE_TOKEN": "t", "FAIRTRIAL_GATE_BASE": ""}
    done = job(f"{JOB['script'][0]}\n{shown}", tmp_path, **merged, **secret)
    assert done.stdout.split() == ["tip", "none", "fairtrial"], done.stderr
