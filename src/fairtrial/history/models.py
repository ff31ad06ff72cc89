"""What a look at histories says; `fairtrial history --json` is this, dumped."""

from __future__ import annotations

from typing import Literal

from fairtrial.analyse.models import Interval
from fairtrial.analyse.result import Result
from fairtrial.study.catalogue import Better

Direction = Literal["better", "worse", "changed"]  # `changed`: nobody said which direction is better


class KnownChange(Result):
    """A change that somebody has looked at: the entry of an acknowledgement file.

    Attributes:
        run: the first run after the change.
        series, metric: which; empty means all.
        because: why it is no news.
    """

    run: str
    because: str
    series: str = ""
    metric: str = ""


class LevelChange(Result):
    """A level that held for some runs gave way to another that holds since.

    Attributes:
        index: of the first point after the change.
        run, previous: the first run after it, and the last one before it.
        before, after: medians of the segments on its two sides, in the metric's unit.
        ratio: after / before, with its interval; all None where a value is not positive or no number is that large.
        difference: after - before.
        noise_sds: its size in standard deviations of a point around its level; None where no level has noise.
        relevant: whether it is larger than the margin.
        went_away: a later segment is back at the level before.
        holds: whether the newest level differs from the one before by more than the margin, in this direction.
        differing: what else is not the same in the two runs: name → (before, after).
        known: the acknowledgement that names it.
    """

    index: int
    run: str
    previous: str
    before: float
    after: float
    ratio: Interval
    difference: float
    noise_sds: float | None
    direction: Direction
    relevant: bool
    went_away: bool
    holds: bool
    differing: dict[str, tuple[str, str]]
    known: KnownChange | None


class Spike(Result):
    """A single point far from its segment: no change, for its neighbours do not follow it."""

    index: int
    run: str
    value: float
    noise_sds: float


class Alarm(Result):
    """The newest point against the segment before it: early, and about one point only.

    Attributes:
        expected: median of the segment before it.
        p: two-sided, unadjusted: the larger of a t test's and of the one by rank.
        p_adjusted: Holm over every series looked at together.
        raised: `p_adjusted` is below the alarm's level, or the point left a constant by more than the margin.
    """

    run: str
    value: float
    expected: float
    ratio: Interval
    p: float
    p_adjusted: float
    direction: Direction
    relevant: bool
    raised: bool
    known: KnownChange | None


class SeriesResult(Result):
    """One series.

    Attributes:
        runs, times, values, standard_errors, ns: by point, in time order.
        newest: the newest run that should have a point here, whether it has one or not; empty if none should.
        unmet: whether the newest run has no point because a cell failed an expectation in it.
        unplanned: whether the newest run neither plans nor measures it; it is then in no family of tests.
        left_out: older points beyond the limit.
        constant: first point, and the point after the last, of the equal points that the newest is judged by, where
            the series has no noise.
        noise: standard deviation of a point around its level, as a share where `relative`.
        autocorrelation: of neighbouring points, the value that was allowed for.
        p: of the hypothesis that the level never changed; None with too few points.
        p_adjusted: Benjamini–Hochberg over every series looked at together; None as p, or if `unplanned`.
        doubts: in sentences.
    """

    series: str
    metric: str
    role: str
    unit: str
    better: Better | None
    margin: float
    relative: bool
    runs: tuple[str, ...]
    times: tuple[str, ...]
    values: tuple[float, ...]
    standard_errors: tuple[float | None, ...]
    ns: tuple[int, ...]
    newest: str = ""
    unmet: bool = False
    unplanned: bool = False
    left_out: int
    constant: tuple[int, int] | None
    noise: float | None
    autocorrelation: float | None
    p: float | None
    p_adjusted: float | None
    changes: tuple[LevelChange, ...]
    spikes: tuple[Spike, ...]
    alarm: Alarm | None
    doubts: tuple[str, ...] = ()


class History(Result):
    """Every series looked at together, at which levels.

    Attributes:
        alpha: chance that a series without a change shows one.
        alarm_alpha: chance that any newest point raises an alarm though nothing changed, over all series with noise.
        left_out: runs that gave no point, to some series at least, and columns taken for text, with the reason.
    """

    alpha: float
    alarm_alpha: float
    series: tuple[SeriesResult, ...]
    left_out: dict[str, str]
