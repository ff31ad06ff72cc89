"""Which bisection `--resume` goes on with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.command_line import ALIKE

from fairtrial.bisect.compiling import Pair, study_text
from fairtrial.bisect.loop import begin
from fairtrial.bisect.versions import Request, asked
from fairtrial.cli.running import bisect as command
from fairtrial.cli.running.bisect import _unfinished
from fairtrial.errors import InputError, PlaceError, RecordError
from fairtrial.queries import loaded

STUDY = ALIKE.replace("arm:", "  load: {low: {}, high: {settings: {environment: {LOAD: high}}}}\narm:")


@pytest.fixture
def whole(tmp_path: Path) -> Request:
    """A bisection over all three versions, begun; one over two of them began later."""
    (tmp_path / "study.yaml").write_text(STUDY)
    request = Request(tmp_path / "study.yaml", over="version", first="v0", last="v2", at=[], overrides=[])
    for number, each in enumerate((request, replace(request, last="v1"))):
        begin(tmp_path / "runs" / f"alike-bisect-{number}", *asked(each))
    return request


def test_it_is_the_one_that_asks_the_same_and_without_options_the_newest(whole: Request, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    assert _unfinished(whole, runs).name == "alike-bisect-0"
    assert _unfinished(replace(whole, last="v1"), runs).name == "alike-bisect-1"
    assert _unfinished(Request(whole.study, at=[], overrides=[]), runs).name == "alike-bisect-1"


NUMERIC = """\
study: grows
system: {sqlite: {}}
workload: {oltp: {duration: 5s}}
factors:
  engine: {one: {}, other: {system: {sqlite: {pragmas: {synchronous: "OFF"}}}}}
  users: {values: [1, 2, 4], of: workload.oltp.virtual_users}
arm: engine
metrics: {primary: throughput_tps}
"""


def test_values_are_levels_of_a_condition_and_of_what_is_bisected(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(NUMERIC)
    for request, pinned in (
        (Request(tmp_path / "study.yaml", over="engine", first="one", last="other", at=["users=2"]), {"users": "2"}),
        (Request(tmp_path / "study.yaml", over="users", first="1", last="4"), {"engine": "one"}),
    ):
        question, merged = asked(request)
        assert question.pinned == pinned
        levels = {each.name: each.overlay for each in (question.versions[0], question.versions[-1])}
        pair = Pair(question.over, levels, blocks=2, seed=1, question="?")
        study = loaded(study_text(merged, pair, pinned=question.pinned))
        assert [factor.level_names for factor in study.factors if factor.name == question.over] == [tuple(levels)]


@pytest.mark.parametrize("other", [{"first": "v1"}, {"at": ["load=high"]}, {"overrides": ["trials.margin=1 %"]}])
def test_another_question_is_not_continued(whole: Request, tmp_path: Path, other: dict[str, object]) -> None:
    with pytest.raises(RecordError, match="that asks this"):
        _unfinished(replace(whole, **other), tmp_path / "runs")  # type: ignore[arg-type]


def test_two_bisections_of_one_second_have_directories_of_their_own(
    whole: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "directory_name", "{}-now".format)
    begun = [command._created(*asked(whole), tmp_path / "runs").name for _ in range(2)]
    assert begun == ["alike-bisect-now", "alike-bisect-now-02"]


def test_an_output_where_nothing_can_be_made_is_named(whole: Request) -> None:
    with pytest.raises(PlaceError, match="cannot be created"):
        command._created(*asked(whole), whole.study)


def test_options_beside_a_named_bisection_are_refused(whole: Request, tmp_path: Path) -> None:
    named = tmp_path / "runs" / "alike-bisect-0"
    with pytest.raises(InputError, match="continues as it began"):
        _unfinished(replace(whole, study=named), tmp_path / "runs")
    for given in ({"blocks": 800}, {"repository": tmp_path}):
        with pytest.raises(InputError, match="continues as it began"):
            _unfinished(Request(named, at=[], overrides=[], **given), tmp_path / "runs")  # type: ignore[arg-type]
    assert _unfinished(Request(named, at=[], overrides=[]), tmp_path / "runs") == named


def test_blocks_beside_a_study_mean_a_bisection_of_so_many(whole: Request, tmp_path: Path) -> None:
    begin(tmp_path / "runs" / "alike-bisect-2", *asked(replace(whole, blocks=800)))
    found = [
        _unfinished(Request(whole.study, at=[], overrides=[], blocks=blocks), tmp_path / "runs").name
        for blocks in (None, 400, 800)
    ]
    assert found == ["alike-bisect-2", "alike-bisect-1", "alike-bisect-2"]
    with pytest.raises(RecordError, match="that asks this"):
        _unfinished(replace(whole, blocks=500), tmp_path / "runs")
