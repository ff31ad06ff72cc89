from __future__ import annotations

import math

import calibrated_tuning as bench
import numpy as np
import pytest


def test_a_surface_has_the_gain_that_it_was_drawn_with_and_an_inert_one_none() -> None:
    random = np.random.default_rng(1)
    surface = bench.Surface.drawn(random, gain=bench.GAIN)
    assert surface.gain(surface.peaks) == pytest.approx(bench.GAIN)
    assert surface.gain(surface.default) == 0
    assert max(surface.gain(random.uniform(0, 1, (500, bench.OPTIONS)))) < bench.GAIN
    assert not bench.Surface.drawn(random, gain=0.0).gain(surface.peaks).any()


@pytest.mark.parametrize(("search", "runs"), [("random", 30), ("optuna", 2)])
def test_inert_options_are_promised_much_and_confirmed_little_and_real_ones_are_found(search: str, runs: int) -> None:
    inert = bench.simulate(bench.Setting(search, 0.05, 20, inert=True), runs=runs, seed=1)
    assert np.mean([each.promised for each in inert.ours]) > 0.03
    assert sum(each.claimed for each in inert.ours) <= 3
    assert all(abs(each.confirmed) < 0.1 for each in inert.ours)
    real = bench.simulate(bench.Setting(search, 0.01, 20, inert=False), runs=runs, seed=1)
    assert all(each.claimed and 0 < each.delivered < math.log(1.2) for each in real.ours)
    assert len(bench.cells(real)) == len(bench.cells(inert)) + 2
