"""After how many blocks a run is first looked at, if its study does not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairtrial import plan as planning
from fairtrial import study
from fairtrial.catalogue import catalogue
from fairtrial.study.file_model import Trials, first_look_of

STUDY = """
study: first-look
question: When is it looked at?
workload: {command: {run: "true"}}
factors:
  version: {%s}
%s
arm: version
trials: {%s}
metrics: {primary: [%s]}
"""


def design(directory: Path, *, arms: int = 2, cells: int = 1, trials: str = "", metrics: str = "elapsed_s") -> object:
    levels = ", ".join(f"v{each}: {{workload: {{command: {{run: 'true {each}'}}}}}}" for each in range(arms))
    loads = ", ".join(f"l{each}: {{workload: {{command: {{warm_ups: {each}}}}}}}" for each in range(cells))
    path = directory / "study.yaml"
    text = STUDY % (levels, f"  load: {{{loads}}}" if cells > 1 else "", trials, metrics)
    path.write_text(text, encoding="utf-8")
    kinds = catalogue()
    return planning.make(study.load(path, catalogue=kinds), catalogue=kinds).design.min_blocks


@pytest.mark.parametrize(("arms", "cells", "first"), [(2, 1, 4), (3, 1, 3), (2, 2, 3), (3, 2, 3)])
def test_one_comparison_waits_a_block_longer_because_nothing_else_shows_its_spread(
    *, arms: int, cells: int, first: int, tmp_path: Path
) -> None:
    assert design(tmp_path, arms=arms, cells=cells, trials="stop: sequential") == first
    assert design(tmp_path, arms=arms, cells=cells, trials="stop: anytime") == first


def test_another_metric_does_not_show_the_spread_of_this_one(tmp_path: Path) -> None:
    assert design(tmp_path, trials="stop: sequential", metrics="elapsed_s, user_s") == 4


@pytest.mark.parametrize("said", [3, 5, 9])
def test_what_the_study_says_counts(said: int, tmp_path: Path) -> None:
    assert design(tmp_path, trials=f"stop: sequential, min_blocks: {said}") == said
    assert design(tmp_path, cells=2, trials=f"stop: sequential, min_blocks: {said}") == said


def test_a_fixed_number_has_no_first_look(tmp_path: Path) -> None:
    assert design(tmp_path, trials="stop: fixed") is None
    assert Trials(blocks=5).first_look(comparisons=1) is None


def test_it_is_never_after_the_last_block() -> None:
    assert [first_look_of("sequential", comparisons=1, blocks=blocks) for blocks in (2, 3, 4, 5, 100)] == [
        2,
        3,
        4,
        4,
        4,
    ]
    assert [first_look_of("anytime", comparisons=9, blocks=blocks) for blocks in (2, 3, 4)] == [2, 3, 3]
    assert [first_look_of("precision", comparisons=1, blocks=blocks) for blocks in (6, 8, 20)] == [6, 8, 8]
    assert first_look_of("precision", comparisons=9, blocks=20) == 8
