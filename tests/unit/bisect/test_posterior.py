"""The posterior over steps, against sums over every history that one could write down."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fairtrial.bisect import posterior as room
from fairtrial.bisect.posterior import Evidence, Posterior, posterior

SEEN = {2: [0.1, -0.3], 3: [1.2, 0.8, 1.1], 5: [1.0, 0.9]}  # log ratios by version; 1 and 4 are not tested
VERSIONS = 5


def evidence(seen: dict[int, list[float]]) -> Evidence:
    return Evidence(
        position=np.array(sorted(seen)),
        n=np.array([float(len(seen[each])) for each in sorted(seen)]),
        total=np.array([sum(seen[each]) for each in sorted(seen)]),
        squares=np.asarray(sum(value**2 for each in seen.values() for value in each)),
    )


def marginal(levels: dict[int, int]) -> float:
    """Density of what was seen, each version at a level by number (0: none), as a multivariate t: another way to it."""
    return sum(usual * _density(levels, spread) for spread, usual in zip(room.SPREADS, room.USUAL, strict=True))


def _density(levels: dict[int, int], spread: float) -> float:
    values = [value for version in sorted(SEEN) for value in SEEN[version]]
    at = [levels[version] for version in sorted(SEEN) for _ in SEEN[version]]
    covariance = np.eye(len(values))
    for level in {1, 2} & set(at):
        same = np.array([each == level for each in at], dtype=float)
        covariance += spread * np.outer(same, same)
    shape, scale = room.SHAPE, room.SHAPE * room.LEAST_NOISE**2
    return float(stats.multivariate_t.pdf(values, shape=covariance * scale / shape, df=2 * shape))


def by_hand() -> tuple[float, dict[int, float], dict[tuple[int, int], float]]:
    versions = range(1, VERSIONS + 1)
    one = {
        at: (1 - room.NO_CHANGE - room.TWO_STEPS) / VERSIONS * marginal({v: int(v >= at) for v in versions})
        for at in versions
    }
    pairs = list(itertools.combinations(versions, 2))
    two = {
        (first, second): room.TWO_STEPS
        / len(pairs)
        * marginal({v: 2 if v >= second else int(v >= first) for v in versions})
        for first, second in pairs
    }
    none = room.NO_CHANGE * marginal(dict.fromkeys(versions, 0))
    total = none + sum(one.values()) + sum(two.values())
    return (
        none / total,
        {at: share / total for at, share in one.items()},
        {pair: share / total for pair, share in two.items()},
    )


def found() -> Posterior:
    return posterior(evidence(SEEN), np.ones(VERSIONS))


def test_every_hypothesis_has_the_share_that_its_density_gives_it() -> None:
    none, one, two = by_hand()
    now = found()
    assert float(now.none) == pytest.approx(none)
    assert now.at_intervals(now.one) == pytest.approx(np.array(list(one.values())))
    assert float(now.two.sum()) == pytest.approx(sum(two.values()))
    between = sum(share for (first, second), share in two.items() if first <= 2 and second > 3)
    assert float(now.two[0, 2]) == pytest.approx(between)
    assert float(now.two[0, 0]) == pytest.approx(
        two[1, 2]
    )  # both before version 2: what was seen cannot tell them apart


def test_a_gap_holds_as_many_changes_as_it_hides() -> None:
    """Versions 1 to 3 cannot be built: a change in one of four places counts four times the one beside it."""
    seen = {1: [0.9, 1.1, 1.0], 2: [1.0, 1.1, 0.8]}
    now = posterior(evidence(seen), np.array([4.0, 1.0]))
    alike = posterior(evidence(seen), np.array([1.0, 1.0]))
    odds, even = (float(each.one[0] / each.one[1]) for each in (now, alike))
    assert odds == pytest.approx(4 * even)


def test_unused_places_and_other_searches_change_nothing() -> None:
    alone = found()
    one, other = evidence(SEEN), evidence({5: [0.2, 0.1]})
    room_for = (0, 2)
    padded = Evidence(
        position=np.array([np.pad(one.position, room_for, constant_values=VERSIONS), [VERSIONS] * 5]),
        n=np.array([np.pad(one.n, room_for), [*other.n, 0, 0, 0, 0]]),
        total=np.array([np.pad(one.total, room_for), [*other.total, 0, 0, 0, 0]]),
        squares=np.array([one.squares, other.squares]),
    )
    both = posterior(padded, np.ones(VERSIONS))
    assert both.culprits[0] == pytest.approx(alone.culprits)
    assert float(both.none[0]) == pytest.approx(float(alone.none))
    assert both.culprits[1] == pytest.approx(np.full(VERSIONS, both.culprits[1].mean()))


def test_the_level_and_the_noise_are_those_of_the_data() -> None:
    random = np.random.default_rng(1)
    seen = {version: list(random.normal(0.05 * (version >= 3), 0.02, 200)) for version in range(1, 6)}
    now = posterior(evidence(seen), np.ones(5))
    assert float(now.tail) == pytest.approx(0.05, abs=0.003)
    assert math.sqrt(float(now.noise)) == pytest.approx(0.02, rel=0.05)
    assert now.culprits.argmax() == 2
    assert now.culprits.max() > 0.99


def test_a_small_second_step_leaves_the_larger_one_the_answer() -> None:
    random = np.random.default_rng(2)
    levels = {1: 0.0, 2: 0.01, 3: 0.10, 4: 0.10}
    now = posterior(evidence({v: list(random.normal(level, 0.01, 300)) for v, level in levels.items()}), np.ones(4))
    assert float(now.two.sum()) > 0.99
    assert float(now.two_steps) < 0.01
    assert now.culprits.argmax() == 2
