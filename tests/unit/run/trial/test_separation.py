"""Client and server on processors of their own, where there are enough and nobody chose."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.facts import facts_of

from fairtrial.run.trial.separation import ENOUGH_PROCESSORS, separated
from fairtrial.settings import Effect


def test_one_processor_in_four_is_the_clients() -> None:
    effect = separated(Effect(), facts_of(processors=[7, 6, 5, 4, 3, 2, 1, 0]), served=True)
    assert effect.server_processors == (0, 1, 2, 3, 4, 5)
    assert effect.client_processors == (6, 7)


@pytest.mark.parametrize("chosen", [Effect(server_processors=(0,)), Effect(client_processors=(1,))])
def test_the_studys_own_choice_stays(chosen: Effect) -> None:
    assert separated(chosen, facts_of(processors=list(range(8))), served=True) == chosen


def test_an_embedded_system_and_a_small_place_are_left_alone() -> None:
    assert separated(Effect(), facts_of(processors=list(range(8))), served=False) == Effect()
    assert separated(Effect(), facts_of(processors=list(range(ENOUGH_PROCESSORS - 1))), served=True) == Effect()


@given(st.sets(st.integers(0, 500), min_size=ENOUGH_PROCESSORS))
def test_the_sets_share_nothing_and_leave_nothing_out(processors: set[int]) -> None:
    effect = separated(Effect(environment={"A": "b"}), facts_of(processors=list(processors)), served=True)
    server, client = set(effect.server_processors or ()), set(effect.client_processors or ())
    assert server
    assert client
    assert not server & client
    assert server | client == processors
    assert replace(effect, server_processors=None, client_processors=None) == Effect(environment={"A": "b"})
