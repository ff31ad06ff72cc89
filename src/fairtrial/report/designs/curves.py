"""What curves over a numeric factor say, in the same words for the text, the page and the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fairtrial.analyse.designs.curve_models import ArmCurve, Crossing, CurvePair, Curves, Estimate, Peak
from fairtrial.analyse.models import Analysis
from fairtrial.report import numbers
from fairtrial.report.numbers import Scale
from fairtrial.report.tables import cell_label

TITLES: Final = {
    "usl": "Curves: Universal Scalability Law",
    "linear": "Curves: straight lines on logarithmic axes",
    "loess": "Curves: local regression",
}
NAMES: Final = {
    "lambda": "one user's rate",
    "sigma": "contention (sigma)",
    "kappa": "coherency (kappa)",
    "at_first": "at the smallest",
    "per_doubling": "per doubling",
}
MODELS: Final = {
    "usl": "rate(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)). Lambda is the rate of one user, sigma the share"
    " of work done one at a time, kappa the cost of every pair of users. Sigma and kappa are estimated within their"
    " bound, 0, and intervals end there.",
    "linear": "A straight line through logarithms: a factor per doubling.",
    "loess": "Local straight lines through logarithms, tricube weights, 75 % of the values in each window: no"
    " parameters. The band leaves out how much the window flattens a sharp bend.",
}
SPREADS: Final = {
    "blocks": "Intervals come from the spread of blocks, the unit, and bands are pointwise.",
    "repeats": "Trials are not paired: intervals come from the spread of repeats at each value. Bands are pointwise.",
    "scatter": "Single trials: intervals come from their scatter around the curve and assume that the model is right."
    " Nothing is claimed.",
}
RANGE: Final = "A curve beyond the smallest and largest value is extrapolation, not evidence."
MISFIT: Final = "Misfit p: of means that lie off the curve by chance alone."
FAMILY: Final = (
    "Change: treatment - baseline for contention and coherency, treatment / baseline for rates. Adjusted p: Holm over"
    " all parameters of all curves, a family of its own."
)
HUGE: Final = 1e8  # from here on only the power of ten says anything
LEFT: Final = 2  # columns of text


@dataclass(frozen=True)
class Section:
    """One metric's curves under one combination of conditions.

    Attributes:
        arms: a row per arm under `header`.
        pairs: a row per parameter compared under `compared`; may be empty.
    """

    title: str
    sentences: tuple[str, ...]
    header: tuple[str, ...]
    arms: tuple[tuple[str, ...], ...]
    compared: tuple[str, ...]
    pairs: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def sections(analysis: Analysis) -> list[Section]:
    """Everything said of all curves; empty without any."""
    share = numbers.percent(analysis.confidence)
    return [
        Section(
            title=title(analysis, curve),
            sentences=tuple(sentences(analysis, curve)),
            header=_header(curve, share),
            arms=tuple(_arm(analysis, curve, arm) for arm in curve.arms),
            compared=("arm", "parameter", "change", f"{share} interval", "p", "adjusted p", "verdict"),
            pairs=tuple(row for pair in curve.pairs for row in _compared(pair)),
            notes=_notes(curve),
        )
        for curve in analysis.curves
    ]


def title(analysis: Analysis, curve: Curves) -> str:
    """Metric, factor and conditions."""
    where = f", {cell_label(curve.levels)}" if curve.levels else ""
    return f"{analysis.metrics[curve.metric].label} over {curve.over}{where}"


def sentences(analysis: Analysis, curve: Curves) -> Iterator[str]:
    """What a reader wants to know first."""
    label = analysis.metrics[curve.metric].label
    if curve.reason:
        yield f"No curve of {label}: {curve.reason}."
        return
    for arm in curve.arms:
        if arm.peak is not None:
            who = f"With {arm.arm}, {label}" if len(curve.arms) > 1 else "The curve"
            yield f"{who} {_peak(curve, arm.peak, scale(analysis, curve))}."
    for pair in curve.pairs:
        yield _crossing(analysis, curve, pair)
        if claims := [each for each in pair.parameters if each.verdict == "differs"]:
            said = "; ".join(
                f"{NAMES[each.parameter]} {'times' if each.scale == 'ratio' else 'by'} "
                f"{_change(each.change.estimate, each.scale)} {_range(each.change, each.scale)}"
                for each in claims
            )
            yield f"Curves differ with {pair.arm} instead of {analysis.levels[0]}: {said}."


def _peak(curve: Curves, peak: Peak, of: Scale) -> str:
    first, last = number(curve.values[0]), number(curve.values[-1])
    at, over = peak.at, curve.over
    if peak.position == "within":
        there = "" if peak.throughput is None else f": {of.value(peak.throughput.estimate)} {of.unit}".rstrip()
        return f"peaks at {number(at.estimate)} {over} ({number(at.low)} to {number(at.high)}){there}"
    if peak.position == "before":
        return f"falls from the smallest value on, {first}"
    if peak.position == "beyond":
        return f"peaks nowhere up to {last} {over}: by extrapolation at {number(at.estimate)} ({_ends(at)})"
    if peak.position == "excluded" or (peak.position == "none" and at.low is not None and at.low >= curve.values[-1]):
        return f"has no peak up to {last} {over}"
    if peak.position == "none":
        possible = "anywhere" if at.low is None else f"at {number(at.low)} or more"
        return f"has no peak that these trials show up to {last} {over}; one {possible} is not excluded"
    return f"peaks at {number(at.estimate)} {over} ({_ends(at)}), which is not all within {first} to {last}"


def _crossing(analysis: Analysis, curve: Curves, pair: CurvePair) -> str:
    first, last, baseline = number(curve.values[0]), number(curve.values[-1]), analysis.levels[0]
    if not pair.crossings:
        return f"The fitted curves of {baseline} and {pair.arm} do not cross from {first} to {last} {curve.over}."
    spots = [f"{number(each.at)} {_around(curve, each)}" for each in pair.crossings]
    said = spots[0] if len(spots) == 1 else ", ".join(spots[:-1]) + " and " + spots[-1]
    if pair.shown:
        return f"{baseline} and {pair.arm} cross at {said} {curve.over}."
    return (
        f"The fitted curves of {baseline} and {pair.arm} cross at {said} {curve.over}, which these trials do not show."
    )


def _around(curve: Curves, crossing: Crossing) -> str:
    low = f"below {number(curve.values[0])}" if crossing.low is None else number(crossing.low)
    high = f"above {number(curve.values[-1])}" if crossing.high is None else number(crossing.high)
    return f"({low} to {high})"


def _peak_ends(peak: Peak) -> str:
    return "none" if peak.position == "excluded" else _ends(peak.at)


def _ends(at: Estimate) -> str:
    if at.low is None and at.high is None:
        return "any number"
    if at.high is None:
        return f"{number(at.low)} or more"
    return f"{number(at.high)} or fewer" if at.low is None else f"{number(at.low)} to {number(at.high)}"


def _header(curve: Curves, share: str) -> tuple[str, ...]:
    names = [NAMES[name] for name in (curve.arms[0].parameters if curve.arms else {})]
    peak = ("peak", f"{share} interval") if curve.model == "usl" else ()
    parameters = tuple(column for name in names for column in (name, f"{share} interval"))
    return ("arm", *parameters, *peak, "misfit p")


def _arm(analysis: Analysis, curve: Curves, arm: ArmCurve) -> tuple[str, ...]:
    of = scale(analysis, curve)
    cells: list[str] = []
    for name, each in arm.parameters.items():
        if name in ("lambda", "at_first"):
            cells += [of.value(each.estimate), _plain(_rate(each.low, of), _rate(each.high, of))]
        else:
            cells += [number(each.estimate), _plain(number(each.low), number(each.high))]
    peak = () if arm.peak is None else (number(arm.peak.at.estimate), _peak_ends(arm.peak))
    return (arm.arm, *cells, *peak, numbers.ABSENT if arm.misfit is None else numbers.p_value(arm.misfit.p))


def _rate(value: float | None, of: Scale) -> str:
    """A rate; one that a fit hardly knows has more digits than a column."""
    return of.value(value) if value is None or value < HUGE * of.divisor else number(value / of.divisor)


def _plain(low: str, high: str) -> str:
    return numbers.ABSENT if numbers.ABSENT in (low, high) else f"{low} – {high}"


def _compared(pair: CurvePair) -> Iterator[tuple[str, ...]]:
    for each in pair.parameters:
        yield (
            pair.arm,
            NAMES[each.parameter],
            _change(each.change.estimate, each.scale),
            _range(each.change, each.scale).strip("()").replace(" to ", " – "),
            numbers.p_value(each.p),
            numbers.p_value(each.p_adjusted),
            "no verdict" if each.verdict == "none" else each.verdict,
        )


def _change(value: float | None, kind: str) -> str:
    return numbers.ratio(value) if kind == "ratio" else number(value)


def _range(of: Estimate, kind: str) -> str:
    return f"({_change(of.low, kind)} to {_change(of.high, kind)})" if of.low is not None else "(no interval)"


def _notes(curve: Curves) -> tuple[str, ...]:
    if curve.reason:
        return ()
    misfit = (MISFIT,) if any(arm.misfit for arm in curve.arms) else ()
    smallest = curve.model == "usl" and curve.values[0] > 1
    below = (f"One user's rate is extrapolated: the smallest value is {number(curve.values[0])}.",) if smallest else ()
    family = (FAMILY,) if any(pair.parameters for pair in curve.pairs) else ()
    return (" ".join((MODELS[curve.model], SPREADS[curve.spread], *misfit, *family, *_beyond(curve), *below, RANGE)),)


def _beyond(curve: Curves) -> Iterator[str]:
    """Where the bound holds, and what is said of the fit without it."""
    beyond = [
        f"{name} {number(value)} of {arm.arm}"
        for arm in curve.arms
        for name, value in arm.free.items()
        if curve.model == "usl" and value < 0
    ]
    if beyond:
        yield f"Peaks, crossings, changes and misfit are of the fit without the bound: {', '.join(beyond)}."


def scale(analysis: Analysis, curve: Curves) -> Scale:
    """How values of the metric are printed beside its curves."""
    drawn = [point.estimate for arm in curve.arms for point in arm.line]
    return numbers.scale(analysis.metrics[curve.metric].unit, drawn)


def number(value: float | None) -> str:
    """Three significant digits; whole numbers from 100 on."""
    if value is None:
        return numbers.ABSENT
    if abs(value) >= HUGE:
        return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"  # noqa: PLR2004 - as many as three digits have


def lines(analysis: Analysis) -> Sequence[str]:
    """Sentences for a terminal."""
    return [
        f"{title(analysis, curve)}: {sentence}" if len(analysis.curves) > 1 else sentence
        for curve in analysis.curves
        for sentence in sentences(analysis, curve)
    ]
