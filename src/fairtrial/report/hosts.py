"""What comparisons over several hosts say, in the same words for the text and the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairtrial.analyse.hosts.comparing import FEWEST_HOSTS
from fairtrial.analyse.hosts.models import Heterogeneity, HostEffect, HostsReason, OverHosts
from fairtrial.analyse.models import Analysis
from fairtrial.report import numbers, tables
from fairtrial.report.tables import MetricTable, Row, word
from fairtrial.study.catalogue import MetricDefinition

NOTE: Final = (
    "Random effects of hosts on log ratios: Paule and Mandel's variance, Hartung and Knapp's interval, never narrower"
    " than if hosts did not differ. Ratio, interval, adjusted p and verdict are for hosts like these; the verdict of"
    " the first table is for these hosts. Further host: what one more host would measure with the median of these"
    " hosts' blocks, if that is 2 or more. Tau: standard deviation of the true effect over hosts. I²: share of the"
    " scatter of hosts' ratios that is not noise of their blocks. Equal p: of equal effects on all hosts. Where no host"
    " has two blocks, or blocks of a host do not vary, no noise is known to hold differences between hosts against."
)
MOST_SHOWN: Final = 40  # hosts; a farm may have hundreds
BY_HOST: Final = (
    "Each host by itself, descriptive only; intervals by the spread of blocks within all hosts together. Of more than"
    f" {MOST_SHOWN} hosts, those with the lowest and with the highest ratios; report.json has all."
)
WITHOUT: Final[dict[HostsReason, str]] = {
    "": numbers.ABSENT,
    "one_host": "none: one host",
    "few_hosts": f"none: fewer than {FEWEST_HOSTS} hosts",
    "not_paired": "none: trials are not paired",
    "between_hosts": "none: pairs lie between hosts",
    "no_ratio": "none: no log ratios of blocks",
    "guardrail": "none: a guardrail",
    "adjusted": "none: not adjusted for covariates",
}


def columns(table: MetricTable, row: Row, *, confidence: float) -> dict[str, str]:
    """A row of the table of hosts, printed: by column."""
    over = row.comparison.over_hosts
    share = numbers.percent(confidence)
    names = ("hosts", "ratio", f"{share} interval", "adjusted p", "further host", "tau", "I²", "equal p", "verdict")
    if over is None:
        return dict.fromkeys(names, numbers.ABSENT)
    known = over.heterogeneity
    printed = (
        str(len(over.hosts)),
        *numbers.ratio_and_interval(over.ratio, over.low, over.high),
        numbers.p_value(over.p_adjusted),
        numbers.ratio_interval(over.prediction_low, over.prediction_high),
        _tau(known),
        numbers.ABSENT if known is None else f"{100 * known.i2:.0f} %",
        numbers.ABSENT if known is None else numbers.p_value(known.p),
        verdict(over, table.definition),
    )
    return dict(zip(names, printed, strict=True))


def verdict(over: OverHosts, definition: MetricDefinition) -> str:
    """For hosts like these, or why there is none."""
    return WITHOUT[over.reason] if over.verdict is None else word(over.verdict, definition)


def by_host(rows: Sequence[Row], *, several: bool) -> list[list[str]]:
    """A row per host and comparison that has an estimate for it: where, host, blocks, ratio, interval."""
    return [
        [
            " · ".join([*row.levels.values(), *([row.arm.arm] if several else [])]) or "all",
            each.host,
            str(each.blocks),
            *numbers.ratio_and_interval(each.ratio, each.low, each.high),
        ]
        for row in rows
        if (over := row.comparison.over_hosts) is not None and over.ratio is not None
        for each in shown(over)
    ]


def shown(over: OverHosts) -> list[HostEffect]:
    """Each host, by name; of many the lowest and the highest ratios."""
    hosts = list(over.hosts)
    if len(hosts) <= MOST_SHOWN:
        return hosts
    hosts.sort(key=lambda each: each.ratio or 0.0)
    return hosts[: MOST_SHOWN // 2] + hosts[-(MOST_SHOWN // 2) :]


def by_host_header(confidence: float) -> tuple[str, ...]:
    """Of `by_host`; its first two columns are text."""
    return ("cell", "host", "blocks", "ratio", f"{numbers.percent(confidence)} interval")


def sentences(analysis: Analysis, judged: Sequence[MetricTable]) -> tuple[str, ...]:
    """What the verdicts of some metrics hold for; nothing if one place ran all trials."""
    rows = [
        (table, row, over)
        for table in judged
        for row in table.rows
        if (over := row.comparison.over_hosts) is not None and over.verdict != "none"
    ]
    if not rows:
        return ()
    here = f"Verdicts hold for the {tables.hosts([row for _, row, _ in rows])} that the blocks ran on."
    if {over.reason for _, _, over in rows} <= {"few_hosts", "one_host"}:
        return (f"{here} They say nothing of other hosts: that takes at least {FEWEST_HOSTS}.",)
    spots: dict[str, list[str]] = {}
    for table, row, over in rows:
        if over.verdict is not None:
            metric = [table.definition.label] if len(judged) > 1 else []
            arm = [row.arm.arm] if len(analysis.levels) > tables.TWO_ARMS else []
            spot = ", ".join([*metric, *row.levels.values(), *arm])
            spots.setdefault(verdict(over, table.definition), []).append(spot)
    said = "; ".join(f"{each}{f' at {_joined(at)}' if any(at) else ''}" for each, at in spots.items())
    return (f"{here} For hosts like these: {said}." if said else here,)


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _tau(known: Heterogeneity | None) -> str:
    if known is None:
        return numbers.ABSENT
    return f"{_percent(known.tau)} ({_percent(known.tau_low)}–{_percent(known.tau_high)})"


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.2g} %" if percent < 10 else f"{percent:,.0f} %"  # noqa: PLR2004 - two digits tell enough
