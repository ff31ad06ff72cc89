"""What the TPC-C specification (revision 5.11) asks of a drive's inputs, point by point."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from scipy import special

from fairtrial.metrics.fidelity.points import (
    FARTHEST,
    LEVEL,
    Counts,
    Deviation,
    FidelityPoint,
    Requirement,
    Specification,
    Verdict,
    judged,
    verdict_of,
)

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

CONSTANT_LIMITS: Final = {"nurand_c_last_name_run": 255, "nurand_c_customer": 1023, "nurand_c_item": 8191}
DELTAS: Final = range(65, 120)  # of the two constants for last names, clause 2.1.6.1
DELTAS_FORBIDDEN: Final = (96, 112)
TERMINALS_PER_WAREHOUSE: Final = 10
LEAST_MEASURED_S: Final = 7200.0
# Where `NURand` adds C and its range's first number before a number can be seen, as (first number, C).
JOINED: Final = {
    "items": (1, "nurand_c_item"),
    "customers": (1, "nurand_c_customer"),
    "last_names": (0, "nurand_c_last_name_run"),
}
HOW: Final = (
    "Counts cover whole trials, ramp-up included. A point is broken if random draws as specified give a count this far "
    f"off with a probability below {LEVEL:g}, or if the count lies outside the specification's own bounds although so "
    "many draws would stay within them; bounds that are too narrow for so few draws are not applied. The mix comes "
    f"from decks of {DECK} cards (clause 5.2.4.2): only unfinished decks may change it. Of the numbers that NURand "
    "combines, three in four are odd before its constant C is added; of uniform numbers, as some tools draw them, one "
    "in two."
)
ENGINE: Final = (
    "docs/guides/workloads.md lists where the load generator departs from the specification. Its results are not "
    "those of an audited benchmark."
)


class TpccSpecification(Specification):
    """What a study chose of TPC-C, as far as the specification speaks of it; `duration` in seconds."""

    notes = (HOW, ENGINE)
    broken = "TPC-C transactions deviate from the specification"

    warehouses: int
    virtual_users: int
    think_time_scale: float
    all_warehouses: bool
    duration: float | None
    transactions: int | None

    def length(self, drawn: Counts) -> int:
        """Transactions of the five types."""
        return sum(drawn.get(kind, 0) for kind in MIX)

    def points(self, drawn: Counts, *, trials: int = 1) -> list[FidelityPoint]:
        """Every point about counts that may be added up over `trials` drives of equal parameters."""
        return [
            *_mix(drawn, self, trials=trials),
            *_orders(drawn, self),
            *_payments(drawn, self),
            _delivery(drawn),
            *(_joined(drawn, name, label) for name, label in NURAND.items()),
            *_thinking(drawn, self),
        ]

    def points_of_each(self, drives: Sequence[Counts]) -> Iterator[FidelityPoint]:
        """The constants of `NURand`."""
        yield _constants(drives)

    def comparable(self, drawn: Counts) -> dict[str, int]:
        """With `nurand_<name>_joined_odd`: odd numbers as they were before a drive's own constant was added."""
        comparable = dict(drawn)
        for name, (first, constant) in JOINED.items():
            if f"nurand_{name}" in drawn and constant in drawn:
                odd, of = drawn.get(f"nurand_{name}_odd", 0), drawn[f"nurand_{name}"]
                comparable[f"nurand_{name}_joined_odd"] = odd if (first + drawn[constant]) % 2 == 0 else of - odd
        return comparable

    def deviations(self) -> Iterable[Deviation]:
        """Scale, waits and length, where they are not those of the specification."""
        scale, warehouses, users = self.think_time_scale, self.warehouses, self.virtual_users
        if scale != 1:
            times = "no keying or thinking times" if scale == 0 else f"keying and thinking times × {scale:g}"
            yield Deviation(clause="5.2.5", chosen=times)
        if self.all_warehouses:
            homes = "each transaction draws its home warehouse, and stock level its district, anew"
            yield Deviation(clause="2.4.1.1, 2.5.1.1, 2.6.1.1, 2.7.1.1, 2.8.1.1", chosen=homes)
        if users != TERMINALS_PER_WAREHOUSE * warehouses:
            chosen = f"{users} terminals, not {TERMINALS_PER_WAREHOUSE} for each of {warehouses} warehouses"
            yield Deviation(clause="4.2.1", chosen=chosen)
        if (self.duration or 0.0) < LEAST_MEASURED_S:
            measured = f"{self.duration:g} s" if self.duration else f"{self.transactions} transactions"
            yield Deviation(clause="5.5.2", chosen=f"{measured} measured, not two hours at least")


def _mix(drawn: Counts, parameters: TpccSpecification, *, trials: int) -> Iterator[FidelityPoint]:
    """Decks keep the mix: a share differs only by what decks that were not finished can hold back or bring forward."""
    total = parameters.length(drawn)
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


def _orders(drawn: Counts, parameters: TpccSpecification) -> Iterator[FidelityPoint]:
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
    requirement = Requirement("lines of an order, mean", "2.4.1.3, 9.2.2.5.2", "10 (9.5–10.5)")
    if not orders:
        return requirement.point(lines, orders, unit="lines", verdict="untested")
    deviation = math.sqrt(LINES_VARIANCE / orders)
    p = _p_of_mean(lines / orders, MEAN_LINES, deviation=deviation)
    low, high = (9.5, 10.5) if FARTHEST * deviation <= LINES_ROOM else (None, None)
    inside = low is None or high is None or low <= lines / orders <= high
    verdict = verdict_of(holds=p >= LEVEL and inside)
    return requirement.point(lines, orders, unit="lines", low=low, high=high, p=p, verdict=verdict)


def _spread_of_lines(drawn: Counts, orders: int) -> FidelityPoint:
    requirement = Requirement("lines of an order, spread", "2.4.1.3, 9.2.2.5.2", "5 to 15 alike")
    observed = [drawn.get(f"new_order_lines_{lines:02}", 0) for lines in LINES]
    if orders < LEAST_PER_CLASS * len(LINES) or sum(observed) != orders:
        verdict: Verdict = "untested" if sum(observed) <= orders else "broken"
        return requirement.point(sum(observed), orders, verdict=verdict)
    even = sum(observed) / len(observed)
    p = float(special.chdtrc(len(observed) - 1, sum((count - even) ** 2 for count in observed) / even))
    return requirement.point(sum(observed), orders, p=p, verdict=verdict_of(holds=p >= LEVEL))


def _payments(drawn: Counts, parameters: TpccSpecification) -> Iterator[FidelityPoint]:
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
    requirement = Requirement("skipped districts", "2.7.4.2, 9.2.1.7", "1 % at most")
    deliveries, skipped = drawn.get("delivery", 0), drawn.get("delivery_skipped_districts", 0)
    served = skipped + drawn.get("delivered_orders", 0)
    if not deliveries:
        return requirement.point(skipped, deliveries, verdict="untested")
    whole = served % DISTRICTS == 0 and served <= DISTRICTS * deliveries
    few = skipped <= max(1.0, SKIPPED_SHARE * deliveries)
    return requirement.point(skipped, deliveries, verdict=verdict_of(holds=whole and few))


def _joined(drawn: Counts, name: str, label: str) -> FidelityPoint:
    requirement = Requirement(f"NURand, {label}", "2.1.6", "75 % odd")
    counted = drawn.get(f"nurand_{name}_joined_odd", 0), drawn.get(f"nurand_{name}", 0)
    return judged(requirement, counted, expected=JOINED_ODD, bounds=None)


def _thinking(drawn: Counts, parameters: TpccSpecification) -> Iterator[FidelityPoint]:
    scale = parameters.think_time_scale
    for kind, mean_s in THINKING_S.items() if scale else ():
        times = drawn.get(f"{kind}_thinking_times", 0)
        total_s = drawn.get(f"{kind}_thinking_ms", 0) / MILLISECONDS_PER_SECOND
        cut = mean_s * scale * (1 - math.exp(-10))  # cut at ten times the mean, clause 5.2.5.4
        scaled = "" if scale == 1 else f" × {scale:g}"
        requirement = Requirement(
            f"{kind.replace('_', ' ')}, thinking", "5.2.5.4, 5.2.5.7", f"{mean_s:g} s{scaled}, mean"
        )
        if not times:
            yield requirement.point(0, 0, unit="s", verdict="untested")
            continue
        p = _p_of_mean(total_s / times, cut, deviation=cut / math.sqrt(times))
        verdict = verdict_of(holds=p >= LEVEL)
        yield requirement.point(round(total_s), times, value=total_s / times, unit="s", p=p, verdict=verdict)


def _constants(drives: Sequence[Counts]) -> FidelityPoint:
    """Every drive's constants of `NURand` by themselves: they do not add up."""
    known = [drawn for drawn in drives if "nurand_c_last_name_load" in drawn]
    allowed = sum(map(_allowed, known))
    verdict: Verdict = ("kept" if allowed == len(known) else "broken") if known else "untested"
    return FidelityPoint(
        name="NURand, constants",
        clause="2.1.6, 2.1.6.1",
        asked="ranges and delta",
        count=allowed,
        of=len(known),
        value=allowed / len(known) if known else None,
        verdict=verdict,
        trials_broken=len(known) - allowed,
    )


def _allowed(drawn: Counts) -> bool:
    delta = abs(drawn.get("nurand_c_last_name_run", 0) - drawn["nurand_c_last_name_load"])
    in_range = all(0 <= drawn.get(name, -1) <= limit for name, limit in CONSTANT_LIMITS.items())
    return in_range and delta in DELTAS and delta not in DELTAS_FORBIDDEN


def _remote(requirement: Requirement, counted: tuple[int, int], *, warehouses: int, **chance: Any) -> FidelityPoint:
    """A share of remote warehouses; with one warehouse there is none, and nothing may be remote."""
    if warehouses > 1:
        return judged(requirement, counted, **chance)
    count, of = counted
    alone = Requirement(requirement.name, requirement.clause, "none")
    return alone.point(count, of, verdict=verdict_of(holds=count == 0) if of else "untested")


def _p_of_mean(mean: float, expected: float, *, deviation: float) -> float:
    """Two-sided, by the normal limit: the drives in question have hundreds of draws."""
    return float(2 * special.ndtr(-abs(mean - expected) / deviation))
