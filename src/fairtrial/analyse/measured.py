"""One arm's values of one metric, with their blocks and places in time, and their summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairtrial.analyse.inference import t_tests
from fairtrial.analyse.inference.t_tests import Values
from fairtrial.analyse.models import Summary
from fairtrial.record.models import TrialRecord


@dataclass(frozen=True)
class ArmValues:
    """Values in time order, shape (n,), in the metric's unit; `absent` counts used trials without a finite value.

    `hosts` has the host of each value, and is empty where trials name none; `layouts` likewise.
    """

    arm: str
    values: Values
    blocks: tuple[int, ...]
    positions: tuple[int, ...]
    absent: int
    hosts: tuple[str, ...] = ()
    layouts: tuple[str, ...] = ()

    @property
    def positive(self) -> bool:
        """Whether every value has a logarithm."""
        return bool((self.values > 0).all())

    def common(self, other: ArmValues) -> list[int]:
        """Blocks that both have, in the order of these."""
        others = set(other.blocks)
        return [block for block in self.blocks if block in others]

    def at(self, blocks: Sequence[int]) -> Values:
        """Values of some of its blocks, in their order."""
        by_block = dict(zip(self.blocks, self.values.tolist(), strict=True))
        return t_tests.array([by_block[block] for block in blocks])

    def hosts_at(self, blocks: Sequence[int]) -> list[str]:
        """Hosts of some of its blocks, in their order."""
        by_block = dict(zip(self.blocks, self.hosts, strict=True))
        return [by_block[block] for block in blocks]


def measured(trials: Sequence[TrialRecord], *, metric: str, arm: str) -> ArmValues:
    """Takes one metric out of an arm's trials."""
    present = [trial for trial in trials if math.isfinite(trial.scalars.get(metric, math.nan))]
    return ArmValues(
        arm=arm,
        values=t_tests.array([trial.scalars[metric] for trial in present]),
        blocks=tuple(trial.trial.block for trial in present),
        positions=tuple(trial.trial.position for trial in present),
        absent=len(trials) - len(present),
        hosts=tuple(trial.host for trial in present) if any(trial.host for trial in present) else (),
        layouts=tuple(trial.layout for trial in present) if any(trial.layout for trial in present) else (),
    )


def summary(of: ArmValues, *, confidence: float) -> Summary | None:
    """Mean, spread and Student's interval of the mean, descriptive only; None without values.

    The interval is of no use to compare arms: it holds what varies between blocks, which pairing takes out.
    """
    n = len(of.values)
    if n == 0:
        return None
    mean = float(np.mean(of.values))
    spread = t_tests.spread(of.values) if n >= t_tests.SMALLEST_N else None
    reach = None if spread is None else t_tests.quantile((1 + confidence) / 2, n - 1) * spread / math.sqrt(n)
    return Summary(
        arm=of.arm,
        n=n,
        mean=mean,
        sd=spread,
        low=None if reach is None else mean - reach,
        high=None if reach is None else mean + reach,
        median=float(np.median(of.values)),
        confidence=confidence,
        values=tuple(of.values.tolist()),
        blocks=of.blocks,
        positions=of.positions,
        hosts=of.hosts,
        layouts=of.layouts,
    )
