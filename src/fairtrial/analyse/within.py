"""What happened within trials, as far as it bears on comparing them: steady states, and tails with few observations.

Owns these results and doubts. The verdict on each trial is a pair of its scalars (`metrics.steadiness`); here trials
are counted and arms compared. No trial is shortened or left out for what is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairtrial.analyse.models import Doubt, Steadiness, SteadinessVerdict
from fairtrial.analyse.selection import Selection
from fairtrial.metrics.latency import percentiles
from fairtrial.record.models import TrialRecord

MOST: Final = 0.5  # of an arm's judged trials in a cell: from there on a mean is of something in motion
FEWEST_JUDGED: Final = 3  # half of two trials is one
DIFFERS_LEVEL: Final = 0.01  # of Fisher's exact test, one per arm other than the baseline


def steadiness(selection: Selection) -> tuple[Steadiness, ...]:
    """The verdict on every used trial that was judged, cell by cell, arm by arm, in time order.

    On each trial of a boot: the mean of their verdicts, which stands for them elsewhere, is none.
    """
    conditions = [factor for factor in selection.plan.factors if factor != selection.contrast]
    standing: dict[tuple[str, ...], list[TrialRecord]] = {}
    for trial in selection.used:
        if "drifting" in trial.scalars:
            levels = tuple(trial.levels[factor] for factor in (selection.contrast, *conditions))
            standing.setdefault(levels, []).append(trial)
    return tuple(
        _steadiness(trial, cell=cell.name, arm=level)
        for cell in selection.cells
        for level in cell.groups
        for trial in standing.get((level, *cell.levels.values()), ())
    )


def _steadiness(trial: TrialRecord, *, cell: str, arm: str) -> Steadiness:
    scalars = trial.scalars
    verdict: SteadinessVerdict = "drifting" if scalars["drifting"] else "unsteady" if scalars["unsteady"] else "steady"
    return Steadiness(
        trial=trial.trial.id,
        cell=cell,
        arm=arm,
        verdict=verdict,
        drift=scalars["throughput_drift"],
        drift_p=scalars["throughput_drift_p"],
        levels=int(scalars["throughput_levels"]),
        settled_from_s=scalars["settled_from_s"],
        autocorrelation=scalars.get("throughput_autocorrelation"),
        effective_n=scalars["throughput_effective_n"],
    )


def doubts(selection: Selection, judged: Sequence[Steadiness], *, metrics: Sequence[str]) -> Iterator[Doubt]:
    """Every doubt about what happened within trials."""
    yield from not_steady(judged)
    boots = {trial.trial.id: trial.trial.boot for trial in selection.used if trial.trial.boot}
    yield from differing(judged, levels=selection.levels, boots=boots)
    yield from few_exceedances(selection.used, metrics)


def not_steady(judged: Sequence[Steadiness]) -> Iterator[Doubt]:
    """Asks of each arm in each cell whether most of its trials are steady."""
    groups: dict[tuple[str, str], list[Steadiness]] = {}
    for each in judged:
        groups.setdefault((each.cell, each.arm), []).append(each)
    for (cell, arm), trials in groups.items():
        counts = Counter(each.verdict for each in trials)
        if len(trials) >= FEWEST_JUDGED and len(trials) - counts["steady"] > MOST * len(trials):
            yield Doubt(
                code="not_steady",
                message=f"{len(trials) - counts['steady']} of {len(trials)} trials did not measure a steady state: "
                f"{counts['drifting']} drift, {counts['unsteady']} change their level",
                advice="the whole window still counts, for every arm: give all arms a longer ramp-up, or read the "
                "metric as that of exactly this window",
                cell=cell,
                arm=arm,
            )


def differing(
    judged: Sequence[Steadiness], *, levels: Sequence[str], boots: Mapping[str, str] | None = None
) -> Iterator[Doubt]:
    """Asks whether an arm's trials are steady more or less often than the baseline's, over all cells.

    False alarms: fewer than `DIFFERS_LEVEL` for each arm, as the test is exact. `boots`, by trial: where trials share
    one, it is what the test counts, as unsteady if most of its trials are.
    """
    boots = boots or {}
    units: dict[tuple[str, str], list[bool]] = {}
    for each in judged:
        units.setdefault((each.arm, boots.get(each.trial, each.trial)), []).append(each.verdict != "steady")
    counts = {level: [0, 0] for level in levels}
    for (level, _), unsteady in units.items():
        counts[level][sum(unsteady) > MOST * len(unsteady)] += 1
    unit, are = ("boots", "are mostly not steady") if boots else ("trials", "are not steady")
    first, *others = levels
    for level in others:
        if not min(sum(counts[first]), sum(counts[level])):
            continue
        p = _fisher(counts[first], counts[level])
        if p < DIFFERS_LEVEL:
            yield Doubt(
                code="steadiness_differs",
                message=f"{counts[level][1]} of {sum(counts[level])} {unit} of {level} {are}, "
                f"{counts[first][1]} of {sum(counts[first])} of {first} (p = {p:.2g})",
                advice="the arms were measured in different states: a longer ramp-up, equal for all, may change the "
                "ratio; judge `settled_from_s` and `throughput_drift` as metrics",
                arm=level,
            )


def _fisher(first: Sequence[int], second: Sequence[int]) -> float:
    from scipy import stats  # noqa: PLC0415 - scipy.stats takes most of a second, and few records need it

    return float(stats.fisher_exact([list(first), list(second)]).pvalue) if first[1] or second[1] else 1.0


def few_exceedances(used: Sequence[TrialRecord], metrics: Sequence[str]) -> Iterator[Doubt]:
    """A doubt per analysed percentile that rests on few observations beyond it in some used trial. It counts."""
    for metric in metrics:
        beyond = [percentiles.exceedances(metric, trial.scalars) for trial in used]
        least = min((count for count in beyond if count is not None), default=None)
        if least is not None and least < percentiles.EXCEEDANCES_WANTED:
            noun = "observation" if round(least) == 1 else "observations"
            yield Doubt(
                code="few_exceedances",
                message=f"a trial has only {least:.0f} {noun} beyond this percentile: "
                f"expected at least {percentiles.EXCEEDANCES_WANTED}",
                advice="measure longer, or judge a percentile closer to the median",
                metric=metric,
            )
