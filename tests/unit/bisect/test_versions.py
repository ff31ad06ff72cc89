"""What a bisection is over, and where: levels as the command line names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial import plan
from fairtrial.bisect import compiling
from fairtrial.bisect.versions import Request, asked
from fairtrial.catalogue import catalogue
from fairtrial.errors import InputError
from fairtrial.queries import loaded
from fairtrial.study import Study

STUDY = """\
study: growth
system: {mariadb: {}}
workload: {oltp: {duration: 1s}}
factors:
  pages: {values: [0.25, 0.50, 1.00], of: system.mariadb.options.x}
  depth: {values: [2.00, 4.00], of: system.mariadb.options.y}
arm: pages
metrics: {primary: throughput_tps}
"""


def test_levels_of_numbers_are_named_in_any_way_to_write_them(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY, encoding="utf-8")
    question, _ = asked(Request(study, over="pages", first="1", last="0.50", at=["depth=4.00"]))
    assert [version.name for version in question.versions] == ["1.0", "0.5"]
    assert question.pinned == {"depth": "4.0"}
    assert question.alpha == pytest.approx(0.05)
    with pytest.raises(InputError, match=r"`0\.7` is not a level of pages"):
        asked(Request(study, over="pages", first="0.25", last="0.7"))
    with pytest.raises(InputError, match=r"`depth=8\.0` is not a level of another factor"):
        asked(Request(study, over="pages", first="0.25", last="1.0", at=["depth=8.0"]))
    strict = STUDY.replace("primary: throughput_tps", "primary: [throughput_tps, latency_ns_p99]")
    study.write_text(strict + "trials: {confidence: 99%}\n", encoding="utf-8")
    question, _ = asked(Request(study, over="pages", first="1", last="0.50", at=["depth=4.00"]))
    assert question.alpha == pytest.approx(0.005), "two metrics share it"


def test_what_classes_or_a_total_a_metric_has_is_asked_beside_the_margin(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    for metric, resolution, total in (
        ("latency_ns_p99", 1 / 1024, 0.0),
        ("throughput_tps", 0.0, 0.0),
        ("client_busy_share", 0.0, 1.0),
    ):
        study.write_text(STUDY.replace("throughput_tps", metric), encoding="utf-8")
        question, _ = asked(Request(study, over="pages", first="1", last="0.5", at=["depth=4"]))
        assert (question.limits.resolution, question.limits.total) == (resolution, total)
        assert ("resolution" in question.model_dump_json()) == bool(resolution), "as bisections of before have it"


def query(study: Path, text: str, *, over: str, ends: tuple[str, str]) -> Study:
    """The study of a query of the two ends."""
    study.write_text(text, encoding="utf-8")
    question, merged = asked(Request(study, over=over, first=ends[0], last=ends[1]))
    levels = {each.name: each.overlay for each in (question.versions[0], question.versions[-1])}
    pair = compiling.Pair(over, levels, blocks=2, seed=1, question="")
    return loaded(compiling.study_text(merged, pair, pinned=question.pinned))


def test_a_condition_on_the_factor_that_is_searched_is_named(tmp_path: Path) -> None:
    text = f"{STUDY}expect: {{'4': {{errors: <= 3}}}}\n"
    with pytest.raises(InputError, match=r"`4\.0` is an arm; a condition on what the arm itself changes would bias"):
        query(tmp_path / "study.yaml", text, over="depth", ends=("2", "4"))
    one = COMMAND.replace("label: {one: {}, two: {workload: {command: {label: two}}}}", "label: {one: {}}")
    with pytest.raises(InputError, match="factor `label` has only one level"):
        query(tmp_path / "study.yaml", one, over="label", ends=("one", "two"))


@pytest.mark.parametrize("written", ["4.00", "depth.4.0", "4"])
def test_what_is_expected_of_a_number_holds_however_it_is_written(tmp_path: Path, written: str) -> None:
    text = STUDY.replace("values: [2.00, 4.00]", "values: [4.00, 2.00]")
    text += f"expect: {{'{written}': {{errors: <= 3}}}}\n"
    found = query(tmp_path / "study.yaml", text, over="pages", ends=("0.25", "1"))
    assert [(each.factor, each.level, each.text) for each in found.expectations] == [("depth", "4.0", "<= 3")]


COMMAND = """\
study: programs
workload: {command: {run: a}}
factors:
  program: {a: {}, b: {workload: {command: {run: b}}}, c: {workload: {command: {run: c}}}}
  label: {one: {}, two: {workload: {command: {label: two}}}}
arm: program
metrics: {primary: elapsed_s}
"""


@pytest.mark.parametrize("levels", ["b: {workload: {command: {run: b}}}, c:", "c:"])
def test_a_query_of_a_duets_study_is_no_duet(tmp_path: Path, levels: str) -> None:
    """Its blocks run here one trial after the other, and of more than two levels a duet cannot be."""
    text = COMMAND.replace("b: {workload: {command: {run: b}}}, c:", levels) + "trials: {order: duet}\n"
    found = query(tmp_path / "study.yaml", text, over="program", ends=("a", "c"))
    made = plan.make(found, catalogue=catalogue())
    assert {trial.half for trial in made.trials} == {None}
    assert made.design.order == "randomised_blocks"


@pytest.mark.parametrize(("over", "ends"), [("program", ("a", "c")), ("label", ("one", "two")), ("none", ("x", "y"))])
def test_a_study_that_links_its_arms_has_no_queries(tmp_path: Path, over: str, ends: tuple[str, str]) -> None:
    objects = ", ".join(f"{name}: '/{name}/*.o'" for name in "abc")
    builds = f"builds: {{program: /prog, objects: {{{objects}}}, link: 'cc -o {{output}} {{objects}}'}}\n"
    with pytest.raises(InputError, match="`builds` links the programs of the study's own arms"):
        query(tmp_path / "study.yaml", COMMAND + builds, over=over, ends=ends)
