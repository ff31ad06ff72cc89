"""How often intervals of curves cover, and how often curves claim what is not there.

Trials of two arms follow the Universal Scalability Law at 1, 2, 4, … 64 users. Every block has a noise that its arms
share (2 %), every round one that all its blocks share (1 %), and every trial one of its own, the column's; *rising*
noise grows threefold from 1 to 64 users.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from calibrated_paths import ALPHA, CONFIDENCE, Setup
from scipy import special

from fairtrial.analyse.designs import curve_errors, usl
from fairtrial.analyse.designs.curve_errors import BlockErrors
from fairtrial.analyse.designs.curves import FEWEST_BLOCKS
from fairtrial.analyse.doubts.curves import MISFIT_LEVEL
from fairtrial.analyse.inference import confirming, families

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibrated_paths import Rate
    from numpy.typing import NDArray
    from simulated_noise import Values

USERS: Final = np.array([1.0, 2, 4, 8, 16, 32, 64])
NOISE: Final = {
    "1 %": (0.01, 1),
    "3 %": (0.03, 1),
    "5 %": (0.05, 1),
    "1 %, rising": (0.01, 3),
    "5 %, rising": (0.05, 3),
}
BLOCKS: Final = (4, 6, 10)
OF_BLOCK, OF_ROUND = 0.02, 0.01
FIRST: Final = (100.0, 0.03, 0.0006)  # peaks at 40.2 users
SECOND: Final = (85.0, 0.01, 0.0004)  # crosses the first
ALIKE: Final = (97.0, 0.03, 0.0006)  # 3 % below the first everywhere
ENDLESS: Final = (100.0, 0.03, 0.0)
BEND: Final = 0.1  # of the value at 8 users: what the law cannot follow


@dataclass(frozen=True)
class Fitted:
    """Arms that follow two laws, fitted: logs of shape (runs, blocks, users)."""

    logs: tuple[Values, Values]
    n: int

    @classmethod
    def of(cls, setup: Setup, *laws: Values) -> Fitted:
        random, (size, growth) = setup.random, NOISE[setup.noise]
        own, shape = size * np.linspace(1, growth, len(USERS)), (setup.runs, setup.n, len(USERS))
        shared = random.normal(0, OF_BLOCK, shape) + random.normal(0, OF_ROUND, (*shape[:2], 1))
        first, second = (law + shared + own * random.normal(0, 1, shared.shape) for law in laws)
        return cls((first, second), setup.n)

    @cached_property
    def means(self) -> list[Values]:
        return [each.mean(axis=1) for each in self.logs]

    @cached_property
    def theta(self) -> list[Values]:
        return [usl.fitted(each, USERS) for each in self.means]

    @cached_property
    def moves(self) -> list[Values]:
        slopes = [usl.gradient(each, USERS) for each in self.theta]
        return [np.asarray(np.linalg.pinv(each), dtype=np.float64) for each in slopes]

    @cached_property
    def errors(self) -> BlockErrors:
        apart = [each - mean[:, None] for each, mean in zip(self.logs, self.means, strict=True)]
        return BlockErrors(np.concatenate(apart, axis=2))

    @property
    def runs(self) -> int:
        return len(self.means[0])

    def alone(self, sums: Values) -> Values:
        """Weights of the first arm's means as weights of all."""
        return np.concatenate([sums, np.zeros_like(sums)], axis=2)

    def away(self, sums: Values) -> Values:
        error, quantile = curve_errors.reach(self.errors, sums, confidence=CONFIDENCE)
        return np.asarray(error * quantile)

    def peak(self) -> tuple[Values, Values]:
        sums = self.alone(usl.slope_moves(self.theta[0], self.moves[0]))
        quantile = np.full(self.runs, special.stdtrit(self.n - 1, (1 + CONFIDENCE) / 2))
        return usl.peak_interval(self.theta[0], self.errors.covariance(sums), reach=quantile)

    def apart(self, users: Values) -> tuple[Values, Values]:
        """The difference of both curves at some users, and its weights."""
        each = [usl.logs(theta, users) for theta in self.theta]
        first, second = (
            usl.gradient(theta, users) @ moves for theta, moves in zip(self.theta, self.moves, strict=True)
        )
        return each[1] - each[0], np.concatenate([-first, second], axis=2)

    def claims(self) -> NDArray[np.bool_]:
        """Whether each parameter is claimed to differ, a family of three, shape (runs, 3)."""
        change = self.theta[1] - self.theta[0]
        sums = np.concatenate([-self.moves[0], self.moves[1]], axis=2)
        error, _ = curve_errors.reach(self.errors, sums, confidence=CONFIDENCE)
        by_t = 2 * special.stdtr(self.n - 1, -np.abs(change / error))
        each = change[:, :, None] + np.swapaxes(self.errors.deviations @ np.swapaxes(sums, 1, 2), 1, 2)
        p = confirming.paired(by_t, each, level=ALPHA / 3, alpha=ALPHA)
        adjusted = np.stack([families.holm(row) for row in p])
        return np.asarray((adjusted < ALPHA) & (self.n >= FEWEST_BLOCKS))

    def crossing_shown(self) -> NDArray[np.bool_]:
        """Whether the second arm is shown to be above at one value and below at another."""
        difference, sums = self.apart(USERS)
        error, quantile = curve_errors.reach(self.errors, sums, confidence=1 - ALPHA / len(USERS))
        shown = np.sign(difference) * (np.abs(difference) > error * quantile)
        return np.asarray((shown.max(axis=1) > 0) & (shown.min(axis=1) < 0) & (self.n >= FEWEST_BLOCKS))

    def misfit_p(self) -> Values:
        slopes = usl.gradient(self.theta[0], USERS)
        left = np.linalg.svd(slopes, full_matrices=True)[0]
        residuals = self.means[0] - usl.logs(self.theta[0], USERS)
        across = self.alone(np.swapaxes(left[:, :, 3:], 1, 2))
        return curve_errors.misfit(np.concatenate([residuals, 0 * residuals], axis=1), across, self.errors)[3]

    def by_residuals(self) -> Values:
        """Half of the interval of each parameter as nls gives it after taking out rounds: one noise for all users."""
        k, centred = len(USERS), self.logs[0] - self.means[0][:, None]
        centred = centred - centred.mean(axis=2, keepdims=True)
        residuals = self.means[0] - usl.logs(self.theta[0], USERS)
        df = (k - 1) * (self.n - 1) + k - 3
        noise = (np.square(centred).sum(axis=(1, 2)) + self.n * np.square(residuals).sum(axis=1)) / df
        slopes = usl.gradient(self.theta[0], USERS)
        inverse = np.diagonal(np.linalg.inv(np.swapaxes(slopes, 1, 2) @ slopes), axis1=1, axis2=2)
        return np.asarray(special.stdtrit(df, (1 + CONFIDENCE) / 2) * np.sqrt(inverse * noise[:, None] / self.n))


def law(of: tuple[float, float, float]) -> Values:
    """Its logs at all users."""
    return usl.logs(np.array([np.log(of[0]), *of[1:]]), USERS)


def rates(setup: Setup) -> Iterator[Rate]:
    """Two arms that differ, two alike but for their rate, two without a peak, and one that is bent."""
    rate = setup.rate
    two = Fitted.of(setup, law(FIRST), law(SECOND))
    true = np.array([np.log(FIRST[0]), *FIRST[1:]])
    off = np.abs(two.theta[0] - true)
    held, nls = off <= two.away(two.alone(two.moves[0])), off <= two.by_residuals()
    for index, name in enumerate(usl.PARAMETERS):
        yield rate(name, "covers", held[:, index])
    for index, name in enumerate(usl.PARAMETERS[1:], start=1):
        yield rate(f"{name}, residuals of all blocks (nls)", "covers", nls[:, index], default=False)
    low, high = two.peak()
    peak = float(usl.peak(true))
    yield rate("peak", "covers", (np.nan_to_num(low, nan=0.0) <= peak) & (peak <= high))
    yield rate("peak shown within 64 users", "power", (low >= 1) & (high <= USERS[-1]))
    change = np.array([np.log(SECOND[0] / FIRST[0]), *(b - a for a, b in zip(FIRST[1:], SECOND[1:], strict=True))])
    covers = np.abs(two.theta[1] - two.theta[0] - change) <= two.away(
        np.concatenate([-two.moves[0], two.moves[1]], axis=2)
    )
    for index, name in enumerate(usl.PARAMETERS):
        yield rate(f"change of {name}", "covers", covers[:, index])
    spot = np.array([_crossing()])
    difference, sums = two.apart(spot)
    yield rate("crossing", "covers", (np.abs(difference) <= two.away(sums))[:, 0])
    yield rate("crossing shown", "power", two.crossing_shown())
    yield rate("a parameter differs, family of 3, Holm", "power", two.claims().any(axis=1))
    alike = Fitted.of(setup, law(FIRST), law(ALIKE))
    yield rate("sigma or kappa differ, family of 3, Holm", "false", alike.claims()[:, 1:].any(axis=1))
    yield rate("crossing shown", "false", alike.crossing_shown())
    yield rate("misfit", "false", alike.misfit_p() < MISFIT_LEVEL)
    endless = Fitted.of(setup, law(ENDLESS), law(ENDLESS))
    yield rate("peak shown where there is none", "false", np.isfinite(endless.peak()[1]))
    yield rate("a parameter differs, family of 3, Holm", "false", endless.claims().any(axis=1))
    bent = Fitted.of(setup, law(FIRST) + BEND * (USERS == 8), law(FIRST))  # noqa: PLR2004
    yield rate("misfit, 10 % at 8 users", "power", bent.misfit_p() < MISFIT_LEVEL)


def _crossing() -> float:
    """Users at which both laws give the same, by bisection."""
    low, high = 2.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2
        first, second = (of[0] / (1 + of[1] * (middle - 1) + of[2] * middle * (middle - 1)) for of in (FIRST, SECOND))
        low, high = (middle, high) if first > second else (low, middle)
    return low


PATHS: Final = {"curves": rates}
