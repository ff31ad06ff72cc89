"""What changed with an arm besides the metrics: counters and levels, ranked. Owns the shape of these results."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fairtrial.analyse.result import Result

Form = Literal["counter", "level", "share"]
Subsystem = Literal["cpu", "scheduler", "memory", "io", "network", "server", "other"]


class RatioInterval(Result):
    """A ratio of geometric means, arm over baseline, with its interval; each alone, not adjusted."""

    ratio: float
    low: float
    high: float


class CounterChange(Result):
    """One counter or level in one cell, arm against baseline.

    Attributes:
        counter: `source:column`.
        form: a counter's growth, a level's mean, or a share of processor time.
        baseline, arm: means; of counters per second, of shares from 0 to 1.
        per_second, per_work: ratio of a counter's rates; None where a value is 0, `per_work` also where work is not
            counted.
        level: ratio of a level's means, the same way.
        difference: arm minus baseline, in the unit of `baseline`, with `difference_low` and `difference_high`.
        standardised: mean of the tested differences over their standard deviation, with its exact interval
            (noncentral t); on logarithms per unit of work where that exists, else per second, else in units.
        p: two-sided, of the test of those differences; unadjusted.
        p_adjusted: Benjamini-Hochberg over every counter of every cell explained: an exploratory family of its own.
        note: why the counter may not mean the same in both arms; empty if nothing is known.
    """

    counter: str
    form: Form
    subsystem: Subsystem
    baseline: float
    arm: float
    per_second: RatioInterval | None
    per_work: RatioInterval | None
    level: RatioInterval | None
    difference: float
    difference_low: float
    difference_high: float
    standardised: float
    standardised_low: float | None
    standardised_high: float | None
    p: float
    p_adjusted: float
    note: str = ""


class CertainChange(Result):
    """One counter or level that differs between the arms by the same in every trial: without spread there is no t.

    Attributes:
        counter, form, note: as of `CounterChange`.
        baseline, arm: means; of a counter per unit of the cell's work, or per second where there is none.
        p: two-sided, of exchanging the arms; unadjusted.
    """

    counter: str
    form: Form
    baseline: float
    arm: float
    p: float
    note: str = ""


class CellWhy(Result):
    """What changed in one cell that has an effect, strongest first. Correlational: it moved with the arm, no more.

    Attributes:
        n: blocks, or trials of the smaller arm.
        unit: of work, `transaction` or `run`; empty where work is not counted.
        tested: counters and levels with a test.
        constant: those that never varied.
        changes: the strongest.
        certain: those that differ by the same in every trial; in no count and no family.
    """

    cell: str
    baseline: str
    arm: str
    n: int
    unit: str
    tested: int
    constant: int
    changes: tuple[CounterChange, ...]
    certain: Annotated[tuple[CertainChange, ...], Field(exclude_if=lambda certain: not certain)] = ()
