"""A tuning's result as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from fairtrial.report import numbers
from fairtrial.tune.result import Confirmed, Flattery, TuneResult
from fairtrial.tune.searching import arm
from fairtrial.words import counted


def render(result: TuneResult) -> RenderableType:
    """The result for a person: what is claimed, what the search promised, and the values."""
    return Group(*_heading(result), Text(), _stages(result), Text(), *_claim(result), Text(), _options(result))


def _heading(result: TuneResult) -> Iterator[Text]:
    if result.question:
        yield Text(result.question, style="bold")
    states = {state: sum(each.state == state for each in result.proposals) for state in ("infeasible", "failed")}
    parts = [
        f"{result.metric.label}, {result.metric.better} is better",
        counted(len(result.proposals), "proposal"),
        *(f"{count} {state}" for state, count in states.items() if count),
        counted(result.trials, "trial"),
        f"seed {result.seed}",
    ]
    yield Text(" · ".join(parts))
    if not result.finished:
        yield Text("unfinished: nothing here is a claim")


def _stages(result: TuneResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in ("", "proposal", "blocks", "ratio to the default", "interval", "verdict"):
        table.add_column(column, justify="right" if column in {"blocks", "ratio to the default"} else "left")
    if (found := result.flattery) is not None:
        table.add_row("best of the search", arm(found.number), "1", numbers.ratio(found.promised), "", "no claim")
    for each in result.again:
        said = "no claim: breaches a guardrail" if each.breaches else "no claim"
        table.add_row("measured again", arm(each.number), str(each.blocks), numbers.ratio(each.ratio), "", said)
    for number in result.failed_again:
        table.add_row("measured again", arm(number), "", numbers.ABSENT, "", "no claim: failed")
    if (claim := result.confirmed) is not None:
        ratio, interval = numbers.ratio_and_interval(claim.ratio, claim.low, claim.high)
        table.add_row(
            "confirmation", arm(claim.number), str(claim.blocks), ratio, interval, claim.verdict, style="bold"
        )
    return table


def _claim(result: TuneResult) -> Iterator[Text]:
    claim = result.confirmed
    if claim is None:
        yield Text(f"no claim: {result.note or 'the confirmation has not ended'}")
    else:
        yield Text(claimed(claim), style="bold")
        for name, outcome in claim.guardrails.items():
            yield Text(f"guardrail {name}: {outcome}")
        if claim.doubts:
            yield Text(f"{counted(claim.doubts, 'doubt')} about the confirmation: see its report")
        if result.note:
            yield Text(f"note: {result.note}")
    if result.flattery is not None:
        yield Text(flattered(result.flattery, claim))


def claimed(claim: Confirmed) -> str:
    """The claim, with the guardrails it leaves open, or that there is none."""
    who = f"{arm(claim.number)} against the default"
    if claim.verdict != "faster":
        return f"no claim: {who} is {claim.verdict}"
    if not claim.is_claim:
        return f"no claim: {who} is faster, but breaches a guardrail"
    ratio, interval = numbers.ratio_and_interval(claim.ratio, claim.low, claim.high)
    open_ = ", ".join(name for name, outcome in claim.guardrails.items() if outcome != "kept")
    price = f"; not shown to keep its guardrails: {open_}" if open_ else ""
    share = numbers.percent(claim.confidence)
    size = f"no ratio exists ({share})" if claim.ratio is None else f"{ratio} times ({interval}, {share})"
    return f"claim: {who} is faster: {size}{price}"


def flattered(found: Flattery, claim: Confirmed | None) -> str:
    """By how much the best of the search flattered itself."""
    promised = f"the best block of the search promised {numbers.change(found.promised)} ({arm(found.number)}"
    promised += ")" if found.again is None else f"; measured again {numbers.change(found.again)})"
    if claim is None or claim.ratio is None or found.factor is None:
        return f"{promised}; no confirmed ratio stands against it"
    factor, interval = numbers.ratio_and_interval(found.factor, found.low, found.high)
    flattery = f"flattered by a factor of {factor} ({interval})"
    return f"{promised}, the confirmation found {numbers.change(claim.ratio)}: {flattery}"


def _options(result: TuneResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    confirmed = result.confirmed is not None and result.confirmed.is_claim
    for column in ("option", "default", "confirmed" if confirmed else "best"):
        table.add_column(column)
    for each in result.options:
        default = "the system's own" if each.default is None else str(each.default)
        table.add_row(each.name, default, numbers.ABSENT if each.best is None else str(each.best))
    return table
