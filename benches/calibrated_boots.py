"""Split-plots over boots: claims with the boot as the unit, and with the trial as one.

Arms do not differ. Logarithms scatter between boots and within them; each arm boots once in a round, and each boot has
several trials. `n` is boots of an arm, and the column is the scatter of boots to that of trials. fairtrial tests means
of boots; beside it stands the same test if every trial were a block, as `reboot: between_blocks` must not be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from calibrated_paths import ALPHA, CONFIDENCE, Setup

from fairtrial.analyse.inference import t_tests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibrated_paths import Rate
    from simulated_noise import Values

WITHIN: Final = 0.01  # between trials of a boot, on the logarithm
PER_BOOT: Final = (1, 3, 10)
SCATTER: Final = {"alike": 0.0, "0.3": 0.3, "1": 1.0, "3": 3.0}


def boots(setup: Setup) -> Iterator[Rate]:
    for trials in PER_BOOT:
        shape = (setup.runs, setup.n, trials)
        between = SCATTER[setup.noise] * WITHIN * setup.random.standard_normal((2, *shape[:2], 1))
        arms = between + WITHIN * setup.random.standard_normal((2, *shape))
        path = f"{trials} trials of each boot" if trials > 1 else "1 trial of each boot"
        yield from _rates(setup, path, np.log(np.exp(arms).mean(axis=3)), default=True)
        if trials > 1:
            yield from _rates(setup, f"{path}: as if blocks", arms.reshape(2, setup.runs, -1), default=False)


def _rates(setup: Setup, path: str, arms: Values, *, default: bool) -> Iterator[Rate]:
    claimed = (setup.p(arms[0], arms[1]) < ALPHA) & setup.may_claim(paired=True)
    yield setup.rate(path, "false", claimed, default=default)
    low, high = t_tests.paired_many(arms[0], arms[1]).interval(confidence=CONFIDENCE)
    yield setup.rate(path, "covers", (low <= 0) & (high >= 0), default=default)


PATHS: Final = {"boots": boots}
