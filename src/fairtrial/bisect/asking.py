"""Which version to measure next: the most expected information per second. Pure."""

from __future__ import annotations

import numpy as np

from fairtrial.bisect.posterior import Floats, Integers, Posterior


def gains(posterior: Posterior) -> Floats:
    """Expected information of one more block of each version behind the reference, about where the steps are, in nats.

    A version is at level 0, between two steps, or at the end's level. What a block tells of that is bounded by how
    uncertain the level is, and by what a normal channel carries at that variance (Cover and Thomas, Elements of
    Information Theory, section 9.1); the smaller bound is nearly reached where signals are strong, or weak.
    """
    after = posterior.tested_after
    passed = _passed(posterior, after)
    begun = _up_to(posterior.first, after, passed)
    ended = np.minimum(_up_to(posterior.last, after, passed), begun)
    middle = posterior.middle
    mean = _across(posterior.two * middle, after, passed)
    square = _across(posterior.two * (middle**2 + posterior.middle_spread), after, passed)
    tail = posterior.tail[..., None]
    level = ended * tail + mean
    variance = np.maximum(ended * tail**2 + square - level**2, 0)
    noise = posterior.noise[..., None]
    return np.minimum(np.log1p(variance / noise) / 2, _entropy(1 - begun, begun - ended, ended))


def next_version(posterior: Posterior, seconds: Floats) -> Integers:
    """The version, counted from 1, whose next block promises most per second.

    Args:
        posterior: so far.
        seconds: what a block of each version costs, with what must be built or fetched first.
    """
    return np.asarray(1 + np.argmax(gains(posterior) / seconds, axis=-1))


def _passed(posterior: Posterior, after: Integers) -> Floats:
    """How much of the way from the tested version before to the one after has been made, by prior weight."""
    bounds = posterior.cumulative[posterior.evidence.position]
    high = np.take_along_axis(bounds, after, axis=-1)
    low = np.take_along_axis(
        np.concatenate([np.zeros_like(bounds[..., :1]), bounds[..., :-1]], axis=-1), after, axis=-1
    )
    return np.asarray((posterior.cumulative[1:] - low) / (high - low))


def _up_to(shares: Floats, after: Integers, passed: Floats) -> Floats:
    """Probability that the step lies at or before each version."""
    through = np.cumsum(shares, axis=-1)
    here = np.take_along_axis(shares, after, axis=-1)
    return np.asarray(np.take_along_axis(through, after, axis=-1) - (1 - passed) * here)


def _across(pairs: Floats, after: Integers, passed: Floats) -> Floats:
    """Sum over pairs of steps of which the first lies before each version and the second behind it."""
    through = np.triu(np.cumsum(pairs, axis=-2), 1).sum(axis=-1)
    at = np.take_along_axis(through, after, axis=-1)
    before = np.take_along_axis(
        np.concatenate([np.zeros_like(at[..., :1]), through[..., :-1]], axis=-1), after, axis=-1
    )
    return np.asarray(passed * at + (1 - passed) * before)


def _entropy(*shares: Floats) -> Floats:
    total = np.zeros_like(shares[0])
    for share in shares:
        positive = np.clip(share, np.finfo(float).tiny, 1)
        total -= positive * np.log(positive)
    return total
