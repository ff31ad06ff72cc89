"""A run set beside the publication that it re-runs: the same tables, and whether both say the same. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from fairtrial.analyse.models import Analysis, Comparison
from fairtrial.analyse.result import Verdict
from fairtrial.audit.comparisons import ArmComparison, tables
from fairtrial.audit.models import Levels, Rerun
from fairtrial.audit.reading import Dataset

ALPHA: Final = 0.05
Direction = Literal["better", "worse", "no difference", "open"]
SHOWN: Final = ("better", "worse")
# `faster` is better in the metric's direction, whatever the metric is.
VERDICTS: Final[Mapping[Verdict, Direction]] = {"faster": "better", "slower": "worse", "equivalent": "no difference"}
Untested = Literal["no verdict", "no evidence", "not run"]
UNTESTED: Final[tuple[Untested, ...]] = get_args(Untested)
Agreement = Literal["agree", "disagree", "only published", "only re-run", "neither", Untested]

_RunComparison = tuple[Levels, Comparison | None, Direction | Untested]
_NOT_RUN: Final[_RunComparison] = ({}, None, "not run")


@dataclass(frozen=True)
class RerunComparison:
    """One field of a published table with the run's comparison on one metric; None where the run has none.

    Attributes:
        at: levels of the other factors, in the publication's words.
        also: levels of factors that only the run has, in its words.
        there: what the publication's data say, Holm over its table.
        here: what the run says, or why it says nothing: no verdict (the run is unfinished, the cell is not what its
            name says, too few blocks, nothing that could be tested), or no evidence (a clock's metric under emulation).
    """

    table: str
    at: Levels
    also: Levels
    published: ArmComparison
    there: Direction
    metric: str
    comparison: Comparison | None
    here: Direction | Untested

    @property
    def said(self) -> Agreement:
        """Whether run and publication say the same of the arm; what was not tested is neither confirmed nor refuted."""
        if self.here in UNTESTED:
            return self.here
        there, here = self.there in SHOWN, self.here in SHOWN
        if there and (here or self.here == "no difference"):
            return "agree" if self.there == self.here else "disagree"
        return "only published" if there else "only re-run" if here else "neither"


def beside(dataset: Dataset, rerun: Rerun, analyses: Mapping[str, Analysis]) -> list[RerunComparison]:
    """Every field of every table of the publication, beside the run's analyses, by the study's factor compared."""
    rows = []
    for table in tables(dataset):
        better = dataset.description.metrics[table.description.metric].better
        analysis = analyses.get(rerun.factors[table.description.contrast].name)
        for each, p_adjusted in zip(table.comparisons, table.p_adjusted, strict=True):
            there = _published(each, p_adjusted, better=better)
            for metric in rerun.metrics.get(each.metric, []):
                here = [] if analysis is None else _comparisons(each, metric, rerun=rerun, analysis=analysis)
                rows += [
                    RerunComparison(
                        table=table.description.name,
                        at=each.at,
                        also=also,
                        published=each,
                        there=there,
                        metric=metric,
                        comparison=comparison,
                        here=said,
                    )
                    for also, comparison, said in here or [_NOT_RUN]
                ]
    return rows


def _comparisons(each: ArmComparison, metric: str, *, rerun: Rerun, analysis: Analysis) -> list[_RunComparison]:
    """The run's comparisons at these levels, one for each level of factors that only the run has."""
    at = rerun.levels(each.at)
    arms = rerun.factors[each.contrast].levels
    sides = arms[each.first], arms[each.second]
    comparisons: list[_RunComparison] = []
    if not set(sides) <= set(analysis.levels):
        return comparisons  # a size may leave an arm out
    for cell in analysis.cells:
        if at.items() <= cell.levels.items():
            also = {factor: level for factor, level in cell.levels.items() if factor not in at}
            compared = [one for one in cell.comparisons.get(metric, ()) if (one.baseline, one.arm) == sides]
            if compared:
                comparisons += [(also, one, _said(one, analysis)) for one in compared]
            elif any(summary.arm in sides for summary in cell.summaries.get(metric, ())):
                comparisons.append((also, None, "no verdict"))
    return comparisons


def _said(comparison: Comparison, analysis: Analysis) -> Direction | Untested:
    emulated = any(doubt.code == "emulated" for doubt in analysis.doubts)
    if emulated and analysis.metrics[comparison.metric].kind == "wall_clock":
        return "no evidence"
    untested = comparison.ratio.low is None and comparison.difference.low is None
    if comparison.verdict == "none" or not comparison.claimable or untested:
        return "no verdict"
    return VERDICTS.get(comparison.verdict, "open")


def _published(each: ArmComparison, p_adjusted: float, *, better: str) -> Direction:
    """A publication without a margin shows differences only, never that there is none."""
    if p_adjusted >= ALPHA:
        return "open"
    return "better" if (each.logs.estimate > 0) == (better == "higher") else "worse"
