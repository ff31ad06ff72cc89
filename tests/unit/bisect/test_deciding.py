"""From what was measured to what is next: the ends first, then versions by what they tell, then an answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from fairtrial.bisect.asking import gains
from fairtrial.bisect.deciding import Answer, Change, History, Limits, Measure, believed, decide, probabilities
from fairtrial.bisect.posterior import TWO_STEPS
from fairtrial.bisect.reading import confirming_blocks

SETTLED = [0.05, 0.05, 0.06, 0.05, 0.04, 0.05, 0.05, 0.05]
SLOW = 8  # a seed whose search is longer than most


def searched(history: History, level: Callable[[int], float], *, noise: float, limits: Limits, seed: int = 1) -> Answer:
    """Carries a search out on made-up blocks."""
    random = np.random.default_rng(seed)
    while isinstance(step := decide(history, limits), Measure):
        assert step.version not in history.gaps
        blocks = random.normal(level(step.version), noise, step.blocks)
        history.log_ratios.setdefault(step.version, []).extend(blocks.tolist())
    return step


def test_a_step_is_found_at_the_version_that_has_it_first() -> None:
    answer = searched(History(65), lambda version: 0.05 * (version >= 41), noise=0.02, limits=Limits())
    assert answer.outcome == "one_change"
    (change,) = answer.changes
    assert (change.after, change.at) == (40, 41)
    assert change.size == pytest.approx(0.05, abs=0.01)
    assert change.probability >= 0.95


def test_the_ends_are_settled_before_anything_between_them_is_measured() -> None:
    history = History(9)
    assert decide(history, Limits()) == Measure(8, 4, ends=True)
    history.log_ratios[8] = [0.02, -0.01, 0.04, 0.0]  # two standard errors
    step = decide(history, Limits())
    assert isinstance(step, Measure)
    assert step.version == 8
    history.log_ratios[8] = SETTLED
    assert decide(history, Limits()) == Measure(4, 1)


def test_the_ends_are_measured_again_once_blocks_show_more_noise() -> None:
    history = History(9)
    history.log_ratios = {8: [0.050, 0.051, 0.052, 0.051], 4: [0.15, -0.15], 5: [0.2, -0.1], 6: [0.1, -0.05]}
    assert decide(history, Limits()) == Measure(8, 1, ends=True)


def test_two_ends_that_are_alike_are_no_change_and_two_that_are_not_shown_to_be_are_undecided() -> None:
    alike = searched(History(9), lambda _: 0.0, noise=0.005, limits=Limits(margin=0.02))
    assert alike == Answer("no_change")
    unclear = searched(History(9), lambda _: 0.0, noise=0.2, limits=Limits(margin=0.02, blocks=40))
    assert unclear == Answer("undecided")


def test_a_change_within_the_margin_is_not_looked_for_however_well_it_is_known() -> None:
    seen = [0.010, 0.011, 0.009, 0.010]
    assert decide(History(9, log_ratios={8: seen}), Limits(margin=0.02)) == Measure(8, 1, ends=True)
    assert decide(History(9, log_ratios={8: [*seen, *seen]}), Limits(margin=0.02)) == Answer("no_change")
    assert decide(History(9, log_ratios={8: seen}), Limits(margin=0.005)) == Measure(4, 1)


@pytest.mark.parametrize(
    ("resolution", "margin", "expected"),
    [
        (1 / 64, 0.005, Answer("undecided")),
        (-0.018, 0.005, Answer("undecided")),
        (1 / 64, 0.02, Answer("no_change")),
        (1 / 1024, 0.005, Answer("no_change")),
    ],
)
def test_ends_of_one_class_are_alike_only_within_a_margin_that_is_wider(
    resolution: float, margin: float, expected: Answer
) -> None:
    limits = Limits(margin=margin, resolution=resolution)
    assert decide(History(9, log_ratios={8: [0.0] * 6}), limits) == expected


def test_classes_count_beside_what_noise_leaves_open() -> None:
    history = History(9, log_ratios={8: [0.004, -0.004, 0.003, -0.003, 0.004, -0.004]})
    assert decide(history, Limits(margin=0.02)) == Answer("no_change")
    step = decide(history, Limits(margin=0.02, resolution=1 / 64))
    assert isinstance(step, Measure)
    assert step.ends
    known = History(9, log_ratios={8: [0.005, 0.0051, 0.0049, 0.005, 0.0051, 0.0049]})
    assert decide(known, Limits(margin=0.02)) == Answer("no_change")
    assert decide(known, Limits(margin=0.02, resolution=1 / 64)) == Answer("undecided"), "no number of blocks would do"


def test_ends_whose_misses_grow_tenfold_are_no_change_of_nine_tenths_of_a_percent() -> None:
    shares = [(99.9 + 0.001 * number, 99.0) for number in range(8)]
    history = History(9, log_ratios={8: [float(np.log(end / first)) for first, end in shares]}, shares=shares)
    assert decide(history, Limits(margin=0.02)) == Answer("no_change")
    assert decide(history, Limits(margin=0.02, total=100.0)) == Measure(4, 1), "a change to look for"
    alike = History(9, log_ratios={8: [0.0] * 8}, shares=[(95.0, 95.0)] * 8)
    assert decide(alike, Limits(margin=0.02, total=100.0)) == Answer("no_change")


def test_two_steps_are_an_answer_of_their_own() -> None:
    def level(version: int) -> float:
        return 0.05 * (version >= 3) + 0.05 * (version >= 11)

    answer = searched(History(17), level, noise=0.01, limits=Limits())
    assert answer.outcome == "two_steps"
    assert [(each.after, each.at) for each in answer.changes] == [(2, 3), (10, 11)]
    assert [each.size for each in answer.changes] == pytest.approx([0.05, 0.05], abs=0.01)


def test_where_versions_cannot_be_built_the_answer_is_a_range() -> None:
    history = History(9, gaps={4, 5})
    answer = searched(history, lambda version: 0.05 * (version >= 5), noise=0.01, limits=Limits())
    (change,) = answer.changes
    assert (change.after, change.at) == (3, 6)


def test_a_search_that_may_not_go_on_names_what_holds_95_percent() -> None:
    answer = searched(
        History(65), lambda version: 0.05 * (version >= 41), noise=0.05, limits=Limits(blocks=60), seed=SLOW
    )
    assert answer.outcome == "undecided"
    (change,) = answer.changes
    assert change.after < 41 <= change.at
    assert change.at - change.after < 64
    assert change.probability >= 0.95 * (1 - TWO_STEPS)


def test_a_version_that_must_be_built_has_to_tell_more_than_one_that_is() -> None:
    history = History(9, log_ratios={8: SETTLED}, ready={0, 8, 5}, block_s=[1.0], ready_s=[60.0])
    assert decide(history, Limits()) == Measure(5, 1)
    history.ready_s = [0.001]
    assert decide(history, Limits()) == Measure(4, 1)


def test_a_block_tells_most_in_the_middle_nothing_at_the_end_and_never_more_than_a_bit() -> None:
    history = History(9, log_ratios={8: SETTLED * 20})
    told = gains(believed(history))
    assert told.argmax() == 3
    assert told[-1] == pytest.approx(0, abs=0.1)
    assert told.max() == pytest.approx(np.log(2), rel=0.15)
    assert (told >= 0).all()


def test_probabilities_name_versions_not_places_among_those_that_can_be_tested() -> None:
    history = History(5, gaps={2}, log_ratios={4: SETTLED, 1: [0.0, 0.01]})
    assert list(probabilities(history, believed(history))) == [1, 3, 4]


@pytest.mark.parametrize(("noise", "blocks"), [(0.001, 6), (0.05, 13), (0.1, 44), (1.0, 200)])
def test_a_confirmation_has_as_many_blocks_as_its_size_and_noise_need(noise: float, blocks: int) -> None:
    assert confirming_blocks(-0.05, noise) == blocks


def test_a_stricter_study_is_confirmed_with_as_many_blocks_as_can_claim_at_its_level() -> None:
    few, many = (confirming_blocks(0.1, 0.01, alpha=alpha) for alpha in (0.05, 0.01))
    assert (few, many) == (6, 8)  # ranks of n blocks reach 2 / 2ⁿ
    assert confirming_blocks(-0.05, 0.1, alpha=0.01) > confirming_blocks(-0.05, 0.1)


def test_the_same_history_gives_the_same_answer_in_whatever_order_it_was_measured() -> None:
    seen = {8: [0.05, 0.04, 0.06, 0.05], 4: [0.01], 6: [0.05], 5: [0.0]}
    histories = [History(9, log_ratios=dict(order)) for order in itertools.permutations(seen.items())]
    assert len({str(decide(each, Limits())) for each in histories}) == 1


def test_a_change_is_named_by_the_versions_around_it() -> None:
    history = History(3, log_ratios={2: [0.05, 0.05, 0.06, 0.05], 1: [0.05, 0.05, 0.05]})
    answer = decide(history, Limits())
    assert isinstance(answer, Answer)
    assert answer.changes == (Change(0, 1, pytest.approx(1, abs=0.05), pytest.approx(0.05, abs=0.01)),)
