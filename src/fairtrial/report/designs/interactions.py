"""What tests of interactions say, in the same words for text, page and terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fairtrial.analyse.designs.interaction_models import (
    Interaction,
    InteractionReason,
    InteractionVerdict,
    LevelPair,
)
from fairtrial.analyse.models import Analysis
from fairtrial.analyse.result import Verdict
from fairtrial.report import numbers
from fairtrial.report.tables import TWO_ARMS

TITLE: Final = "Does the effect differ between conditions?"
NOTE: Final = (
    "One test per factor over all cells, on log ratios to the baseline: cells of other factors count alike, and every"
    " cell may have noise of its own (Johansen's test; of two levels Welch's t). Two factors: whether the change of the"
    " effect with one depends on the other. Adjusted p: Holm over all tests in this table. Equal noise p: the classical"
    " F test, as R's lm gives it, which claims too often where the noise of cells differs. Only primary metrics are"
    " tested; n is the number of blocks of a cell, without blocks that of trials of an arm."
)
LOOKED: Final = (
    "The data that these tests use also decided when each cell stopped. Their p values and intervals therefore ask for"
    " the boundary of the stopping rule, and a claim is exploratory: confirm it in a study with fixed blocks."
)
PLAIN: Final = "Not adjusted for covariates, whichever estimate the verdicts of cells come from."
PAIRS: Final = (
    "Ratio of ratios: the ratio to the baseline at the first level over that at the second, other conditions averaged."
    " Intervals hold for all pairs of a factor together; adjusted p: over the pairs of all tests."
)
_VERDICTS: Final[dict[InteractionVerdict, str]] = {"differs": "differs", "not_shown": "not shown", "none": "no verdict"}
_REASONS: Final[dict[InteractionReason, str]] = {
    "": "",
    "no_ratio": "no log ratios",
    "few_blocks": "too few blocks in a cell",
    "no_spread": "no spread",
    "no_verdict": "an expectation failed",
    "unfinished": "",
}
# Whether the arm is claimed to gain at the level where it does better, and to lose at the other; the latter is named
# first where only it is.
_WORDS: Final = {
    (True, True): "there is a gain with {first} and a loss with {second}",
    (True, False): "the gain is larger with {first} than with {second}",
    (False, True): "the loss is larger with {first} than with {second}",
    (False, False): "the effect is more favourable with {first} than with {second}",
}


@dataclass(frozen=True)
class Rows:
    """A table: header, rows, and how many columns are text."""

    header: tuple[str, ...]
    rows: list[list[str]]
    left: int


def tests(analysis: Analysis) -> Rows:
    """A row per test."""
    header = ("effect by", "cells", "n", "F", "df", "p", "equal noise p", "adjusted p", "verdict")
    rows = [
        [
            _subject(analysis, each),
            str(len(each.cells) or numbers.ABSENT),
            _span(each.fewest, each.most),
            numbers.ABSENT if each.f is None else f"{each.f:.2f}",
            _degrees(each),
            numbers.p_value(None if each.f is None else each.p),
            numbers.p_value(each.p_pooled),
            numbers.p_value(None if each.f is None else each.p_adjusted),
            _verdict(each),
        ]
        for each in analysis.interactions
    ]
    return Rows(header, rows, left=1)


def pairs(analysis: Analysis) -> Rows:
    """A row per pair of levels of every factor, the later level first."""
    share = numbers.percent(analysis.confidence)
    header = ("effect by", "levels", "ratio of ratios", f"{share} interval", "p", "adjusted p", "verdict")
    rows = [
        [
            _subject(analysis, each),
            f"{pair.second} / {pair.first}",
            *numbers.ratio_and_interval(pair.ratio, pair.low, pair.high),
            numbers.p_value(pair.p),
            numbers.p_value(pair.p_adjusted),
            _verdict(each) if each.reason else _VERDICTS["differs" if pair.claimed else "not_shown"],
        ]
        for each in analysis.interactions
        for pair in each.pairs
    ]
    return Rows(header, rows, left=2)


def levels(analysis: Analysis) -> Rows:
    """A row per level of every factor."""
    header = ("effect by", "level", "ratio", f"{numbers.percent(analysis.confidence)} interval")
    rows = [
        [_subject(analysis, each), at.level, *numbers.ratio_and_interval(at.ratio, at.low, at.high)]
        for each in analysis.interactions
        for at in each.levels
    ]
    return Rows(header, rows, left=2)


def notes(analysis: Analysis) -> list[str]:
    """How to read the tables."""
    looked = any(each.p_once is not None for each in analysis.interactions)
    compared = [each for cell in analysis.cells for family in cell.comparisons.values() for each in family]
    adjusted = any(each.covariates is not None for each in compared)
    return [NOTE, *([LOOKED] if looked else []), *([PLAIN] if adjusted else [])]


def sentences(analysis: Analysis) -> tuple[str, ...]:
    """Each claim, and in one sentence per metric and arm what is not shown; nothing without a verdict."""
    curved = {curve.over for curve in analysis.curves}  # curves say more than pairs of a numeric factor's levels
    tested = [each for each in analysis.interactions if each.verdict != "none" and not curved & {*each.factors}]
    said: list[str] = []
    for metric, arm in dict.fromkeys((each.metric, each.arm) for each in tested):
        own = [each for each in tested if (each.metric, each.arm) == (metric, arm)]
        said += [_claim(analysis, each) for each in own if each.verdict == "differs"]
        without = [each for each in own if each.verdict != "differs"]
        share = numbers.percent(analysis.confidence)
        open_ = [_not_shown(each, share=share) for each in without if each.reason != "few_blocks"]
        if open_:
            said.append(f"{_effect(analysis, own[0])} is not shown to differ between levels of {_joined(open_)}.")
        if few := [" and ".join(each.factors) for each in without if each.reason == "few_blocks"]:
            said.append(
                f"{_effect(analysis, own[0])} has too few blocks in a cell to be compared between levels of"
                f" {_joined(few)}."
            )
    return tuple(said)


def _claim(analysis: Analysis, test: Interaction) -> str:
    subject = _effect(analysis, test)
    if len(test.factors) > 1:
        first, second = test.factors
        return (
            f"{subject} depends on {first} and {second} together (adjusted p {_p(test)}): how {first} changes it"
            f" differs between levels of {second}."
        )
    found = list(_pairs_in_words(analysis, test))
    none = (
        "no pair of levels is shown to differ by itself" if test.pairs else "so many levels are not compared in pairs"
    )
    where = _joined(found) if found else none
    return f"{subject} differs between levels of {test.factors[0]} (adjusted p {_p(test)}): {where}."


def _pairs_in_words(analysis: Analysis, test: Interaction) -> Iterator[str]:
    """Of pairs that are claimed: where the arm does better, and by how much."""
    share, definition = numbers.percent(analysis.confidence), analysis.metrics[test.metric]
    (factor,) = test.factors
    for pair in (each for each in test.pairs if each.claimed and each.ratio is not None):
        upward = (pair.ratio > 1) == (definition.better == "higher") if pair.ratio is not None else False
        better, worse = (pair.second, pair.first) if upward else (pair.first, pair.second)
        gains, loses = _side(analysis, test, better) == "faster", _side(analysis, test, worse) == "slower"
        first, second = (worse, better) if loses and not gains else (better, worse)
        words = _WORDS[gains, loses]
        ratio, interval = numbers.ratio_and_interval(*_over(pair, first))
        named = {"first": f"{factor} {first}", "second": f"{factor} {second}"}
        times = f"the ratio with {named['first']} is {ratio} times that with {named['second']}"
        yield f"{words.format(**named)}: {times} ({share} interval {interval})"


def _side(analysis: Analysis, test: Interaction, level: str) -> Verdict:
    """What is claimed of the arm in cells at a level: gain and loss are said only where no claim is contrary."""
    (factor,) = test.factors
    cells = (cell for cell in analysis.cells if cell.cell in test.cells and cell.levels[factor] == level)
    verdicts = {each.verdict for cell in cells for each in cell.comparisons[test.metric] if each.arm == test.arm}
    claims = verdicts & {"faster", "slower"}
    return claims.pop() if len(claims) == 1 else "undecided"


def _over(pair: LevelPair, first: str) -> tuple[float | None, float | None, float | None]:
    """The ratio at a level of the pair over that at the other, with its interval."""
    if first == pair.second:
        return pair.ratio, pair.low, pair.high
    low, high = (None if end is None else 1 / end for end in (pair.high, pair.low))
    return None if pair.ratio is None else 1 / pair.ratio, low, high


def _not_shown(test: Interaction, *, share: str) -> str:
    """The factor and what the data leave open; of two factors their names."""
    name = " and ".join(test.factors)
    if len(test.pairs) == 1:
        (pair,) = test.pairs
        ratio, interval = numbers.ratio_and_interval(pair.ratio, pair.low, pair.high)
        return f"{name} (ratio of ratios {ratio}, {share} interval {interval})"
    ends = [end for pair in test.pairs for end in (pair.low, pair.high)]
    if not ends or None in ends:
        return f"{name} together" if len(test.factors) > 1 else name
    known = [end for end in ends if end is not None]
    return f"{name} (ratios of ratios within {numbers.ratio_interval(min(known), max(known))})"


def _effect(analysis: Analysis, test: Interaction) -> str:
    definition = analysis.metrics[test.metric]
    return f"The effect of {analysis.contrast} {test.arm} on {definition.label}"


def _subject(analysis: Analysis, test: Interaction) -> str:
    several = len({each.metric for each in analysis.interactions}) > 1
    parts = [analysis.metrics[test.metric].label] if several else []
    parts += [test.arm] if len(analysis.levels) > TWO_ARMS else []
    return " · ".join([*parts, " × ".join(test.factors)])


def _verdict(test: Interaction) -> str:
    why = _REASONS[test.reason]
    return f"none: {why}" if why else _VERDICTS[test.verdict]


def _degrees(test: Interaction) -> str:
    if test.df_between is None or test.df_within is None:
        return numbers.ABSENT
    return f"{test.df_between:g}, {test.df_within:.1f}"


def _span(fewest: int, most: int) -> str:
    if not most:
        return numbers.ABSENT
    return str(most) if fewest == most else f"{fewest}–{most}"


def _p(test: Interaction) -> str:
    return numbers.p_value(test.p_adjusted)


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else "; ".join(parts[:-1]) + " and " + parts[-1]
