"""A run set beside the publication that it re-runs: the same tables, and whether both say the same. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from fairtrial.analyse.models import Analysis, Comparison, Verdict
from fairtrial.analyse.publications.comparisons import Compared, tables
from fairtrial.analyse.publications.models import Levels, Rerun
from fairtrial.analyse.publications.reading import Dataset

ALPHA: Final = 0.05
Direction = Literal["better", "worse", "no difference", "open"]
SHOWN: Final = ("better", "worse")
# `faster` is better in the metric's direction, whatever the metric is.
VERDICTS: Final[Mapping[Verdict, Direction]] = {"faster": "better", "slower": "worse", "equivalent": "no difference"}
Said = Literal["agree", "disagree", "only there", "only here", "neither", "not run"]


@dataclass(frozen=True)
class Beside:
    """One field of a published table with the run's comparison on one metric; None where the run has none.

    Attributes:
        at: levels of the other factors, in the publication's words.
        also: levels of factors that only the run has, in its words.
        there: what the publication's data say, Holm over its table.
    """

    table: str
    at: Levels
    also: Levels
    published: Compared
    there: Direction
    metric: str
    found: Comparison | None
    here: Direction

    @property
    def said(self) -> Said:
        """Whether run and publication say the same of the arm."""
        if self.found is None:
            return "not run"
        there, here = self.there in SHOWN, self.here in SHOWN
        if there and (here or self.here == "no difference"):
            return "agree" if self.there == self.here else "disagree"
        return "only there" if there else "only here" if here else "neither"


def beside(dataset: Dataset, rerun: Rerun, analyses: Mapping[str, Analysis]) -> list[Beside]:
    """Every field of every table of the publication, beside what a run found.

    Args:
        dataset: the publication.
        rerun: which of the study's names mean what.
        analyses: of the run, by the study's factor that was compared.
    """
    found = []
    for table in tables(dataset):
        better = dataset.description.metrics[table.description.metric].better
        analysis = analyses.get(rerun.factors[table.description.contrast].name)
        for each, p_adjusted in zip(table.comparisons, table.p_adjusted, strict=True):
            there = _published(each, p_adjusted, better=better)
            for metric in rerun.metrics.get(each.metric, []):
                here = [] if analysis is None else _found(each, metric, rerun=rerun, analysis=analysis)
                found += [
                    Beside(
                        table=table.description.name,
                        at=each.at,
                        also=also,
                        published=each,
                        there=there,
                        metric=metric,
                        found=comparison,
                        here="open" if comparison is None else VERDICTS.get(comparison.verdict, "open"),
                    )
                    for also, comparison in here or [({}, None)]
                ]
    return found


def _found(each: Compared, metric: str, *, rerun: Rerun, analysis: Analysis) -> list[tuple[Levels, Comparison | None]]:
    """The run's comparisons at these levels, one for each level of factors that only the run has."""
    at = rerun.levels(each.at)
    arms = rerun.factors[each.contrast].levels
    wanted = arms[each.first], arms[each.second]
    return [
        ({factor: level for factor, level in cell.levels.items() if factor not in at}, comparison)
        for cell in analysis.cells
        for comparison in cell.comparisons.get(metric, ())
        if at.items() <= cell.levels.items() and (comparison.baseline, comparison.arm) == wanted
    ]


def _published(each: Compared, p_adjusted: float, *, better: str) -> Direction:
    """A publication without a margin shows differences only, never that there is none."""
    if p_adjusted >= ALPHA:
        return "open"
    return "better" if (each.logs.estimate > 0) == (better == "higher") else "worse"
