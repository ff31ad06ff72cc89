"""Every printed figure against the value that the data give: the list of disagreements, in the order of printing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from itertools import chain
from typing import Final, Literal

from fairtrial.analyse.publications import r_printing
from fairtrial.analyse.publications.comparisons import PERCENT, Compared, compared
from fairtrial.analyse.publications.models import Arithmetic, Bounds, CellClaim, Claim, Levels, ROutput
from fairtrial.analyse.publications.reading import Dataset

Kind = Literal[
    "differs", "cut", "elsewhere", "nowhere", "not significant", "significant", "empty rest", "sign", "label", "order"
]

EXPLAINED: Final[dict[Kind, str]] = {
    "differs": "the data give another value",
    "cut": "the digits are cut off instead of rounded",
    "elsewhere": "the interval belongs to another comparison",
    "nowhere": "no comparison of the data gives this interval",
    "not significant": "an effect is claimed, but the interval holds 0",
    "significant": "called not significant, but the interval leaves out 0",
    "empty rest": "says that the rest is not significant, but lists every comparison as an effect",
    "sign": "the sentence says higher, the figures are negative",
    "label": "the printed script cannot have printed this label",
    "order": "the effect is not the smaller one",
}


@dataclass(frozen=True)
class Disagreement:
    """One printed figure that the data do not give.

    Attributes:
        where: the place in the publication.
        what: the comparison and the quantity.
        printed, computed: figures, the latter to the same digits.
    """

    where: str
    what: str
    printed: str
    computed: str
    kind: Kind


@dataclass(frozen=True)
class Checked:
    """How many printed figures were compared, and those that disagree."""

    figures: int
    disagreements: tuple[Disagreement, ...]


def check(dataset: Dataset) -> Checked:
    """Compares every claim and every line of R output with the data."""
    results = list(
        chain(
            *(_Place(dataset, claim).results() for claim in dataset.claims),
            *(_r_line(dataset, line) for line in dataset.r_output),
        )
    )
    return Checked(figures=len(results), disagreements=tuple(result for result in results if result is not None))


def figure(printed: str, value: float) -> tuple[str, Kind | None]:
    """The value to the digits of the printed figure, and how they disagree; None if they agree."""
    unit = Decimal(1).scaleb(-len(printed.partition(".")[2]))
    exact = Decimal(repr(float(value)))
    rounded = exact.quantize(unit, rounding=ROUND_HALF_UP)
    if Decimal(printed) == rounded:
        return str(rounded), None
    return str(rounded), "cut" if Decimal(printed) == exact.quantize(unit, rounding=ROUND_DOWN) else "differs"


@dataclass(frozen=True)
class _Place:
    """One place's claims, checked; each result is a disagreement, or None for a figure that agrees."""

    dataset: Dataset
    claim: Claim

    def results(self) -> Iterator[Disagreement | None]:
        """Every figure of the place, in order."""
        for cell in self.claim.cells:
            yield from self._cell(cell)
        if self.claim.rest:
            yield from self._rest()
        if self.claim.pair_range:
            yield from self._pair_range(self.claim.pair_range)
        yield from self._milder()
        for each in self.claim.arithmetic:
            yield self._figure("arithmetic", each.printed, _result(each))
        combinations = self.dataset.combinations()
        if self.claim.configurations:
            yield self._figure("configurations", self.claim.configurations, len(combinations))
        if self.claim.values_each:
            metric = next(iter(self.dataset.description.metrics))
            for levels in combinations:
                count = len(self.dataset.values(metric, levels))
                yield self._figure(f"values at {place(levels)}", self.claim.values_each, count)

    def _comparisons(self) -> list[Compared]:
        return compared(self.dataset, metric=self.claim.metric, contrast=self.claim.contrast)

    def _cell(self, cell: CellClaim) -> Iterator[Disagreement | None]:
        found = next(each for each in self._comparisons() if each.at == cell.at)
        where = place(cell.at)
        for name, printed, values in (("mean", cell.means, found.means), ("interval", cell.interval, _bounds(found))):
            if printed:
                for text, value in zip(printed, values, strict=True):
                    yield self._figure(f"{where}: {name}", text, value)
        if cell.percent:
            yield from self._percent(where, cell.percent, found)
        for number, (text, value) in enumerate(zip(cell.pairs, found.pair_percent, strict=False), start=1):
            yield self._figure(f"{where}: trial {number}", text, value)

    def _percent(self, where: str, printed: Bounds, found: Compared) -> Iterator[Disagreement | None]:
        computed = _percent_text(found)
        text = f"[{printed[0]}, {printed[1]}] %"
        if printed == computed:
            yield None
        else:
            owner = next((each for each in self._comparisons() if _percent_text(each) == printed), None)
            yield self._disagrees(
                f"{where}: percent",
                text,
                computed=f"[{computed[0]}, {computed[1]}] %" + (f"; printed is {place(owner.at)}" if owner else ""),
                kind="elsewhere" if owner else "nowhere",
            )
        claim = self._disagrees(f"{where}: claim", text, computed=_p_text(found), kind="not significant")
        yield None if found.significant else claim
        wording = self._disagrees(f"{where}: wording", f"{text} {self.claim.says}", computed="lower", kind="sign")
        yield wording if self.claim.says == "higher" and printed[1].startswith("-") else None

    def _rest(self) -> Iterator[Disagreement | None]:
        listed = [cell.at for cell in self.claim.cells]
        rest = [each for each in self._comparisons() if each.at not in listed]
        if not rest:
            yield self._disagrees(
                "the rest",
                "no significant change",
                computed=f"all {len(listed)} comparisons are listed",
                kind="empty rest",
            )
        for each in rest:
            what = f"{place(each.at)}: claim"
            yield (
                self._disagrees(what, "no significant change", computed=_p_text(each), kind="significant")
                if each.significant
                else None
            )

    def _pair_range(self, printed: Bounds) -> Iterator[Disagreement | None]:
        every = [value for each in self._comparisons() for value in each.pair_percent]
        for name, text, value in zip(("smallest", "largest"), printed, (min(every), max(every)), strict=True):
            yield self._figure(f"{name} of {len(every)} pairs", text, value)

    def _milder(self) -> Iterator[Disagreement | None]:
        """Compares estimates only: the publications give no interval for a difference between two effects."""
        better = self.dataset.description.metrics[self.claim.metric].better if self.claim.milder_at else "higher"
        for factor, level in self.claim.milder_at.items():
            every = self._comparisons()
            for here in (each for each in every if each.at[factor] == level):
                for there in (each for each in every if {**each.at, factor: level} == here.at and each is not here):
                    milder = (here.logs.estimate > there.logs.estimate) == (better == "higher")
                    what = f"{place(here.at)} against {there.at[factor]}"
                    yield None if milder else self._disagrees(what, "milder", computed="harder", kind="order")

    def _figure(self, what: str, printed: str, value: float) -> Disagreement | None:
        computed, kind = figure(printed, value)
        return None if kind is None else self._disagrees(what, printed, computed=computed, kind=kind)

    def _disagrees(self, what: str, printed: str, *, computed: str, kind: Kind) -> Disagreement:
        return Disagreement(where=self.claim.where, what=what, printed=printed, computed=computed, kind=kind)


def r_line(of: Compared) -> dict[str, str]:
    """A comparison as R prints it, by column of `r_output.csv`; R subtracts second from first."""
    low, high = r_printing.numbers([-of.units.high, -of.units.low])
    mean_first, mean_second = r_printing.numbers(of.means)
    percent = _percent_text(of) if of.significant else ("", "")
    return {
        "t": r_printing.number(-of.units.t, digits=r_printing.T_DIGITS),
        "df": r_printing.number(of.units.df, digits=r_printing.T_DIGITS),
        "p": r_printing.p_value(of.units.p),
        "low": low,
        "high": high,
        "mean_first": mean_first,
        "mean_second": mean_second,
        "percent_low": percent[0],
        "percent_high": percent[1],
    }


def place(levels: Levels) -> str:
    """Levels in words: `overcommitting, 600`."""
    return ", ".join(levels.values())


def _r_line(dataset: Dataset, line: ROutput) -> Iterator[Disagreement | None]:
    found = next(
        each
        for each in compared(dataset, metric=line.metric, contrast=line.contrast)
        if each.at == line.levels and each.second == line.second
    )
    where = f"R output, {line.metric} by {line.contrast}"
    for column, computed in r_line(found).items():
        printed = getattr(line, column)
        agrees = printed == computed
        what = f"{place(line.levels)}: {column}"
        yield None if agrees else Disagreement(where, what, printed=printed, computed=computed, kind="differs")
    numbers = {factor: dataset.levels(factor).index(level) + 1 for factor, level in line.levels.items()}
    label = dataset.description.script_labels[line.contrast].format(**numbers)
    what = f"{place(line.levels)}: label"
    yield None if label == line.label else Disagreement(where, what, printed=line.label, computed=label, kind="label")


def _bounds(of: Compared) -> tuple[float, float]:
    return of.units.low, of.units.high


def _p_text(of: Compared) -> str:
    return f"p = {r_printing.p_value(of.units.p)}"


def _percent_text(of: Compared) -> Bounds:
    """To two decimals, as the publications' scripts print it."""
    low, high = of.percent
    return f"{low:.2f}", f"{high:.2f}"


def _result(of: Arithmetic) -> float:
    left, operation, right = of.is_
    if operation == "/":
        return left / right
    if operation == "*":
        return left * right
    if operation == "+":
        return left + right
    return PERCENT * (left - right) / right
