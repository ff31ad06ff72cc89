"""When `fairtrial compare` stops: from its options to the design of the study that it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairtrial import plan as planning
from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.cli.compare import STOPS, CompareOutputs, compare, stopping
from fairtrial.cli.running.stopping import stopping_rule
from fairtrial.compare.compiling import CompareOptions, study_text
from fairtrial.errors import InputError
from fairtrial.record.models import Design, Plan


def chosen(stop: str = "sequential", *, blocks: int = 20, **options: Any) -> dict[str, Any]:
    return stopping(stop, **{"blocks": blocks, "min_blocks": None, "precision": None, **options})


def plan_of(trials: dict[str, Any], directory: Path, *, commands: int = 2) -> Plan:
    file = directory / "study.yaml"
    options = CompareOptions(tuple(f"sleep {each}" for each in range(commands)), stopping=trials)
    file.write_text(study_text(options, runs=1), encoding="utf-8")
    kinds = catalogue()
    return planning.make(study.load(file, catalogue=kinds), catalogue=kinds)


def design_of(trials: dict[str, Any], directory: Path, *, commands: int = 2) -> Design:
    return plan_of(trials, directory, commands=commands).design


def test_two_commands_are_first_looked_at_after_four_blocks_and_given_up_when_hopeless(tmp_path: Path) -> None:
    design = design_of(chosen(), tmp_path)
    assert (design.stop, design.blocks, design.min_blocks) == ("sequential", 20, 4)
    assert (design.spending, design.futility, design.equivalence) == ("pocock", True, True)
    assert design.order == "randomised_blocks"


def test_three_commands_show_each_others_spread_and_are_looked_at_a_block_earlier(tmp_path: Path) -> None:
    assert design_of(chosen(), tmp_path, commands=3).min_blocks == 3


@pytest.mark.parametrize(("blocks", "stop"), [(2, "fixed"), (3, "fixed"), (4, "sequential"), (5, "sequential")])
def test_fewer_blocks_than_a_first_look_takes_are_simply_run(blocks: int, stop: str, tmp_path: Path) -> None:
    design = design_of(chosen(blocks=blocks), tmp_path)
    assert (design.stop, design.blocks) == (stop, blocks)


def test_three_blocks_are_looked_at_by_whoever_asks_for_it(tmp_path: Path) -> None:
    design = design_of(chosen(blocks=3, min_blocks=3), tmp_path)
    assert (design.stop, design.min_blocks) == ("sequential", 3)


def test_the_number_is_fixed_where_that_is_asked(tmp_path: Path) -> None:
    assert chosen("fixed", blocks=7) == {"blocks": 7, "stop": "fixed"}
    plan = plan_of(chosen("fixed", blocks=7), tmp_path)
    assert stopping_rule(plan) is None
    assert len(plan.trials) == 14


def test_a_run_that_may_stop_has_a_rule(tmp_path: Path) -> None:
    for stop in ("sequential", "anytime"):
        assert stopping_rule(plan_of(chosen(stop), tmp_path)) is not None


def test_anytime_is_not_given_up(tmp_path: Path) -> None:
    design = design_of(chosen("anytime"), tmp_path)
    assert (design.stop, design.futility, design.spending) == ("anytime", False, None)


def test_precision_has_its_target_and_its_own_first_look(tmp_path: Path) -> None:
    design = design_of(chosen("precision", precision="1%"), tmp_path)
    assert (design.stop, design.precision, design.min_blocks) == ("precision", 0.01, 8)


@pytest.mark.parametrize(
    ("stop", "options", "said"),
    [
        ("sequental", {}, "unknown stopping rule `sequental`; expected one of `sequential`"),
        ("precision", {}, "--stop precision needs a precision"),
        ("sequential", {"precision": "1%"}, "--stop sequential does not use a precision"),
        ("fixed", {"precision": "1%"}, "--stop fixed does not use a precision"),
        ("fixed", {"min_blocks": 4}, "cannot decide after 4 blocks: --stop fixed decides only after all blocks"),
        ("sequential", {"min_blocks": 21}, "cannot decide after 21 blocks: --blocks is 20"),
        ("anytime", {"blocks": 5, "min_blocks": 6}, "cannot decide after 6 blocks: --blocks is 5"),
    ],
)
def test_what_says_nothing_is_refused(stop: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        chosen(stop, **options)
    (problem,) = caught.value.problems
    assert said in str(problem.message)


def test_a_misspelt_rule_is_answered_with_the_one_meant() -> None:
    with pytest.raises(InputError) as caught:
        chosen("sequental")
    assert "sequential" in str(caught.value.problems[0].suggestion)
    assert all(stop in str(caught.value) for stop in STOPS)


@pytest.mark.parametrize(
    ("metric", "runs", "message"),
    [
        (r"total: (\d+)-(\d+)", None, "expected exactly one group"),
        ("total", 2, "--runs: expected 1, as --metric reads the output of a single run, found 2"),
    ],
)
def test_what_a_study_may_not_say_is_refused_before_a_command_runs(
    tmp_path: Path, *, metric: str, runs: int | None, message: str
) -> None:
    ran, record = tmp_path / "ran", tmp_path / "record"
    options = CompareOptions((f"touch {ran}",) * 2, metric=metric)
    outputs = CompareOutputs(save=None, export=[], fail_if=[], output=record, runs=runs)
    with pytest.raises(InputError, match=message):
        compare(options, outputs)
    assert not ran.exists()
    assert not record.exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"export": ["adir.csv"]}, "--export: expected a file that can be written, found .*adir.csv"),
        ({"save": "adir.csv"}, "--save: expected a file that can be written"),
        ({"output": "file"}, "--output: expected a directory, found the file"),
    ],
)
def test_what_cannot_be_written_is_refused_before_a_command_runs(
    tmp_path: Path, *, given: dict[str, Any], message: str
) -> None:
    (tmp_path / "adir.csv").mkdir()
    (tmp_path / "file").touch()
    named = {key: [str(tmp_path / "adir.csv")] if key == "export" else tmp_path / name for key, name in given.items()}
    outputs = CompareOutputs(**{"save": None, "export": [], "output": None, **named}, fail_if=[], runs=None)
    with pytest.raises(InputError, match=message):
        compare(CompareOptions((f"touch {tmp_path / 'ran'}",) * 2), outputs)
    assert not (tmp_path / "ran").exists()


def test_a_file_that_is_there_may_be_written_whoever_owns_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("os.access", lambda path, _mode: not Path(path).is_dir())
    for save, refused in (("file", "--output: expected a directory"), ("new", "--save: expected a file that can be")):
        outputs = CompareOutputs(save=tmp_path / save, export=[], output=tmp_path / "file", fail_if=[], runs=None)
        with pytest.raises(InputError, match=refused):
            compare(CompareOptions(("true", "true")), outputs)
