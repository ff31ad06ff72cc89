"""What an analysis says: frozen results that carry their method, their n and their doubts.

Owns the shape of every statistical result; `report.json` is this, dumped. It must not know how results are rendered.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from fairtrial.study.catalogue import MetricDefinition

Verdict = Literal["faster", "slower", "equivalent", "undecided", "none"]
Role = Literal["primary", "secondary", "guardrail"]

# Every reason to trust a result less; docs/methodology.md explains each with its rate of false alarms.
DOUBT_CODES: Final = (
    "zero_variance",
    "quantised",
    "sorted",
    "unequal_n",
    "missing",
    "drift",
    "not_randomised",
    "voided",
    "not_at_rest",
    "client_saturated",
    "timed_out",
    "latency_saturated",
    "few_blocks",
    "non_positive",
    "not_computable",
    "disagreement",
    "expectation_failed",
    "unfinished",
)


class Result(BaseModel):
    """Frozen base of every result."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Doubt(Result):
    """A reason to trust a result less, with advice; Python owns the name `Warning`.

    Attributes:
        code: stable name on the reference page, one of `DOUBT_CODES`.
        message: what was seen, with the figures.
        advice: what the reader can do.
        cell, metric, arm: where; empty means everywhere.
    """

    code: str
    message: str
    advice: str
    cell: str = ""
    metric: str = ""
    arm: str = ""


class Summary(Result):
    """One arm in one cell on one metric. The interval is Student's t on the mean and is descriptive only.

    Attributes:
        values: one per valid trial, in time order.
        blocks: the block of each value.
        sd: sample standard deviation (n - 1); None if n < 2.
        low, high: interval of the mean at `confidence`; None if n < 2.
    """

    arm: str
    n: int
    mean: float
    sd: float | None
    low: float | None
    high: float | None
    median: float
    confidence: float
    values: tuple[float, ...]
    blocks: tuple[int, ...]


class Interval(Result):
    """An estimate with its interval.

    `low` and `high` are None where n or spread does not allow one, or none that a number can hold; `estimate` is None
    where the scale itself does not exist: a ratio of values that are not all positive.
    """

    estimate: float | None
    low: float | None
    high: float | None


class Welch(Result):
    """Welch's two-sample t on the raw values, treatment minus baseline, as R's `t.test` prints it."""

    t: float
    df: float
    p: float
    difference: Interval


class Comparison(Result):
    """One arm against the baseline in one cell on one metric.

    Intervals hold one at a time at `confidence`; verdicts hold for the whole family. So an interval may leave out 1
    where the verdict is `undecided`: with many cells that is what chance alone does in some of them.

    Attributes:
        method: the estimator in words: `paired t on log ratios over blocks`, `Welch on logs`, …
        n: pairs if paired, else the smaller arm's n.
        ratio: treatment / baseline with its interval at `confidence`.
        difference: treatment - baseline in the metric's unit, paired where blocks exist.
        welch: the unpaired classic beside it; None if it cannot be computed.
        p: two-sided, unadjusted; 1 with a doubt if it cannot be computed.
        p_adjusted: Holm over the family for primary metrics; None outside a family.
        p_equivalence: larger of the two one-sided tests against the margin; None if it cannot be computed.
        p_equivalence_adjusted: the same, Holm over the family; None outside a family or if it cannot be computed.
        family_size: number of primary comparisons adjusted together; 0 outside a family.
        verdict: `faster` means better by the metric's direction, whatever its unit; `none` where an expectation of a
            compared cell failed or the run is unfinished.
        smallest_effect: ratio - 1 that this n and spread would have found with power 0.8 at the level that Holm's
            hardest step asks for; None if unknown, or larger than any number.
        assumptions: in words.
    """

    metric: str
    role: Role
    cell: str
    baseline: str
    arm: str
    method: str
    n: int
    confidence: float
    ratio: Interval
    difference: Interval
    welch: Welch | None
    p: float
    p_adjusted: float | None
    p_equivalence: float | None
    p_equivalence_adjusted: float | None = None
    family_size: int
    verdict: Verdict
    smallest_effect: float | None
    assumptions: tuple[str, ...]
    doubts: tuple[Doubt, ...] = ()


class ExpectationResult(Result):
    """A cell's expectation, evaluated on its valid trials of all arms."""

    cell: str
    metric: str
    text: str
    mean: float | None
    n: int
    met: bool


class CellResult(Result):
    """One cell of the contrast: levels of every other factor, each arm's summaries, comparisons with the baseline.

    `summaries` and `comparisons` are by metric name; comparisons in the contrast's arm order, without the baseline.
    """

    cell: str
    levels: dict[str, str]
    summaries: dict[str, tuple[Summary, ...]]
    comparisons: dict[str, tuple[Comparison, ...]]
    expectations: tuple[ExpectationResult, ...] = ()


class Counts(Result):
    """How many trials and blocks stand behind the analysis."""

    planned: int
    finished: int
    valid: int
    invalid: int
    used: int
    blocks_voided: int
    blocks_replaced: int


class Analysis(Result):
    """Everything a report prints.

    Attributes:
        contrast: the factor compared; its first level is the baseline.
        levels: levels of the contrast, baseline first.
        finished: whether the run reached its planned end.
        paired: whether comparisons pair trials by block.
        metrics: definition of every metric analysed, primary first.
        roles: metric name → role.
    """

    study: str
    question: str
    contrast: str
    levels: tuple[str, ...]
    finished: bool
    paired: bool
    margin: float
    confidence: float
    metrics: dict[str, MetricDefinition]
    roles: dict[str, Role]
    cells: tuple[CellResult, ...]
    counts: Counts
    doubts: tuple[Doubt, ...] = ()
