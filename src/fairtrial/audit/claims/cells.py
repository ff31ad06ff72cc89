"""Claims about one comparison: means, differences, intervals, tests, and whether there is an effect at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from fairtrial.analyse.inference.t_tests import TTest, Values
from fairtrial.audit import methods, r_printing
from fairtrial.audit.claims.models import Bounds, CellClaim, Claim, share
from fairtrial.audit.comparisons import PERCENT, is_significant, means_of, percent_of, place
from fairtrial.audit.findings import AuditFinding, Kind, Passage, figure
from fairtrial.audit.methods import Sides
from fairtrial.audit.noise_floor import Floors
from fairtrial.audit.printed import read
from fairtrial.audit.reading import Dataset

# What is printed of a test: the value by the claim's key.
_OF_TEST: Final[dict[str, Callable[[TTest], float]]] = {
    "p": lambda test: test.p,
    "df": lambda test: test.df,
    "standard_error": lambda test: test.standard_error,
}


def findings(dataset: Dataset, claim: Claim, *, cell: CellClaim, floors: Floors) -> Iterator[AuditFinding]:
    """Every figure of one comparison, in order; those of a test are not checkable where it cannot be made."""
    pair = _LevelPair(dataset, claim, cell)
    named = place({**cell.at, "": cell.second}) if cell.second else place(cell.at)
    where = f"{named}: " if named else ""
    missing = [dataset.missing(claim.metric, levels) for levels in pair.sides]
    here = Passage(claim.where)
    if any(missing):
        yield here.unknown(f"{where}every figure", "", next(each for each in missing if each))
        return
    yield from _arms(here, where, pair)
    if cell.significant is not False:
        here = replace(here, note=floors.note(claim, at=cell.at, levels=pair.levels, size=pair.size))
    yield from _differences(here, where, pair)
    test = pair.test
    if isinstance(test, str):
        yield from (here.unknown(f"{where}{what}", printed, test) for what, printed in _untested(cell))
    else:
        yield from _tested(here, where, pair=pair, test=test)


@dataclass(frozen=True)
class _LevelPair:
    """The two levels that a cell is of."""

    dataset: Dataset
    claim: Claim
    cell: CellClaim

    @property
    def levels(self) -> tuple[str, str]:
        first, *others = self.dataset.levels(self.claim.contrast)
        return first, self.cell.second or others[0]

    @property
    def sides(self) -> Sides:
        first, second = ({**self.cell.at, self.claim.contrast: level} for level in self.levels)
        return first, second

    @cached_property
    def values(self) -> tuple[Values, Values]:
        first, second = (self.dataset.values(self.claim.metric, levels) for levels in self.sides)
        return first, second

    @property
    def means(self) -> tuple[float, float]:
        return means_of(self.values)

    @property
    def size(self) -> float:
        """Difference of the means as a share of the first; 0 where that is 0."""
        first, second = self.means
        return (second - first) / abs(first) if first else 0.0

    @cached_property
    def test(self) -> TTest | str:
        """As the cell says; or why there is none."""
        return methods.tested(
            self.dataset,
            self.claim.metric,
            sides=self.sides,
            test=self.cell.test,
            confidence=share(self.cell.confidence),
        )

    def has(self, printed: Bounds) -> bool:
        """Whether a printed interval in percent is this comparison's."""
        if isinstance(self.test, str) or not self.means[0]:
            return False
        values = percent_of(self.test, self.means[0])
        return all(figure(text, value)[1] is None for text, value in zip(printed, values, strict=True))

    def elsewhere(self) -> Iterator[_LevelPair]:
        """The same claim at every combination of the other factors."""
        for at in self.dataset.combinations(without=self.claim.contrast):
            for second in self.dataset.levels(self.claim.contrast)[1:]:
                yield replace(self, cell=self.cell.model_copy(update={"at": at, "second": second}))


def _arms(here: Passage, where: str, pair: _LevelPair) -> Iterator[AuditFinding]:
    """What is printed of each arm by itself."""
    medians = [float(np.median(each)) for each in pair.values]
    cell = pair.cell
    for name, printed, values in (("mean", cell.means, pair.means), ("median", cell.medians, medians)):
        for text, value in zip(printed or (), values, strict=False):
            yield here.figure(f"{where}{name}", text, value)


def _differences(here: Passage, where: str, pair: _LevelPair) -> Iterator[AuditFinding]:
    """What needs no test."""
    cell, (first, second) = pair.cell, pair.means
    by_trial = list(zip(*(each.tolist() for each in pair.values), strict=False))
    for number, text in enumerate(cell.pairs, start=1):
        what = f"{where}trial {number}"
        if number > len(by_trial):
            yield here.unknown(what, text, "the data have no trial of this number in both arms")
            continue
        a, b = by_trial[number - 1]
        yield here.figure(what, text, PERCENT * (b - a) / a) if a else here.unknown(what, text, "the first value is 0")
    for name, printed, over in (("ratio", cell.ratio, 0.0), ("change", cell.change, 1.0)):
        if printed and first == 0:
            yield here.unknown(f"{where}{name}", printed, "the first mean is 0")
        elif printed:
            value = second / first - over
            yield here.figure(f"{where}{name}", printed, PERCENT * value if over else value)
    if cell.difference and cell.test == "paired":
        yield _paired_difference(here, f"{where}difference", pair)
    elif cell.difference:
        yield here.figure(f"{where}difference", cell.difference, second - first)


def _paired_difference(here: Passage, what: str, pair: _LevelPair) -> AuditFinding:
    pairs = methods.pairs(pair.dataset, pair.claim.metric, sides=pair.sides)
    if isinstance(pairs, str) or not len(pairs[0]):
        why = pairs if isinstance(pairs, str) else methods.NO_PAIRED_TEST
        return here.unknown(what, pair.cell.difference, why)
    return here.figure(what, pair.cell.difference, float(np.mean(pairs[1] - pairs[0])))


def _untested(cell: CellClaim) -> Iterator[tuple[str, str]]:
    """Every figure of a test that a cell has."""
    for name in ("interval", "percent"):
        bounds: Bounds | None = getattr(cell, name)
        if bounds:
            yield name, f"[{bounds[0]}, {bounds[1]}]"
    for name in ("t", *_OF_TEST):
        if printed := getattr(cell, name):
            yield name, printed
    if cell.significant is not None:
        yield "claim", _said(cell)


def _tested(here: Passage, where: str, *, pair: _LevelPair, test: TTest) -> Iterator[AuditFinding]:
    cell = pair.cell
    for text, value in zip(cell.interval or (), (test.low, test.high), strict=False):
        yield here.figure(f"{where}interval", text, value)
    if cell.percent and not pair.means[0]:
        yield here.unknown(f"{where}percent", " to ".join(cell.percent), "the first mean is 0")
    elif cell.percent:
        yield from _percent(here, where, pair=pair, test=test)
    if cell.t:
        yield _t(here, f"{where}t", printed=cell.t, test=test)
    for name, value_of in _OF_TEST.items():
        if printed := getattr(cell, name):
            yield here.figure(f"{where}{name.replace('_', ' ')}", printed, value_of(test))
    if cell.significant is not None:
        what, printed = f"{where}claim", _said(cell)
        kind: Kind = "not significant" if cell.significant else "significant"
        agrees = cell.significant == is_significant(test)
        yield here.checked(what, printed, computed=p_text(test), kind=None if agrees else kind)


def _t(here: Passage, what: str, *, printed: str, test: TTest) -> AuditFinding:
    """Without its sign, which says only what was subtracted from what."""
    negative = read(printed).value < 0
    return here.figure(what, printed, -abs(test.t) if negative else abs(test.t))


def _said(cell: CellClaim) -> str:
    return "significant" if cell.significant else "not significant"


def _percent(here: Passage, where: str, *, pair: _LevelPair, test: TTest) -> Iterator[AuditFinding]:
    printed, says = pair.cell.percent, pair.claim.says
    if printed is None:
        return
    text = f"[{printed[0]}, {printed[1]}] %"
    if pair.has(printed):
        yield here.checked(f"{where}percent", text, computed=text, kind=None)
    else:
        owner = next((each.cell.at for each in pair.elsewhere() if each.has(printed)), None)
        ends = percent_text(percent_of(test, pair.means[0]))
        computed = f"[{ends[0]}, {ends[1]}] %" + (f"; the printed interval is that of {place(owner)}" if owner else "")
        yield here.checked(f"{where}percent", text, computed=computed, kind="elsewhere" if owner else "nowhere")
    low, high = (read(end).value for end in printed)
    if pair.cell.significant is not False and not low <= 0 <= high:
        kind: Kind | None = None if is_significant(test) else "not significant"
        yield here.checked(f"{where}claim", text, computed=p_text(test), kind=kind)
    if says:
        wrong = high < 0
        computed = "lower" if wrong else says
        yield here.checked(f"{where}wording", f"{text} {says}", computed=computed, kind="sign" if wrong else None)


def p_text(test: TTest) -> str:
    """`p = 0.0872`."""
    return f"p = {r_printing.p_value(test.p)}"


def percent_text(bounds: tuple[float, float]) -> Bounds:
    """To two decimals, as the publications' scripts print it."""
    return f"{bounds[0]:.2f}", f"{bounds[1]:.2f}"
