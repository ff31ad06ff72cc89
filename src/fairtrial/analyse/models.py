"""What an analysis says: frozen results that carry their method, their n and their doubts.

Owns the shape of every statistical result; `report.json` is this, dumped. It must not know how results are rendered.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from fairtrial.analyse.designs.adjusted import CovariateAdjustment
from fairtrial.analyse.designs.curve_models import Curves
from fairtrial.analyse.designs.interaction_models import Interaction
from fairtrial.analyse.designs.layout_models import OverLayouts
from fairtrial.analyse.designs.screening_models import ScreeningResult
from fairtrial.analyse.hosts.models import OverHosts
from fairtrial.analyse.noise.models import NoiseFloor, NoiseProfile
from fairtrial.analyse.result import Result, Verdict
from fairtrial.analyse.why.models import CellWhy
from fairtrial.record.models import StopReason
from fairtrial.study.catalogue import MetricDefinition

Role = Literal["primary", "secondary", "guardrail"]
Adjustment = Literal["none", "holm", "dunnett", "benjamini_hochberg"]
Outcome = Literal["kept", "breached", "unclear", "none"]
Estimand = Literal["mean", "typical", "some"]
SteadinessVerdict = Literal["steady", "drifting", "unsteady"]

# Every reason to trust a result less; docs/explanation/methodology.md explains each with its rate of false alarms.
DOUBT_CODES: Final = (
    "zero_variance",
    "quantised",
    "sorted",
    "unequal_n",
    "missing",
    "drift",
    "stopped_early",
    "fixed_slots",
    "dependent_blocks",
    "dependent_rows",
    "hosts_disagree",
    "hosts_mixed",
    "hosts_share_machine",
    "covariate_moved",
    "bound_to_layout",
    "curve_misfit",
    "curve_superlinear",
    "shared_state",
    "summarised",
    "guessed_encoding",
    "partly_failed",
    "waits_left_out",
    "not_randomised",
    "duet",
    "voided",
    "not_at_rest",
    "cache_kept",
    "left_running",
    "data_not_compared",
    "emulated",
    "place_unfit",
    "one_node",
    "host_unseen",
    "state_carried",
    "option_moved",
    "slow_readings",
    "missed_readings",
    "client_saturated",
    "clients_differ",
    "tail_unmeasured",
    "timed_out",
    "latency_saturated",
    "footprint",
    "invisible_io",
    "shared_device",
    "read_elsewhere",
    "censored_shutdown",
    "unequal_work",
    "other_rule",
    "page_shared",
    "farm_shared",
    "few_blocks",
    "rests_on_normality",
    "little_power",
    "non_positive",
    "interval_censored",
    "few_exceedances",
    "not_steady",
    "steadiness_differs",
    "not_computable",
    "disagreement",
    "spreads_differ",
    "thin_tails",
    "expectation_failed",
    "arm_leaves_condition",
    "unfinished",
)


class Doubt(Result):
    """A reason to trust a result less, with advice; Python owns the name `Warning`.

    Attributes:
        code: stable name on the reference page, one of `DOUBT_CODES`.
        message, advice: what was seen, with the figures, and what the reader can do.
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
        positions: its place in time, from the run's first trial on.
        hosts: the host of each value; empty where trials name none.
        layouts: the order of linking of each value's program; left out without builds.
        sd: sample standard deviation (n - 1); None if n < 2.
        low, high: interval of the mean at `confidence`; None if n < 2.
        purpose: what the interval is good for. It is not one to compare arms by, and where some trials are slow now
            and then it covers far less often than `confidence` says (docs/explanation/calibration.md).
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
    positions: tuple[int, ...] = ()
    hosts: tuple[str, ...] = ()
    layouts: Annotated[tuple[str, ...], Field(exclude_if=lambda layouts: not layouts)] = ()
    purpose: Literal["descriptive"] = "descriptive"


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


class RankOpinion(Result):
    """The exact rank test and the Hodges-Lehmann estimate: what can be said without any shape of the noise.

    Attributes:
        method: `Wilcoxon signed rank over blocks` or `Mann-Whitney`.
        scale: what `shift` is: a ratio where every value has a logarithm, else a difference in the metric's unit.
        shift: the estimate and the values that the test would not reject at the comparison's confidence; without
            low and high where n is too small to reject any.
        p: two-sided, unadjusted.
        smallest_p: the smallest that this n could give.
        exact: whether p is from the exact distribution, given the ties; else from the normal approximation.
        tied: values that take part in a tie, or differences of zero.
    """

    method: str
    scale: Literal["ratio", "difference"]
    shift: Interval
    p: float
    smallest_p: float
    exact: bool
    tied: int


class Spreads(Result):
    """The spreads of two arms, on the scale of their comparison.

    Attributes:
        ratio: standard deviation of the arm over the baseline's.
        p: two-sided, of equal spreads, whatever their shape.
    """

    ratio: float
    p: float


class Stalls(Result):
    """What rare slow trials may do that so few trials do not show.

    Attributes:
        share: of an arm's trials that may stall at most if none of them was seen to, with the confidence that a
            comparison needs at the hardest step of its family.
        depth: how much a stalled trial is taken to lose.
        worth: how much of the arm's geometric mean so many stalls take.
    """

    share: float
    depth: float
    worth: float


class Guardrail(Result):
    """Whether a metric that must not get worse did not: a test of non-inferiority, one-sided, at the study's level.

    Attributes:
        margin: how much worse does not matter, as a share; on the log scale log(1 + margin) in the worse direction.
        outcome: `kept` if it is shown not to be worse by the margin, `breached` if it is shown to be, `unclear` if
            neither; `none` where an expectation of a compared cell failed or the run is unfinished.
        bound: the worst ratio that a one-sided test at the study's confidence would not reject: an upper bound where
            lower is better, a lower one where higher is. None without logarithms or without a test, and
            where values of the arm were cut off at a limit.
        difference_bound: the same for the difference in the metric's unit.
        p_kept: of "it is worse by the margin or more"; 1 if it cannot be computed.
        p_breached: of "it is worse by the margin at most"; 1 if it cannot be computed.
        estimand: what the outcome is about, as of a comparison; None where it is unclear or none.
    """

    margin: float
    outcome: Outcome
    bound: float | None
    difference_bound: float | None
    p_kept: float
    p_breached: float
    estimand: Estimand | None = None


class Comparison(Result):
    """One arm against the baseline in one cell on one metric.

    Intervals hold one at a time at `confidence`; verdicts hold for the whole family. So an interval may leave out 1
    where the verdict is `undecided`: with many cells that is what chance alone does in some of them.

    Attributes:
        method: the estimator in words: `paired t on log ratios over blocks`, `Welch on logs`, …
        n: pairs if paired, else the smaller arm's n.
        ratio: treatment / baseline with its interval at `confidence`.
        mean: what all trials together leave open of the mean of all trials that could have been made: the interval at
            the level of the hardest step of the family, widened by what unseen stalls of either arm may be worth. A
            ratio where `ratio` is one, else a difference. None if it cannot be computed.
        equivalence_interval: the ratio's interval at 2 · `confidence` - 1, of the two one-sided tests of equivalence:
            *equivalent* is claimed only if it lies within the margin. None if it cannot be computed.
        difference: treatment - baseline in the metric's unit, paired where blocks exist.
        welch: the unpaired classic beside it; None if it cannot be computed.
        p: two-sided, unadjusted for the family; 1 with a doubt if it cannot be computed. In a run that could stop early
            it is valid whenever that stopped, as all p values and intervals here but those of `welch`.
        p_by_t: Student's own p where exchanging arms within blocks, or ranks, raised it; None elsewhere.
        p_once: what p would be if this had been the only look planned; None where it was.
        p_adjusted: over the family of its role; None for guardrails, which are no family.
        adjustment: how: primary metrics by `holm`, or by `dunnett` within a cell where several arms share its baseline
            and Holm across cells and metrics; secondary ones by `benjamini_hochberg`, which is exploratory.
        baseline_share: the part of the comparison's variance that it shares with the other arms of its cell because
            they have one baseline, as `dunnett` used it; 0 counts as independent.
        margin: of equivalence on the ratio, as a share: the study's, or less where a share leaves little of its total
            (`analyse.shares`); 0 without a ratio.
        p_equivalence: larger of the two one-sided tests against the margin; None if it cannot be computed.
        p_equivalence_adjusted: the same over the family, Holm or Benjamini-Hochberg; None outside a family or if it
            cannot be computed.
        family_size: number of comparisons of this role adjusted together; 0 for guardrails.
        verdict: `faster` means better by the metric's direction, whatever its unit; `none` where an expectation of a
            compared cell failed or the run is unfinished.
        estimand: what a claim is about. `typical`: the typical trial, the shift that most pairs of trials agree on
            (the pseudo-median; `rank.shift` estimates it). `mean`: the mean as well, rare stalls included, because
            `mean` bears the claim out. `some`: some trials only, because the typical one does not move. None without a
            claim.
        smallest_effect: ratio - 1 that this n and spread would have found with power 0.8 at the level the
            family's hardest step asks for; None if unknown, or larger than any number.
        smallest_difference: the same in the metric's unit.
        claimable: whether so many trials may claim anything, be it a difference, equivalence or a guardrail kept: an
            exact test of them could. Else noise with two modes, which so few trials cannot show, would claim too often.
        typical_moves: whether the median difference of blocks is not 0; without blocks, whether the medians differ.
        rank: the exact rank test beside it; None with more values than it is made for.
        spreads: whether the arms' own spreads differ; None where there are too few values to tell.
        stalls: what stalls that nobody has seen may be worth.
        guardrail: whether a guardrail is kept; None for other roles.
        over_hosts: the hosts of its blocks, and what they say of hosts like these; None where trials name no host,
            because one place ran all of them.
        covariates: of a primary metric in a study that has some: the estimate with and without them; left out
            elsewhere. Where it decides, `ratio`, p values and verdict are the adjusted estimate's.
        over_layouts: of programs linked in several orders: what it says of layouts like these; else left out.
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
    mean: Interval | None = None
    equivalence_interval: Interval | None = None
    difference: Interval
    welch: Welch | None
    p: float
    p_by_t: float | None = None
    p_once: float | None = None
    p_adjusted: float | None
    margin: float = 0.0
    p_equivalence: float | None
    p_equivalence_adjusted: float | None = None
    family_size: int
    verdict: Verdict
    estimand: Estimand | None = None
    smallest_effect: float | None
    smallest_difference: float | None = None
    adjustment: Adjustment = "none"
    baseline_share: float = 0.0
    claimable: bool = True
    typical_moves: bool = True
    rank: RankOpinion | None = None
    spreads: Spreads | None = None
    stalls: Stalls | None = None
    guardrail: Guardrail | None = None
    over_hosts: OverHosts | None = None
    covariates: Annotated[CovariateAdjustment | None, Field(exclude_if=lambda each: each is None)] = None
    over_layouts: Annotated[OverLayouts | None, Field(exclude_if=lambda each: each is None)] = None
    assumptions: tuple[str, ...]
    doubts: tuple[Doubt, ...] = ()


class ArmMean(Result):
    """One arm's mean over its valid trials in a planned cell that have a finite value, and whether a range holds it."""

    arm: str
    mean: float | None
    n: int
    inside: bool


class ExpectationResult(Result):
    """A cell's expectation, evaluated on the valid trials of the plan's baseline arm there.

    Attributes:
        mean, n: of the baseline arm; None where no trial has a finite value.
        met: whether that mean lies in the range; without a mean it does not.
        by_arm: every arm of the plan, the baseline first.
    """

    cell: str
    metric: str
    text: str
    mean: float | None
    n: int
    met: bool
    by_arm: tuple[ArmMean, ...] = ()


class CellResult(Result):
    """One cell of the contrast: levels of every other factor, each arm's summaries, comparisons with the baseline.

    `summaries` and `comparisons` are by metric name; comparisons in the contrast's arm order, without the baseline.
    `covariates` has the summaries of the study's covariates, by name; left out without any.
    """

    cell: str
    levels: dict[str, str]
    summaries: dict[str, tuple[Summary, ...]]
    comparisons: dict[str, tuple[Comparison, ...]]
    expectations: tuple[ExpectationResult, ...] = ()
    covariates: Annotated[dict[str, tuple[Summary, ...]], Field(exclude_if=lambda each: not each)] = Field({})


class Counts(Result):
    """How many trials and blocks stand behind the analysis. Diagnostic trials are in none of the other figures.

    Attributes:
        late: trials of rounds after the one that stopped their cell, which a farm had begun by then; in none of the
            other figures either.
        rows: of a table, where rows were averaged into trials; 0 where every row is a trial.
    """

    planned: int
    finished: int
    valid: int
    invalid: int
    used: int
    blocks_voided: int
    blocks_replaced: int
    diagnostic: int = 0
    late: int = 0
    rows: int = 0


class CellStop(Result):
    """When and why a cell got no more blocks.

    Attributes:
        blocks: complete blocks by then, of the comparison that has the fewest.
        round: after which it was decided.
    """

    cell: str
    blocks: int
    round: int
    reason: StopReason


class Stopping(Result):
    """How a run that could stop early went, recomputed from its trials.

    Attributes:
        rule: in words.
        first, last: blocks before the first decision, and the largest number.
        cells: in the plan's order; those still open are missing.
        share: of the planned blocks that were compared, by the comparison that has the fewest in each cell.
    """

    rule: str
    first: int
    last: int
    cells: tuple[CellStop, ...]
    share: float


class Steadiness(Result):
    """Whether one used trial measured a steady state; `metrics.steadiness` says how each figure is found.

    Attributes:
        verdict: of the whole measured window.
        drift: change of a straight line over the window, as a share of the mean.
        drift_p: two-sided, autocorrelation counted.
        levels: segments of different mean.
        settled_from_s: from where on no level differs from the last; the window's length if it drifts.
        autocorrelation: of neighbouring intervals; None for constant throughput.
        effective_n: independent intervals that would give the mean as precisely.
    """

    trial: str
    cell: str
    arm: str
    verdict: SteadinessVerdict
    drift: float
    drift_p: float
    levels: int
    settled_from_s: float
    autocorrelation: float | None
    effective_n: float


class Analysis(Result):
    """Everything a report prints.

    Attributes:
        contrast: the factor compared; its first level is the baseline.
        levels: levels of the contrast, baseline first.
        finished: whether the run reached its planned end.
        paired: whether comparisons pair trials by block.
        metrics: definition of every metric analysed, primary first.
        roles: metric name → role.
        stopping: None if all blocks were planned to run, or another factor than the arm is compared.
        steadiness: of every used trial that has a timeline long enough to judge.
        noise: of an A/A run: what it says of its place.
        why: of each cell and arm with a claim on a primary metric: which counters changed with the arm; exploratory.
        screening: of a screening, in place of comparisons: main effects, and what is nominated; left out elsewhere.
        interactions: whether arms' effects on primary metrics differ between conditions; left out without conditions.
        curves: over a numeric factor, where the study asks for them; left out elsewhere.
        floors: of any other run: the noise floor of the place, cell by cell and metric by metric, where an A/A ran.
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
    stopping: Stopping | None = None
    steadiness: tuple[Steadiness, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    noise: NoiseProfile | None = None
    floors: tuple[NoiseFloor, ...] = ()
    interactions: Annotated[tuple[Interaction, ...], Field(exclude_if=lambda each: not each)] = ()
    why: tuple[CellWhy, ...] = ()
    curves: Annotated[tuple[Curves, ...], Field(exclude_if=lambda curves: not curves)] = ()
    screening: Annotated[ScreeningResult | None, Field(exclude_if=lambda each: each is None)] = None
