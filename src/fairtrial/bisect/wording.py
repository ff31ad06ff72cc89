"""A bisection's result in words: the table of versions, the answer, its confirmation, and what it cost. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from fairtrial.bisect.models import CONFIDENCE, Bisection, BisectResult, Confirmed, FoundChange, Version, VersionResult
from fairtrial.bisect.reading import CONFIRMED_OUTCOMES
from fairtrial.report.numbers import ABSENT, change, percent, ratio_and_interval
from fairtrial.report.text import columns
from fairtrial.words import counted, duration

_LEAST_SHOWN: Final = 0.005  # probability of a version that was not measured, to be in the table
_UNCLAIMED: Final = "only a confirmed change is a claim"


def render(result: BisectResult) -> str:
    """The text that a reader would post."""
    parts = [_heading(result), _table(result), answer(result)]
    parts += [_confirmed(result, each) for each in result.confirmations]
    parts += [_gaps(result), _cost(result)]
    return "\n\n".join(part for part in parts if part) + "\n"


def settled(result: BisectResult) -> bool:
    """Whether the question has an answer that stands: no change, or changes that were all confirmed."""
    if result.outcome == "no_change":
        return True
    return (
        result.outcome in CONFIRMED_OUTCOMES
        and len(result.confirmations) == len(result.changes)
        and all(e.agrees for e in result.confirmations)
    )


def answer(result: BisectResult) -> str:
    """What the search found, in a sentence or two."""
    question = result.bisection
    first, last = question.versions[0].name, question.versions[-1].name
    margin = percent(question.margin)
    match result.outcome:
        case "no_change":
            return f"no change: {question.metric} of {last} is within {margin} of {first}'s"
        case "one_change":
            return f"one change: {_change(result, result.changes[0])}"
        case "two_steps":
            steps = "\n".join(f"  {_change(result, each)}" for each in result.changes)
            return f"two steps ({percent(round(result.two_steps or 0, 3))}):\n{steps}"
    if not result.changes:
        return (
            f"undecided after {counted(result.blocks, 'block')}: the ends are neither shown to differ by more than "
            f"{margin} nor to be within it; {_remedy(question)}"
            if result.two_steps is None
            else f"undecided after {counted(result.blocks, 'block')}: one change does not explain what was measured"
        )
    where = _between(question.versions, result.changes[0])
    return f"undecided after {counted(result.blocks, 'block')}: 95 % of one change is {where}; raise --blocks"


def _remedy(question: Bisection) -> str:
    """Of ends that are not settled."""
    if abs(math.log1p(-question.resolution)) < math.log1p(question.margin) / 2:  # what is left is for the noise
        return "raise --blocks, or reduce the noise"
    classes = percent(round(abs(question.resolution), 4))
    return f"{question.metric} has classes of {classes}: set trials.margin to more, or choose another metric"


def headline(result: BisectResult) -> str:
    """The answer in a few words, for a figure."""
    versions = result.bisection.versions
    changes = [f"{change(each.ratio)} at {_names(versions, each)}" for each in result.changes]
    said = result.outcome.replace("_", " ")
    return f"{result.bisection.metric}: {', '.join([said, *changes])}"


def _names(versions: Sequence[Version], found: FoundChange) -> str:
    first, last = versions[found.after + 1].name, versions[found.at].name
    return last if first == last else f"{first} … {last}"


def _change(result: BisectResult, found: FoundChange) -> str:
    moved = f"{result.bisection.metric} {change(found.ratio)} (probability {percent(round(found.probability, 3))})"
    return f"{_between(result.bisection.versions, found)}, {moved}"


def _between(versions: Sequence[Version], found: FoundChange) -> str:
    """One version, or the range that gaps leave."""
    at = versions[found.at]
    if found.at == found.after + 1:
        return _named(at)
    low = versions[found.after + 1]
    return f"one of {counted(found.at - found.after, 'version')}, from {_named(low)} to {_named(at)}"


def _named(version: Version) -> str:
    return f"{version.name} ({version.subject})" if version.subject else version.name


def _heading(result: BisectResult) -> str:
    question = result.bisection
    pinned = "".join(f" · {factor} {level}" for factor, level in question.pinned.items())
    unit = f", {question.unit}" if question.unit else ""
    return (
        f"{question.study} · {question.over} from {question.versions[0].name} to {question.versions[-1].name}{pinned}\n"
        f"{question.metric}{unit}, {question.better} is better · paired with {question.versions[0].name} in blocks"
    )


def _table(result: BisectResult) -> str:
    """Every version that was measured or is still suspected; runs of others are one line."""
    rows: list[list[str]] = []
    skipped = 0
    for number, version in enumerate(result.versions):
        shown = number == 0 or version.blocks or version.gap or (version.probability or 0) >= _LEAST_SHOWN
        if not shown:
            skipped += 1
            continue
        rows += [_skipped(skipped)] * bool(skipped)
        skipped = 0
        rows.append(_row(version, reference=number == 0))
    head = [result.bisection.over, "blocks", "ratio", "95 % interval", "changed here"]
    if all(version.probability is None for version in result.versions):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return "\n".join(columns.table(head, rows, left=1))


def _row(version: VersionResult, *, reference: bool) -> list[str]:
    if reference:
        return [version.name, ABSENT, "1", ABSENT, ABSENT]
    if version.gap:
        return [version.name, "left out", ABSENT, ABSENT, ABSENT]
    shown = ABSENT if version.probability is None else f"{version.probability * 100:.1f} %"
    ratio, interval = ratio_and_interval(version.ratio, version.low, version.high)
    return [version.name, str(version.blocks), ratio, interval, shown]


def _skipped(count: int) -> list[str]:
    return [f"({counted(count, 'version')} not measured)", "", "", "", ""]


def _confirmed(result: BisectResult, found: Confirmed) -> str:
    versions = result.bisection.versions
    said = "confirmed" if found.agrees else "not confirmed"
    ratio, interval = ratio_and_interval(found.ratio, found.low, found.high)
    level = "" if found.confidence == CONFIDENCE else f" at {percent(found.confidence)}"
    return (
        f"{said}: {versions[found.at].name} against {versions[found.after].name}, "
        f"{counted(found.n, 'block')} of its own: ratio {ratio} ({interval}{level}), {found.verdict}"
        + ("" if found.agrees else f"\n  {_UNCLAIMED}")
        + _part(result, found)
    )


def _part(result: BisectResult, found: Confirmed) -> str:
    """How much of the whole change one change is, where their intervals leave room for another."""
    whole = result.versions[-1]
    if result.outcome != "one_change" or found.ratio is None or whole.ratio is None:
        return ""
    below, above = (found.high or math.inf) < (whole.low or 0.0), (found.low or 0.0) > (whole.high or math.inf)
    smaller = below if whole.ratio > 1 else above
    if not (found.agrees and smaller):
        return ""
    share = math.log(found.ratio) / math.log(whole.ratio)
    later, earlier = (result.bisection.versions[number].name for number in (found.at, found.after))
    return (
        f"\n  that is {share * 100:.0f} % of the whole change ({change(whole.ratio)}): there may be another; "
        f"bisect again from {later}, or up to {earlier}"
    )


def _gaps(result: BisectResult) -> str:
    return "\n".join(f"left out: {each.name}: {each.gap}" for each in result.versions if each.gap)


def _cost(result: BisectResult) -> str:
    confirming = sum(each.n for each in result.confirmations)
    return (
        f"{counted(result.blocks, 'block')} of two trials, {result.ends_blocks} of them of the two ends, in "
        f"{duration(result.seconds)}" + (f"; {counted(confirming, 'block')} to confirm" if confirming else "")
    )
