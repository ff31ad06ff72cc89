"""raw_data.r: the raw data with base R that recomputes every mean, interval and p from them, knowing nothing of us."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Final

from fairtrial.analyse.inference.comparing import (
    ADJUSTED_LOGS,
    PAIRED_FLIPS,
    PAIRED_LOGS,
    PAIRED_UNITS,
    WELCH_LOGS,
    WELCH_UNITS,
)
from fairtrial.analyse.lower_bounds import CUT_OFF
from fairtrial.analyse.models import Analysis, CellResult, Comparison, Role, Summary
from fairtrial.report.designs import curves_in_r, interactions_in_r
from fairtrial.words import printable

PER_LINE: Final = 6
TEMPLATE: Final = "raw_data.r"
COVARIATES: Final = "covariates.r"  # of estimates adjusted for covariates
CURVES: Final = "curves.r"  # over a numeric factor
INTERACTIONS: Final = "interactions.r"  # of an arm's effect between conditions
HOSTS: Final = "hosts.r"  # of comparisons over several hosts
FAMILIES: Final[tuple[Role, ...]] = ("primary", "secondary")


def render(analysis: Analysis) -> str:
    """The script. `Rscript raw_data.r` prints one tab-separated row per comparison."""
    summaries = [each for cell in analysis.cells for found in cell.summaries.values() for each in found]
    layouts = any(each.layouts for each in summaries) and not any(each.hosts for each in summaries)
    hosts = layouts or any(each.hosts for each in summaries)
    lines = [
        f"# {_comment(analysis.study)}: {_comment(analysis.question)}",
        f"# compared: {_comment(analysis.contrast)}; ratios and differences are against the first level",
        *_looks(analysis),
        *(["# hosts are layouts here: the orders that programs were linked in"] if layouts else []),
        *_cut_off(analysis),
        "records <- list()",
        *_adding(hosts=hosts),
        f"confidence <- {analysis.confidence!r}",
        "",
    ]
    for cell in analysis.cells:
        for metric, found in {**cell.summaries, **cell.covariates}.items():
            for summary in found:
                lines += _data(cell, metric=metric, summary=summary)
    lines += ["", "comparisons <- list("]
    compared = [each for cell in analysis.cells for family in cell.comparisons.values() for each in family]
    lines += [",\n".join(map(_comparison, compared)), ")", _absent(compared)]
    lines += [*_adjusted(compared), *interactions_in_r.lines(analysis)]
    lines += curves_in_r.lines(analysis)
    templates = resources.files("fairtrial.report") / "page" / "templates"  # `report.page` imports what draws figures
    parts = ([HOSTS] if hosts else []) + [TEMPLATE] + ([COVARIATES] if _adjusted(compared) else [])
    parts += [INTERACTIONS] if interactions_in_r.lines(analysis) else []
    parts += [CURVES] if curves_in_r.lines(analysis) else []
    return "\n".join(lines) + "\n" + "".join((templates / part).read_text(encoding="utf-8") for part in parts)


def _adding(*, hosts: bool) -> list[str]:
    more, also = (", host", ", host = host") if hosts else ("", "")
    return [
        f"add <- function(metric, cell, arm, block, value{more})",
        "  records[[length(records) + 1]] <<-",
        f"    list(metric = metric, cell = cell, arm = arm, block = block, value = value{also})",
    ]


def _absent(compared: Sequence[Comparison]) -> str:
    """How many comparisons of each family there are no data of."""
    sizes = []
    for role in FAMILIES:
        family = [each.family_size for each in compared if each.role == role]
        sizes.append(f"{role} = {max(0, max(family, default=0) - len(family))}")
    return f"absent <- c({', '.join(sizes)})  # comparisons without data, which count as p = 1 in their family"


def _adjusted(compared: Sequence[Comparison]) -> list[str]:
    """What the script adjusts for, and whether that decides; nothing without covariates."""
    adjusted = {each.metric: each.covariates for each in compared if each.covariates is not None}
    if not adjusted:
        return []
    first = next(iter(adjusted.values()))
    names = ", ".join(_string(each.name) for each in first.covariates)
    by_class = (each for each in compared if each.covariates is not None and each.covariates.reason == "by_class")
    plain = ", ".join(_string(f"{each.metric} {each.cell} {each.arm}") for each in by_class)
    return [
        f"covariates <- c({names})",
        f"adjusted_metrics <- c({', '.join(map(_string, adjusted))})",
        f"by_class <- c({plain})  # not adjusted: values are known by class",
        f"adjusted_decide <- {'TRUE' if first.decides else 'FALSE'}  # then the last table has the report's p values",
    ]


def _looks(analysis: Analysis) -> list[str]:
    """What R's figures are not, where a run could stop early: of whichever factor, `stopping` is of the plan's arm."""
    families = (family for cell in analysis.cells for family in cell.comparisons.values())
    methods = [each.method for family in families for each in family if each.p_once is not None]
    rules = methods if analysis.stopping is None else [analysis.stopping.rule]
    if not rules:
        return []
    return [
        "# The run could stop early. R's p values and intervals below belong to a design with one look (`p_once` in",
        "# report.json); the report's intervals are wider, so that they hold with a look after every round:",
        f"# {_comment(rules[0])}",
    ]


def _cut_off(analysis: Analysis) -> list[str]:
    families = (family for cell in analysis.cells for family in cell.comparisons.values())
    if not any(each.method.endswith(CUT_OFF) for family in families for each in family):
        return []
    return [
        "# Some values were cut off at a limit. The report sets p to 1 where larger ones would deny a claim;",
        "# R takes all values as they are.",
    ]


def _data(cell: CellResult, *, metric: str, summary: Summary) -> list[str]:
    names = ", ".join(_string(name) for name in (metric, cell.cell, summary.arm))
    blocks = ", ".join(str(block) for block in summary.blocks)
    names_of = summary.hosts or summary.layouts
    hosts = f", c({', '.join(map(_string, names_of))})" if names_of else ""
    return [f"add({names}, c({blocks}), c(", *_wrapped(summary.values), f"){hosts})"]


def _wrapped(values: Iterable[float]) -> list[str]:
    printed = [repr(float(value)) for value in values]  # repr is the shortest text that reads back exactly
    starts = range(0, len(printed), PER_LINE)
    chunks = [", ".join(printed[start : start + PER_LINE]) for start in starts]
    return [f"  {chunk}," for chunk in chunks[:-1]] + [f"  {chunk}" for chunk in chunks[-1:]]


def _comparison(comparison: Comparison) -> str:
    names = (comparison.metric, comparison.cell, comparison.baseline, comparison.arm)
    paired = "TRUE" if comparison.method.startswith("paired") else "FALSE"
    family = f"family = {_string(comparison.adjustment)}, share = {comparison.baseline_share!r}"
    level = f"held = {_held(comparison)}, size = {max(1, comparison.family_size)}"
    exchanged = ", exchanged = TRUE" if _flips(comparison) else ""
    return f"  list({', '.join(_string(name) for name in names)}, paired = {paired}, {family}, {level}{exchanged})"


def _flips(comparison: Comparison) -> bool:
    """Whatever the method's name goes on with: values known by class, looks of a run that could stop early."""
    return comparison.method.startswith(PAIRED_FLIPS)


def _held(comparison: Comparison) -> str:
    """Whether p is held against exact tests: not where it is of many looks, of classes, of shuffled values."""
    plain = comparison.method in (PAIRED_LOGS, ADJUSTED_LOGS, PAIRED_UNITS, WELCH_LOGS, WELCH_UNITS)
    return "TRUE" if (plain or _flips(comparison)) and comparison.p_once is None else "FALSE"


def _string(text: str) -> str:
    """An R string: R reads JSON's escapes."""
    return json.dumps(text, ensure_ascii=False)


def _comment(text: str) -> str:
    """Text that stays on its comment's line."""
    return printable(" ".join(text.split()))
