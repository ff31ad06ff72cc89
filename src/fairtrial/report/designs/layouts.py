"""What comparisons say of programs linked in several orders, in the same words for text, page and summary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median
from typing import Final

from fairtrial.analyse.designs.layout_models import OverLayouts
from fairtrial.analyse.hosts.comparing import FEWEST_HOSTS
from fairtrial.report import hosts, numbers
from fairtrial.report.tables import MetricTable, Row
from fairtrial.words import counted

SHARE: Final = "variance"
NOTE: Final = (
    "Each block ran one order of linking, the same for all arms. Random effects of layouts on log ratios, with the"
    " methods that apply to hosts: ratio, interval, adjusted p and verdict are for layouts like these; the verdict of"
    " the first table is for these layouts. Further layout: what one more order would measure with the median of these"
    " layouts' blocks, if that is 2 or more. Tau: standard deviation of the true effect over layouts. Variance: share"
    " of the variance of a block's ratio that lies between layouts. Equal p: of equal effects in all layouts."
)


def over_layouts(rows: Iterable[Row]) -> list[OverLayouts]:
    """Of the rows whose programs were linked in several orders."""
    return [row.comparison.over_layouts for row in rows if row.comparison.over_layouts is not None]


def columns(table: MetricTable, row: Row, *, confidence: float) -> dict[str, str]:
    """A row of the table of layouts, printed: by column."""
    printed = hosts.columns(table, _as_hosts(row), confidence=confidence)
    over = row.comparison.over_layouts
    share = numbers.ABSENT if over is None or over.share is None else f"{100 * over.share:.0f} %"
    named = {name.replace("host", "layout"): value.replace("host", "layout") for name, value in printed.items()}
    verdict = named.pop("verdict")
    return {**named, SHARE: share, "verdict": verdict}


def by_layout(rows: Sequence[Row], *, several: bool) -> list[list[str]]:
    """A row per layout and comparison: where, layout, blocks, ratio, interval."""
    return hosts.by_host([_as_hosts(row) for row in rows], several=several)


def header(confidence: float) -> tuple[str, ...]:
    """Of `by_layout`; its first two columns are text."""
    return ("cell", "layout", *hosts.by_host_header(confidence)[2:])


def sentences(judged: Sequence[MetricTable]) -> tuple[str, ...]:
    """What the verdicts of some metrics hold for; nothing without several orders of linking."""
    found = over_layouts(row for table in judged for row in table.rows)
    if not found:
        return ()
    count = counted(len(found[0].hosts), "layout")
    here = f"Verdicts hold for the {count} that each program was linked in."
    shares = [each.share for each in found if each.share is not None]
    part = f" {100 * median(shares):.0f} % of the variance of a block's ratio lies between layouts." if shares else ""
    judged_over = [
        hosts.verdict(each, table.definition)
        for table in judged
        for each in over_layouts(table.rows)
        if each.verdict not in (None, "none")
    ]
    if not judged_over:
        few = {each.reason for each in found} <= {"few_hosts", "one_host"}
        takes = f": that takes at least {FEWEST_HOSTS}" if few else ""
        return (f"{here}{part} They say nothing of others{takes}.",)
    return (f"{here}{part} For layouts like these: {', '.join(dict.fromkeys(judged_over))}.",)


def _as_hosts(row: Row) -> Row:
    return replace(row, comparison=row.comparison.model_copy(update={"over_hosts": row.comparison.over_layouts}))
