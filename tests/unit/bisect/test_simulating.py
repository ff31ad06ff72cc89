"""Searches on many made-up histories at once: by the rules of the real one, and as rarely wrong as they say."""

from __future__ import annotations

import numpy as np
import pytest

from fairtrial.bisect.deciding import History, Limits, Measure, decide
from fairtrial.bisect.foreseeing import foreseen, render
from fairtrial.bisect.holding import ONE_CHANGE
from fairtrial.bisect.models import Bisection, Version
from fairtrial.bisect.simulating import NO_CHANGE, Truth, simulate


@pytest.mark.parametrize("seed", range(4))
def test_a_simulated_search_asks_and_answers_as_the_real_one_does(seed: int) -> None:
    """The same noise, drawn in the same order, gives the same number of blocks and the same answer."""
    levels = np.where(np.arange(17) >= 5 + seed, 0.05, 0.0)
    random = np.random.default_rng(seed)
    found = simulate(Truth(levels[None], lambda shape: random.normal(0, 0.03, shape)), blocks=400, margin=0.02)
    random = np.random.default_rng(seed)
    history = History(17)
    while isinstance(step := decide(history, Limits()), Measure):
        values = [float(levels[step.version] + random.normal(0, 0.03)) for _ in range(step.blocks)]
        history.log_ratios.setdefault(step.version, []).extend(values)
    assert int(found.blocks[0]) == history.blocks
    assert (found.outcome[0], found.interval[0] + 1) == (ONE_CHANGE, step.changes[0].at)


def test_searches_are_about_as_rarely_wrong_as_they_say_and_take_few_blocks() -> None:
    found = foreseen(64, noise=0.5, blocks=400, searches=300, seed=3)
    assert (found.outcome == ONE_CHANGE).mean() > 0.99
    at = np.random.default_rng(3).integers(1, 65, 300)
    assert (found.interval + 1 != at).mean() < 0.05
    assert found.blocks.mean() == pytest.approx(25, abs=3)


def test_a_change_of_just_the_margin_is_rarely_called_none_however_often_the_ends_are_looked_at() -> None:
    random = np.random.default_rng(5)
    levels = np.stack([np.zeros(1500), np.full(1500, np.log1p(0.02))], axis=1)
    found = simulate(Truth(levels, lambda shape: random.normal(0, 0.02, shape)), blocks=200, margin=0.02)
    assert (found.outcome == NO_CHANGE).mean() < 0.04


def test_where_nothing_changes_that_is_the_answer() -> None:
    random = np.random.default_rng(5)
    truth = Truth(np.zeros((200, 9)), lambda shape: random.normal(0, 0.01, shape))
    found = simulate(truth, blocks=400, margin=0.02)
    assert (found.outcome == NO_CHANGE).mean() > 0.95


def test_what_is_foreseen_names_versions_blocks_and_time() -> None:
    question = Bisection(
        fairtrial_version="0",
        study="history",
        over="commit",
        versions=[Version(name=f"c{number}") for number in range(9)],
        metric="elapsed_s",
        better="lower",
        seed=1,
        margin=0.02,
        blocks=400,
        build="make",
    )
    said = render(question, block_s=60.0)
    assert "commit: c0, c1, c2, …, c6, c7, c8" in said
    assert "8 possible changes" in said
    assert "0.5 × the step" in said
    assert "built once: `make`" in said
