"""Every printed figure against the value that the data give: confirmed, contradicted, not decided or not checkable."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from fairtrial.audit import r_printing
from fairtrial.audit.claims import cells as cell_claims
from fairtrial.audit.claims import orders as order_claims
from fairtrial.audit.claims import single as single_claims
from fairtrial.audit.claims.cells import p_text, percent_text
from fairtrial.audit.claims.models import Arithmetic, Bounds, Claim
from fairtrial.audit.comparisons import PERCENT, ArmComparison, compared, compared_at, place
from fairtrial.audit.findings import TOO_LARGE, AuditFinding, Kind, Passage
from fairtrial.audit.methods import NO_TEST
from fairtrial.audit.models import ROutput
from fairtrial.audit.noise_floor import Floors
from fairtrial.audit.printed import read
from fairtrial.audit.reading import Dataset
from fairtrial.study.tree.quantities import PLACEHOLDER


def findings(dataset: Dataset, floors: Floors) -> Iterator[AuditFinding]:
    """Every claim and every line of R output, compared with the data, in the order of printing."""
    for claim in dataset.claims:
        yield from _PlaceClaims(dataset, claim, floors).results()
    every: dict[tuple[str, str], list[ArmComparison]] = {}
    for line in dataset.r_output:
        if (tested := (line.metric, line.contrast)) not in every:
            known = line.metric in dataset.description.metrics and line.contrast in dataset.description.factors
            every[tested] = compared(dataset, metric=line.metric, contrast=line.contrast) if known else []
        yield from _r_line(dataset, line, every[tested])


@dataclass(frozen=True)
class _PlaceClaims:
    """One place's claims, checked."""

    dataset: Dataset
    claim: Claim
    floors: Floors

    @property
    def place(self) -> Passage:
        return Passage(self.claim.where)

    def results(self) -> Iterator[AuditFinding]:
        """Every figure of the place, in order."""
        for cell in self.claim.cells:
            yield from cell_claims.findings(self.dataset, self.claim, cell=cell, floors=self.floors)
        if self.claim.rest:
            yield from self._rest()
        if self.claim.pair_range:
            yield from self._pair_range(self.claim.pair_range)
        yield from order_claims.milder(self.dataset, self.claim)
        yield from single_claims.values(self.dataset, self.claim)
        yield from single_claims.intervals(self.dataset, self.claim)
        yield from order_claims.orders(self.dataset, self.claim, floors=self.floors)
        for each in self.claim.arithmetic:
            yield _arithmetic(self.place, each)
        for unchecked in self.claim.unchecked:
            yield self.place.unknown(unchecked.what, unchecked.printed, unchecked.because)
        yield from self._matrix()

    def _matrix(self) -> Iterator[AuditFinding]:
        described = self.dataset.description
        combinations = self.dataset.combinations()
        if self.claim.configurations and not described.factors:
            why = "no factors are described"
            yield self.place.unknown("configurations", self.claim.configurations, why)
        elif self.claim.configurations:
            yield self.place.figure("configurations", self.claim.configurations, len(combinations))
        if self.claim.values_each:
            metric = self.claim.metric or next(iter(described.metrics), "")
            why = self.dataset.missing(metric, {}) if metric else "no metric is described"
            if why:
                yield self.place.unknown("values at each configuration", self.claim.values_each, why)
                return
            for levels in combinations:
                count = len(self.dataset.values(metric, levels))
                yield self.place.figure(f"values at {place(levels)}", self.claim.values_each, count)

    def _rest(self) -> Iterator[AuditFinding]:
        metric, contrast = self.claim.metric, self.claim.contrast
        first, *others = self.dataset.levels(contrast)
        listed = [(cell.at, cell.second or others[0]) for cell in self.claim.cells]
        every = product(self.dataset.combinations(without=contrast), others)
        rest = [each for each in every if each not in listed]
        text, checked = "no significant change", False
        for at, second in rest:
            levels = first, second
            if any(self.dataset.missing(metric, {**at, contrast: level}) for level in levels):
                continue
            checked, named = True, place({**at, "": second} if len(others) > 1 else at)
            each = compared_at(self.dataset, metric=metric, contrast=contrast, at=at, levels=levels)
            if each is None:
                yield self.place.unknown(f"{named}: claim", text, NO_TEST)
            else:
                kind: Kind | None = "significant" if each.significant else None
                yield self.place.checked(f"{named}: claim", text, computed=p_text(each.units), kind=kind)
        if not rest:
            computed = f"all {len(listed)} comparisons are listed"
            yield self.place.checked("the rest", text, computed=computed, kind="empty rest")
        elif not checked:
            why = self.dataset.missing(metric, {}) or "no other comparison has values of both levels"
            yield self.place.unknown("the rest", text, why)

    def _pair_range(self, printed: Bounds) -> Iterator[AuditFinding]:
        pairs = self._pairs()
        why = "" if pairs else self.dataset.missing(self.claim.metric, {}) or "no two trials have the same number"
        if any(first == 0 for first, _ in pairs):
            why = "the first value of a pair is 0"
        every = [] if why else [PERCENT * (second - first) / first for first, second in pairs]
        for name, text, end in zip(("smallest", "largest"), printed, (min, max), strict=True):
            what = f"{name} of {len(pairs)} pairs"
            yield self.place.unknown(what, text, why) if why else self.place.figure(what, text, end(every))

    def _pairs(self) -> list[tuple[float, float]]:
        """Values of the first level and of another, by trial number: they need no test."""
        metric, contrast = self.claim.metric, self.claim.contrast
        first, *others = self.dataset.levels(contrast)
        return [
            pair
            for at in self.dataset.combinations(without=contrast)
            for second in others
            for pair in zip(
                self.dataset.values(metric, {**at, contrast: first}).tolist(),
                self.dataset.values(metric, {**at, contrast: second}).tolist(),
                strict=False,
            )
        ]


def _arithmetic(where: Passage, claim: Arithmetic) -> AuditFinding:
    what = f"arithmetic: {claim.of}" if claim.of else "arithmetic"
    value = _result(claim)
    if isinstance(value, str):
        return where.unknown(what, claim.printed, value)
    if not claim.than:
        return where.figure(what, claim.printed, value)
    text, computed = f"{claim.than} than {claim.printed}", f"{value:.4g}"
    limit = read(claim.printed).value
    holds = value > limit if claim.than == "more" else value < limit
    return where.checked(what, text, computed=computed, kind=None if holds else "bound")


def r_line(of: ArmComparison) -> dict[str, str]:
    """A comparison as R prints it, by column of `r_output.csv`; R subtracts second from first."""
    low, high = r_printing.numbers([-of.units.high, -of.units.low])
    mean_first, mean_second = r_printing.numbers(of.means)
    percent = percent_text(of.percent) if of.significant and of.means[0] else ("", "")
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


def _r_line(dataset: Dataset, line: ROutput, every: list[ArmComparison]) -> Iterator[AuditFinding]:
    where = Passage(f"R output, {line.metric} by {line.contrast}")
    described, levels = dataset.description, line.levels
    comparison = next((each for each in every if each.at == levels and each.second == line.second), None)
    if comparison is None:
        yield where.unknown(f"{place(line.levels)}: every figure", "", "the data have no such comparison")
        return
    for column, computed in r_line(comparison).items():
        printed = getattr(line, column)
        kind: Kind | None = None if printed == computed else "differs"
        yield where.checked(f"{place(line.levels)}: {column}", printed, computed=computed, kind=kind)
    if line.contrast not in described.script_labels:
        return
    numbers = {factor: str(dataset.levels(factor).index(level) + 1) for factor, level in line.levels.items()}
    label = PLACEHOLDER.sub(lambda name: numbers.get(name[1], name[0]), described.script_labels[line.contrast])
    kind = None if label == line.label else "label"
    yield where.checked(f"{place(line.levels)}: label", line.label, computed=label, kind=kind)


def _result(of: Arithmetic) -> float | str:
    """The figure; or why there is none."""
    left, operation, right = of.is_
    if operation in ("/", "% over", "% of") and right == 0:
        return "division by 0"
    value = {
        "/": lambda: left / right,
        "*": lambda: left * right,
        "+": lambda: left + right,
        "-": lambda: left - right,
        "% over": lambda: PERCENT * (left - right) / right,
        "% of": lambda: PERCENT * left / right,
    }[operation]()
    return value if math.isfinite(value) else TOO_LARGE
