"""Every printed figure against the value that the data give: confirmed, contradicted or not checkable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from fairtrial.analyse.publications import r_printing, single_claims
from fairtrial.analyse.publications.comparisons import PERCENT, Compared, compared, compared_at
from fairtrial.analyse.publications.findings import Checked, Finding, Kind, Place, figure
from fairtrial.analyse.publications.models import Arithmetic, Bounds, CellClaim, Claim, Levels, ROutput
from fairtrial.analyse.publications.printed import read
from fairtrial.analyse.publications.reading import Dataset

NO_TEST: Final = "no test can be made: fewer than two values in an arm, or none has any spread"


def check(dataset: Dataset) -> Checked:
    """Compares every claim and every line of R output with the data."""
    findings = chain(
        *(_Claimed(dataset, claim).results() for claim in dataset.claims),
        *(_r_line(dataset, line) for line in dataset.r_output),
    )
    return Checked(findings=tuple(findings))


@dataclass(frozen=True)
class _Claimed:
    """One place's claims, checked."""

    dataset: Dataset
    claim: Claim

    @property
    def place(self) -> Place:
        return Place(self.claim.where)

    def results(self) -> Iterator[Finding]:
        """Every figure of the place, in order."""
        for cell in self.claim.cells:
            yield from self._cell(cell)
        if self.claim.rest:
            yield from self._rest()
        if self.claim.pair_range:
            yield from self._pair_range(self.claim.pair_range)
        yield from self._milder()
        yield from single_claims.values(self.dataset, self.claim)
        yield from single_claims.orders(self.dataset, self.claim)
        for each in self.claim.arithmetic:
            yield _arithmetic(self.place, each)
        for unchecked in self.claim.unchecked:
            yield self.place.unknown(unchecked.what, unchecked.printed, unchecked.because)
        yield from self._matrix()

    def _comparisons(self) -> list[Compared]:
        return compared(self.dataset, metric=self.claim.metric, contrast=self.claim.contrast)

    def _matrix(self) -> Iterator[Finding]:
        combinations = self.dataset.combinations()
        if self.claim.configurations:
            yield self.place.figure("configurations", self.claim.configurations, len(combinations))
        if self.claim.values_each:
            metric = self.claim.metric or next(iter(self.dataset.description.metrics))
            for levels in combinations:
                count = len(self.dataset.values(metric, levels))
                yield self.place.figure(f"values at {place(levels)}", self.claim.values_each, count)

    def _cell(self, cell: CellClaim) -> Iterator[Finding]:
        where = place({**cell.at, "": cell.second}) if cell.second else place(cell.at)
        first, *others = self.dataset.levels(self.claim.contrast)
        second = cell.second or others[0]
        missing = [
            self.dataset.missing(self.claim.metric, {**cell.at, self.claim.contrast: level})
            for level in (first, second)
        ]
        found = None
        if not any(missing):
            found = compared_at(
                self.dataset,
                metric=self.claim.metric,
                contrast=self.claim.contrast,
                at=cell.at,
                levels=(first, second),
            )
        if found is None:
            yield self.place.unknown(f"{where}: every figure", "", next((each for each in missing if each), NO_TEST))
            return
        for name, printed, values in (("mean", cell.means, found.means), ("interval", cell.interval, _bounds(found))):
            if printed:
                for text, value in zip(printed, values, strict=True):
                    yield self.place.figure(f"{where}: {name}", text, value)
        if cell.percent:
            yield from self._percent(where, cell.percent, found)
        for number, (text, value) in enumerate(zip(cell.pairs, found.pair_percent, strict=False), start=1):
            yield self.place.figure(f"{where}: trial {number}", text, value)
        yield from self._quotients(where, cell, found)

    def _quotients(self, where: str, cell: CellClaim, found: Compared) -> Iterator[Finding]:
        first, second = found.means
        for name, printed, over in (("ratio", cell.ratio, 0.0), ("change", cell.change, 1.0)):
            if printed and first == 0:
                yield self.place.unknown(f"{where}: {name}", printed, "the first mean is 0")
            elif printed:
                value = second / first - over
                yield self.place.figure(f"{where}: {name}", printed, PERCENT * value if over else value)
        if cell.p:
            yield self.place.figure(f"{where}: p", cell.p, found.units.p)
        if cell.significant is not None:
            what, printed = f"{where}: claim", "significant" if cell.significant else "not significant"
            if cell.significant == found.significant:
                yield self.place.agrees(what, printed, _p_text(found))
            else:
                kind: Kind = "not significant" if cell.significant else "significant"
                yield self.place.disagrees(what, printed, computed=_p_text(found), kind=kind)

    def _percent(self, where: str, printed: Bounds, found: Compared) -> Iterator[Finding]:
        computed = _percent_text(found)
        text = f"[{printed[0]}, {printed[1]}] %"
        if _agree(printed, found):
            yield self.place.agrees(f"{where}: percent", text, text)
        else:
            owner = next((each for each in self._comparisons() if _agree(printed, each)), None)
            yield self.place.disagrees(
                f"{where}: percent",
                text,
                computed=f"[{computed[0]}, {computed[1]}] %" + (f"; printed is {place(owner.at)}" if owner else ""),
                kind="elsewhere" if owner else "nowhere",
            )
        what = f"{where}: claim"
        if found.significant:
            yield self.place.agrees(what, text, _p_text(found))
        else:
            yield self.place.disagrees(what, text, computed=_p_text(found), kind="not significant")
        what, text = f"{where}: wording", f"{text} {self.claim.says}"
        if self.claim.says == "higher" and read(printed[1]).value < 0:
            yield self.place.disagrees(what, text, computed="lower", kind="sign")
        elif self.claim.says:
            yield self.place.agrees(what, text, self.claim.says)

    def _rest(self) -> Iterator[Finding]:
        listed = [cell.at for cell in self.claim.cells]
        rest = [each for each in self._comparisons() if each.at not in listed]
        text = "no significant change"
        if not rest:
            computed = f"all {len(listed)} comparisons are listed"
            yield self.place.disagrees("the rest", text, computed=computed, kind="empty rest")
        for each in rest:
            what = f"{place(each.at)}: claim"
            if each.significant:
                yield self.place.disagrees(what, text, computed=_p_text(each), kind="significant")
            else:
                yield self.place.agrees(what, text, _p_text(each))

    def _pair_range(self, printed: Bounds) -> Iterator[Finding]:
        every = [value for each in self._comparisons() for value in each.pair_percent]
        for name, text, value in zip(("smallest", "largest"), printed, (min(every), max(every)), strict=True):
            yield self.place.figure(f"{name} of {len(every)} pairs", text, value)

    def _milder(self) -> Iterator[Finding]:
        """Compares estimates only: the publications give no interval for a difference between two effects."""
        better = self.dataset.description.metrics[self.claim.metric].better if self.claim.milder_at else "higher"
        for factor, level in self.claim.milder_at.items():
            every = self._comparisons()
            for here in (each for each in every if each.at[factor] == level):
                for there in (each for each in every if {**each.at, factor: level} == here.at and each is not here):
                    what = f"{place(here.at)} against {there.at[factor]}"
                    if (here.logs.estimate > there.logs.estimate) == (better == "higher"):
                        yield self.place.agrees(what, "milder", "milder")
                    else:
                        yield self.place.disagrees(what, "milder", computed="harder", kind="order")


def _arithmetic(where: Place, claim: Arithmetic) -> Finding:
    what = f"arithmetic: {claim.of}" if claim.of else "arithmetic"
    value = _result(claim)
    if value is None:
        return where.unknown(what, claim.printed, "division by 0")
    if not claim.than:
        return where.figure(what, claim.printed, value)
    text, computed = f"{claim.than} than {claim.printed}", f"{value:.4g}"
    if (value > read(claim.printed).value) == (claim.than == "more"):
        return where.agrees(what, text, computed)
    return where.disagrees(what, text, computed=computed, kind="bound")


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


def _r_line(dataset: Dataset, line: ROutput) -> Iterator[Finding]:
    found = next(
        each
        for each in compared(dataset, metric=line.metric, contrast=line.contrast)
        if each.at == line.levels and each.second == line.second
    )
    where = Place(f"R output, {line.metric} by {line.contrast}")
    for column, computed in r_line(found).items():
        printed = getattr(line, column)
        what = f"{place(line.levels)}: {column}"
        if printed == computed:
            yield where.agrees(what, printed, computed)
        else:
            yield where.disagrees(what, printed, computed=computed, kind="differs")
    numbers = {factor: dataset.levels(factor).index(level) + 1 for factor, level in line.levels.items()}
    label = dataset.description.script_labels[line.contrast].format(**numbers)
    what = f"{place(line.levels)}: label"
    if label == line.label:
        yield where.agrees(what, line.label, label)
    else:
        yield where.disagrees(what, line.label, computed=label, kind="label")


def _bounds(of: Compared) -> tuple[float, float]:
    return of.units.low, of.units.high


def _p_text(of: Compared) -> str:
    return f"p = {r_printing.p_value(of.units.p)}"


def _percent_text(of: Compared) -> Bounds:
    """To two decimals, as the publications' scripts print it."""
    low, high = of.percent
    return f"{low:.2f}", f"{high:.2f}"


def _agree(printed: Bounds, of: Compared) -> bool:
    return all(figure(text, value)[1] is None for text, value in zip(printed, of.percent, strict=True))


def _result(of: Arithmetic) -> float | None:
    left, operation, right = of.is_
    if operation in ("/", "% over", "% of") and right == 0:
        return None
    return {
        "/": lambda: left / right,
        "*": lambda: left * right,
        "+": lambda: left + right,
        "-": lambda: left - right,
        "% over": lambda: PERCENT * (left - right) / right,
        "% of": lambda: PERCENT * left / right,
    }[operation]()
