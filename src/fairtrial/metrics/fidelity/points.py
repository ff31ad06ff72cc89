"""What the TPC-C specification (revision 5.11) asks of a drive's inputs, point by point, and whether counts keep to it.

Two things are asked of a share. It must be one that the specified chance gives: an exact binomial test at `LEVEL`. And
it must lie within the specification's own bounds (clause 9.2.2.5), where there were enough draws that a faithful drive
leaves them with a probability of less than `LEVEL`; with fewer, the bounds say nothing about the drive.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict
from scipy import special

from fairtrial.metrics.fidelity import binomial

Counts = Mapping[str, int]
Verdict = Literal["kept", "broken", "untested"]

LEVEL: Final = 1e-6  # a record has some twenty points: one faithful record in 50,000 is called broken by chance
FARTHEST: Final = float(-special.ndtri(LEVEL / 2))  # standard deviations that chance leaves at that level
DECK: Final = 100  # cards, clause 5.2.4.2
LINES: Final = range(5, 16)
MEAN_LINES: Final = 10.0
LINES_VARIANCE: Final = 10.0  # of a uniform choice from 5 to 15
LINES_ROOM: Final = 0.5  # between the mean and the bounds of clause 9.2.2.5.2
LEAST_PER_CLASS: Final = 5  # of a chi-squared test, expected
JOINED_ODD: Final = 0.75  # of two numbers whose bits are joined by "or", clause 2.1.6; of a uniform choice one half
MILLISECONDS_PER_SECOND: Final = 1000.0
DISTRICTS: Final = 10
SKIPPED_SHARE: Final = 0.01

MIX: Final = {"new_order": 0.45, "payment": 0.43, "order_status": 0.04, "delivery": 0.04, "stock_level": 0.04}
THINKING_S: Final = {"new_order": 12.0, "payment": 12.0, "order_status": 10.0, "delivery": 5.0, "stock_level": 5.0}
NURAND: Final = {"items": "item numbers", "customers": "customer numbers", "last_names": "last names"}


class TpccFidelityParameters(BaseModel):
    """What a study chose of TPC-C, as far as the specification speaks of it; `duration` in seconds."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    warehouses: int
    virtual_users: int
    think_time_scale: float
    all_warehouses: bool
    duration: float | None
    transactions: int | None


class FidelityPoint(BaseModel):
    """One thing the specification asks for.

    Attributes:
        name: what, for a table.
        clause: where the specification asks for it.
        asked: what it asks for.
        count, of: how often it was drawn, of how many; `of` 0: never.
        value: what was drawn: a share, or a mean.
        unit: of the value.
        low, high: the bounds that were held against the value; None: there are none, or too few draws for them.
        p: probability of counts at least as far from the specified chance; None where nothing is left to chance.
        verdict: `untested` where nothing was drawn or counted.
        trials_broken: trials whose own counts, taken alone, break it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    clause: str
    asked: str
    count: int
    of: int
    value: float | None
    unit: Literal["share", "lines", "s"] = "share"
    low: float | None = None
    high: float | None = None
    p: float | None = None
    verdict: Verdict
    trials_broken: int = 0


def points(drawn: Counts, parameters: TpccFidelityParameters, *, trials: int = 1) -> list[FidelityPoint]:
    """Every point about counts that may be added up over `trials` drives of equal parameters."""
    return [
        *_mix(drawn, parameters, trials=trials),
        *_orders(drawn, parameters),
        *_payments(drawn, parameters),
        _delivery(drawn),
        *(_joined(drawn, name, label) for name, label in NURAND.items()),
        *_thinking(drawn, parameters),
    ]


def _mix(drawn: Counts, parameters: TpccFidelityParameters, *, trials: int) -> Iterator[FidelityPoint]:
    """Decks keep the mix: a share differs only by what decks that were not finished can hold back or bring forward."""
    total = sum(drawn.get(kind, 0) for kind in MIX)
    for kind, share in MIX.items():
        unfinished = DECK * share * (1 - share) * parameters.virtual_users * trials / total if total else 0.0
        least = "" if kind == "new_order" else " at least"
        yield judged(
            Requirement(kind.replace("_", " "), "5.2.3, 5.2.4.2", f"{100 * share:.0f} %{least}"),
            (drawn.get(kind, 0), total),
            expected=share,
            bounds=(share - unfinished, share + unfinished),
            always=True,
        )


def _orders(drawn: Counts, parameters: TpccFidelityParameters) -> Iterator[FidelityPoint]:
    orders, lines = drawn.get("new_order", 0), drawn.get("order_lines", 0)
    yield judged(
        Requirement("new orders rolled back", "2.4.1.4, 9.2.2.5.1", "1 % (0.9–1.1)"),
        (drawn.get("new_order_rollback", 0), orders),
        expected=0.01,
        bounds=(0.009, 0.011),
    )
    yield _mean_lines(orders, lines)
    yield _spread_of_lines(drawn, orders)
    yield _remote(
        Requirement("remote order lines", "2.4.1.5, 9.2.2.5.3", "1 % (0.95–1.05)"),
        (drawn.get("order_lines_remote", 0), lines),
        expected=0.01,
        bounds=(0.0095, 0.0105),
        warehouses=parameters.warehouses,
    )


def _mean_lines(orders: int, lines: int) -> FidelityPoint:
    asked = Requirement("lines of an order, mean", "2.4.1.3, 9.2.2.5.2", "10 (9.5–10.5)")
    if not orders:
        return asked.point(lines, orders, unit="lines", verdict="untested")
    deviation = math.sqrt(LINES_VARIANCE / orders)
    p = _p_of_mean(lines / orders, MEAN_LINES, deviation=deviation)
    low, high = (9.5, 10.5) if FARTHEST * deviation <= LINES_ROOM else (None, None)
    inside = low is None or high is None or low <= lines / orders <= high
    verdict = _verdict(holds=p >= LEVEL and inside)
    return asked.point(lines, orders, unit="lines", low=low, high=high, p=p, verdict=verdict)


def _spread_of_lines(drawn: Counts, orders: int) -> FidelityPoint:
    asked = Requirement("lines of an order, spread", "2.4.1.3, 9.2.2.5.2", "5 to 15 alike")
    observed = [drawn.get(f"new_order_lines_{lines:02}", 0) for lines in LINES]
    if orders < LEAST_PER_CLASS * len(LINES) or sum(observed) != orders:
        verdict: Verdict = "untested" if sum(observed) <= orders else "broken"
        return asked.point(sum(observed), orders, verdict=verdict)
    even = sum(observed) / len(observed)
    p = float(special.chdtrc(len(observed) - 1, sum((count - even) ** 2 for count in observed) / even))
    return asked.point(sum(observed), orders, p=p, verdict=_verdict(holds=p >= LEVEL))


def _payments(drawn: Counts, parameters: TpccFidelityParameters) -> Iterator[FidelityPoint]:
    payments = drawn.get("payment", 0)
    yield _remote(
        Requirement("remote payments", "2.5.1.2, 9.2.2.5.4", "15 % (14–16)"),
        (drawn.get("payment_remote", 0), payments),
        expected=0.15,
        bounds=(0.14, 0.16),
        warehouses=parameters.warehouses,
    )
    for kind, clause in (("payment", "2.5.1.2, 9.2.2.5.5"), ("order_status", "2.6.1.2, 9.2.2.5.6")):
        yield judged(
            Requirement(f"{kind.replace('_', ' ')} by last name", clause, "60 % (57–63)"),
            (drawn.get(f"{kind}_by_last_name", 0), drawn.get(kind, 0)),
            expected=0.6,
            bounds=(0.57, 0.63),
        )


def _delivery(drawn: Counts) -> FidelityPoint:
    """Every completed delivery serves ten districts; more than one skipped in a hundred deliveries must be reported."""
    asked = Requirement("skipped districts", "2.7.4.2, 9.2.1.7", "1 % at most")
    deliveries, skipped = drawn.get("delivery", 0), drawn.get("delivery_skipped_districts", 0)
    served = skipped + drawn.get("delivered_orders", 0)
    if not deliveries:
        return asked.point(skipped, deliveries, verdict="untested")
    whole = served % DISTRICTS == 0 and served <= DISTRICTS * deliveries
    few = skipped <= max(1.0, SKIPPED_SHARE * deliveries)
    return asked.point(skipped, deliveries, verdict=_verdict(holds=whole and few))


def _joined(drawn: Counts, name: str, label: str) -> FidelityPoint:
    asked = Requirement(f"NURand, {label}", "2.1.6", "75 % odd")
    counted = drawn.get(f"nurand_{name}_joined_odd", 0), drawn.get(f"nurand_{name}", 0)
    return judged(asked, counted, expected=JOINED_ODD, bounds=None)


def _thinking(drawn: Counts, parameters: TpccFidelityParameters) -> Iterator[FidelityPoint]:
    scale = parameters.think_time_scale
    for kind, mean_s in THINKING_S.items() if scale else ():
        times = drawn.get(f"{kind}_thinking_times", 0)
        total_s = drawn.get(f"{kind}_thinking_ms", 0) / MILLISECONDS_PER_SECOND
        cut = mean_s * scale * (1 - math.exp(-10))  # cut at ten times the mean, clause 5.2.5.4
        scaled = "" if scale == 1 else f" × {scale:g}"
        asked = Requirement(f"{kind.replace('_', ' ')}, thinking", "5.2.5.4, 5.2.5.7", f"{mean_s:g} s{scaled}, mean")
        if not times:
            yield asked.point(0, 0, unit="s", verdict="untested")
            continue
        p = _p_of_mean(total_s / times, cut, deviation=cut / math.sqrt(times))
        verdict = _verdict(holds=p >= LEVEL)
        yield asked.point(round(total_s), times, value=total_s / times, unit="s", p=p, verdict=verdict)


@dataclass(frozen=True)
class Requirement:
    """The words of a point: what it is called, where it is asked for, what is asked."""

    name: str
    clause: str
    asked: str

    def point(self, count: int, of: int, *, verdict: Verdict, **rest: Any) -> FidelityPoint:
        """The point; its value is the ratio of the counts unless `rest` has another."""
        value = count / of if of else None
        return FidelityPoint(**{**asdict(self), "count": count, "of": of, "value": value, "verdict": verdict, **rest})


def judged(
    asked: Requirement,
    counted: tuple[int, int],
    *,
    expected: float,
    bounds: tuple[float, float] | None,
    always: bool = False,
) -> FidelityPoint:
    """A share against its chance and, where there are enough draws or chance has no part (`always`), its bounds."""
    count, of = counted
    if not of:
        return asked.point(count, of, verdict="untested")
    if not 0 <= count <= of:
        return asked.point(count, of, verdict="broken")
    p = binomial.p_value(count, of, expected)
    held = bounds if bounds and (always or _enough(of, expected, bounds)) else None
    inside = held is None or held[0] <= count / of <= held[1]
    low, high = held or (None, None)
    return asked.point(count, of, low=low, high=high, p=p, verdict=_verdict(holds=p >= LEVEL and inside))


def _enough(of: int, expected: float, bounds: tuple[float, float]) -> bool:
    """Whether a faithful drive leaves the bounds with a probability below `LEVEL`."""
    deviation = math.sqrt(expected * (1 - expected) / of)
    room = min(expected - bounds[0], bounds[1] - expected)
    return FARTHEST * deviation <= room


def _remote(asked: Requirement, counted: tuple[int, int], *, warehouses: int, **chance: Any) -> FidelityPoint:
    """A share of remote warehouses; with one warehouse there is none, and nothing may be remote."""
    if warehouses > 1:
        return judged(asked, counted, **chance)
    count, of = counted
    alone = Requirement(asked.name, asked.clause, "none")
    return alone.point(count, of, verdict=_verdict(holds=count == 0) if of else "untested")


def _verdict(*, holds: bool) -> Verdict:
    return "kept" if holds else "broken"


def _p_of_mean(mean: float, expected: float, *, deviation: float) -> float:
    """Two-sided, by the normal limit: the drives in question have hundreds of draws."""
    return float(2 * special.ndtr(-abs(mean - expected) / deviation))
