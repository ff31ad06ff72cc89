"""Numbers to be judged, whatever they were read from: what is asked of them, and what is known of their course.

Owns the shape that an analysis starts from. A run's record is one way to fill it, anyone's table another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from fairtrial.analyse.measured import ArmValues
from fairtrial.analyse.models import Comparison, Counts, Doubt, ExpectationResult, Role, Steadiness, Stopping
from fairtrial.analyse.sequential import SequentialRun
from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.designs.numeric_factors import CurveModel

Table = Mapping[tuple[str, str], Mapping[str, ArmValues]]  # (cell, metric) → level, baseline first → values


@dataclass(frozen=True)
class CurveRequest:
    """Curves to fit over a condition. `numbers`: by its level."""

    over: str
    model: CurveModel
    numbers: Mapping[str, float]


@dataclass(frozen=True)
class Request:
    """What is to be compared.

    Attributes:
        contrast: the factor whose levels are compared.
        levels: its levels, baseline first.
        cells: cell name → level of every other factor.
        metrics, roles: by metric name, primary first.
        paired: whether trials of one block are compared with each other.
        margin: equivalence margin as a share.
        guardrail_margins: of guardrails that have a margin of their own.
        seed: of permutations.
        covariates: of the study, in its order: (cell, covariate) → level → values; empty without any.
        curve: what curves are fitted; None for none.
        screens: whether levels are rows of a screening, which are not compared with each other.
        adjust: whether estimates adjusted for them give the verdicts on primary metrics.
    """

    study: str
    question: str
    contrast: str
    levels: tuple[str, ...]
    cells: Mapping[str, dict[str, str]]
    metrics: Mapping[str, MetricDefinition]
    roles: Mapping[str, Role]
    paired: bool
    confidence: float
    margin: float
    guardrail_margins: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    covariates: Table = field(default_factory=dict)
    adjust: bool = False
    screens: bool = False
    curve: CurveRequest | None = None


@dataclass(frozen=True)
class Course:
    """What is known of how the numbers came about.

    Attributes:
        finished: whether measuring reached its planned end; without it there is no verdict.
        doubts: about the course, shown before all others.
        expectations: by cell name, as evaluated.
        without_verdict: whether a comparison gets none, because a cell is not what its name says.
        steadiness: of each trial, where it is known.
        fixed: whether the number of blocks was fixed beforehand.
        in_step: whether several cells share what their blocks vary by: where another factor than the arm is compared,
            trials of a block stand in several; where arms boot once in a round, a boot does.
        boots: the factor each of whose levels boots once in a block, for all cells; empty where trials share no boots.
        cut_off: (cell, metric, level) of values of which some are lower bounds.
        run: the looks that a stopping rule took, where there was one.
        stopping: what is reported of them.
    """

    counts: Counts
    finished: bool = True
    doubts: tuple[Doubt, ...] = ()
    expectations: Mapping[str, tuple[ExpectationResult, ...]] = field(default_factory=dict)
    without_verdict: Callable[[Comparison], bool] = lambda _comparison: False
    steadiness: tuple[Steadiness, ...] = ()
    fixed: bool = True
    in_step: bool = False
    boots: str = ""
    cut_off: Collection[tuple[str, str, str]] = frozenset()
    run: SequentialRun | None = None
    stopping: Stopping | None = None
