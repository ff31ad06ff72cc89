from __future__ import annotations

import calibrated_tuning as bench
import numpy as np
import pytest
from calibrated_paths import Rate, Setup


def test_a_surface_has_the_gain_that_it_was_drawn_with_and_an_inert_one_none() -> None:
    random = np.random.default_rng(1)
    surface = bench.Surface.drawn(random, gain=bench.GAIN)
    assert surface.gain(surface.peaks) == pytest.approx(bench.GAIN)
    assert surface.gain(surface.default) == 0
    assert max(surface.gain(random.uniform(0, 1, (500, bench.OPTIONS)))) < bench.GAIN
    assert not bench.Surface.drawn(random, gain=0.0).gain(surface.peaks).any()


@pytest.mark.parametrize(("search", "runs"), [("random", 30), ("optuna", 2)])
def test_inert_options_are_promised_much_and_confirmed_little_and_real_ones_are_found(search: str, runs: int) -> None:
    def rates(noise: str) -> dict[tuple[str, str], Rate]:
        setup = Setup(noise=noise, n=20, runs=runs, random=np.random.default_rng(1))
        return {(rate.path, rate.figure): rate for rate in bench.tunings(setup, search=search)}

    inert, real = f"{search}, inert options", f"{search}, a gain of 20 %"
    loud, quiet = rates("5 %"), rates("1 %")
    assert loud[inert, "promised"].estimate > 0.03
    assert loud[inert, "false"].total <= 3
    assert abs(loud[inert, "confirmed"].estimate) < 0.1
    assert quiet[real, "power"].estimate == 1
    assert 0 < quiet[real, "found"].estimate < 1
