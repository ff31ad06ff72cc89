"""Commands become a study that loads, says what was asked, and can be run again; mistakes are found before that."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from fairtrial import plan as planning
from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.compare.compiling import CompareOptions, check, judged, saved, study_text
from fairtrial.errors import InputError
from fairtrial.record.models import Plan


def plan_of(options: CompareOptions, directory: Path, *, runs: int = 1) -> Plan:
    check(options)
    file = directory / "study.yaml"
    file.write_text(study_text(options, runs=runs), encoding="utf-8")
    kinds = catalogue()
    return planning.make(study.load(file, catalogue=kinds), catalogue=kinds)


def commands(plan: Plan) -> dict[str, dict[str, object]]:
    return {arm: trial.workload.root["command"] for arm, trial in plan.resolved["all"].items()}


def test_each_command_is_an_arm_and_the_first_is_the_baseline(tmp_path: Path) -> None:
    plan = plan_of(CompareOptions(("sleep 1", "sleep 2", "sleep 3")), tmp_path)
    assert plan.factors == {"command": ["A", "B", "C"]}
    assert [each["run"] for each in commands(plan).values()] == ["sleep 1", "sleep 2", "sleep 3"]
    assert plan.metrics.primary == ["elapsed_s"]
    assert {"user_s", "max_resident_bytes", "minor_faults", "voluntary_switches"} <= set(plan.metrics.secondary)


def test_one_command_twice_is_an_a_a_comparison(tmp_path: Path) -> None:
    assert len(commands(plan_of(CompareOptions(("true", "true")), tmp_path))) == 2


def test_one_command_in_two_checkouts_is_two_arms(tmp_path: Path) -> None:
    options = CompareOptions(("./x", "./x"), names=("base", "head"), directories=("/a/1", "/a/2"))
    found = commands(plan_of(options, tmp_path))
    assert {arm: (each["run"], each["directory"]) for arm, each in found.items()} == {
        "base": ("./x", "/a/1"),
        "head": ("./x", "/a/2"),
    }


def test_everything_asked_reaches_the_trials(tmp_path: Path) -> None:
    options = CompareOptions(
        ("x 1", "x 2"),
        names=("old", "new"),
        directory="/tmp",
        prepare="sync",
        warm_ups=3,
        exit_codes=(0, 1),
        timeout_s=2.5,
        margin="5%",
        confidence="99%",
        seed=7,
        stopping={"blocks": 4},
    )
    plan = plan_of(options, tmp_path, runs=6)
    expected = {"prepare": "sync", "warm_ups": 3, "exit_codes": [0, 1], "timeout": 2.5, "runs": 6, "directory": "/tmp"}
    assert expected.items() <= commands(plan)["new"].items()
    assert (plan.design.margin, plan.design.confidence, plan.design.seed, plan.design.blocks) == (0.05, 0.99, 7, 4)


def test_a_shell_runs_commands_and_what_prepares_them_if_it_is_asked_to(tmp_path: Path) -> None:
    found = commands(plan_of(CompareOptions(("echo 'a b' | wc", "true"), shell=True, prepare="a; b"), tmp_path))
    assert found["A"]["run"] == "sh -c 'echo '\"'\"'a b'\"'\"' | wc'"
    assert found["A"]["prepare"] == "sh -c 'a; b'"


@pytest.mark.parametrize(
    ("where", "name", "source"),
    [
        (r"tps = ([\d.]+)", "tps", "regex"),
        (r"^total time: +(\S+)s$", "total_time_s", "regex"),
        (r"(\d+)", "metric", "regex"),
        ("jobs[0].read.iops", "jobs_read_iops", "json_path"),
        (r"größe: (\d+)", "gr_e", "regex"),
        (r"used (\d+)", "metric_used", "regex"),
        ("command", "metric_command", "json_path"),
        (r"user_s=([0-9.]+)", "metric_user_s", "regex"),
        (r"elapsed_s: (\S+)", "metric_elapsed_s", "regex"),
        (r"max_resident_bytes=(\d+)", "metric_max_resident_bytes", "regex"),
    ],
)
def test_a_number_of_the_output_is_judged_under_a_name_of_its_own(
    tmp_path: Path, *, where: str, name: str, source: str
) -> None:
    options = CompareOptions(("a", "b"), metric=where, unit="x/s", better="higher")
    plan = plan_of(options, tmp_path)
    assert plan.metrics.primary == [name] == [judged(options)]
    assert commands(plan)["A"]["metrics"][name][source] == where
    assert plan.metrics.definitions[name].better == "higher"
    assert plan.metrics.secondary[0] == "elapsed_s"


def test_what_a_study_has_no_word_for_is_said_in_a_comment() -> None:
    text = study_text(CompareOptions(("a", "b"), setup="make clean"), runs=1)
    assert text.startswith("# Run once before this study:\n#   make clean\nstudy: compare\n")
    assert YAML(typ="safe").load(text)["arm"] == "command"
    kept = saved(text, variables="*")
    assert kept == f"# Measured with FAIRTRIAL_ENVIRONMENT='*': set it for `fairtrial run`, too.\n{text}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (CompareOptions(("true",)), "compare: expected at least two commands, found 1"),
        (CompareOptions(("a", "b"), names=("x",)), "--name: expected 2 names, one per command, found 1"),
        (CompareOptions(("a", "b"), names=("x", "x")), "--name: two commands have the same name"),
        (CompareOptions(("a", "b"), names=("x", "y z")), "--name: `y z` is not a valid name"),
        (CompareOptions(("true",) * 27), "expected at most 26 commands without names, found 27 (give --name)"),
        (CompareOptions(("a", "")), "the command line is empty"),
        (CompareOptions(("a", "b 'c")), "is not a command line: No closing quotation"),
        (CompareOptions(("a", "b | c")), "`|` needs a shell, and none is started (did you mean --shell?)"),
        (CompareOptions(("a", "b"), prepare="x > y"), "--prepare: `x > y`: `>` needs a shell"),
    ],
)
def test_mistakes_are_found_before_anything_starts(options: CompareOptions, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check(options)
    assert message in str(caught.value)


def test_a_bar_inside_quotes_is_an_argument_like_any_other() -> None:
    check(CompareOptions(("grep 'a|b' file", "grep a file")))
    check(CompareOptions(("grep '|' file", 'awk -F "|" x=">" file'), prepare='env x="a | b" true'))
    with pytest.raises(InputError, match="`>` needs a shell"):
        check(CompareOptions(("a", "grep '|' file > other")))
