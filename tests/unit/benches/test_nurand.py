"""How concentrated choices are."""

import random
from collections import Counter

import pytest
from nurand import effective, effective_nurand


def test_equal_counts_are_as_many_things_as_there_are() -> None:
    assert effective([1000] * 50) == pytest.approx(50, rel=1e-3)


def test_one_thing_alone_is_one() -> None:
    assert effective([40]) == 1


def test_uniform_draws_of_many_things_are_not_called_concentrated() -> None:
    """Few of 100,000 things are met twice in 30,000 draws; it is how few that counts."""
    random_numbers = random.Random(1)
    drawn = Counter(random_numbers.randint(1, 100_000) for _ in range(30_000))
    assert effective(list(drawn.values())) == pytest.approx(100_000, rel=0.06)


@pytest.mark.parametrize("constant", [0, 123])
def test_nurand_is_as_concentrated_as_its_definition_whatever_its_constant(constant: int) -> None:
    """Clause 2.1.6, drawn."""
    random_numbers = random.Random(1)
    joined = ((random_numbers.randint(0, 255) | random_numbers.randint(0, 999)) for _ in range(200_000))
    drawn = Counter((number + constant) % 1000 for number in joined)
    assert effective(list(drawn.values())) == pytest.approx(effective_nurand(255, 0, 999), rel=0.02)
