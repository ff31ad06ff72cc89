"""Scalars of a search for the highest rate that meets a latency objective, recomputed from the files of its probes.

A probe meets the objective if its percentile of latency, counted from when transactions should have begun, is within
the limit. Those that failed, were given up or had waited for longer than the limit when the window was over have no
latency and count as longer than any. Older engines did not count the overdue: there, at least `ACHIEVED_SHARE` of the
transactions that should have begun in the window must have ended in it. A bound is believed once `AGREEING` probes of
its rate agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from fairtrial.errors import RecordError
from fairtrial.metrics import drive, latency
from fairtrial.metrics.latency import percentiles
from fairtrial.protocol.generated import Searched
from fairtrial.study.catalogue import MetricDefinition

ACHIEVED_SHARE: Final = 0.99  # in records of older engines
AGREEING: Final = 2
HINT: Final = "restore the trial from a backup, or run it again"


def compute(directory: Path, result: drive.DriveResult) -> dict[str, float]:
    """Scalars of one trial; empty if it searched for nothing. Bounds that the search did not reach are left out.

    `client_busy_share` becomes the largest of the probes at both bounds: a busy client would be what was searched for.

    Raises:
        RecordError: a probe's files are damaged, or say something else than the engine said of them.
    """
    searched = result.search
    if searched is None:
        return {}
    verdicts = [(probe.rate_per_s, _verdict(directory, probe, objective=searched.asked)) for probe in searched.probes]
    met, missed = bounds(verdicts)
    if (met, missed) != (searched.met_per_s, searched.missed_per_s):
        raise RecordError(
            f"{directory}: its probes give the bounds {met} and {missed}, "
            f"not {searched.met_per_s} and {searched.missed_per_s}",
            hint=HINT,
        )
    values = {"probes": float(len(verdicts))}
    if met is not None and missed is not None and searched.complete:
        values |= {"highest_rate_per_s": met, "lowest_rate_missed_per_s": missed}
    at_bounds = [probe.client_busy_share for probe in searched.probes if probe.rate_per_s in (met, missed)]
    busy = [share for share in at_bounds if share is not None]
    return values | ({"client_busy_share": max(busy)} if busy else {})


def bounds(verdicts: Iterable[tuple[float, bool]]) -> tuple[float | None, float | None]:
    """The highest rate believed to meet the objective below all believed to miss it, and the lowest of those.

    Args:
        verdicts: rate and whether its probe met the objective, one for each probe.
    """
    counts: dict[tuple[float, bool], int] = {}
    for verdict in verdicts:
        counts[verdict] = counts.get(verdict, 0) + 1
    believed = [verdict for verdict, count in counts.items() if count >= AGREEING]
    missed = min((rate for rate, met in believed if not met), default=None)
    met = max((rate for rate, met in believed if met and (missed is None or rate < missed)), default=None)
    return met, missed


def why_censored(searched: Searched) -> str:
    """Why a search of a `result.json` has no result; empty if it has one."""
    search = searched.asked
    objective = f"{search.percentile} within {search.limit_s * 1000:g} ms"
    if not searched.complete:
        return f"the search ended after {len(searched.probes)} probes, before its bounds were known"
    if searched.met_per_s is None:
        return (
            f"not even the lowest rate of the search, {search.lowest_per_s:g}/s, meets the objective ({objective}): "
            "lower its `from`"
        )
    if searched.missed_per_s is None:
        return (
            f"even the highest rate of the search, {search.highest_per_s:g}/s, meets the objective ({objective}): "
            "raise its `to`"
        )
    return ""


def _verdict(directory: Path, probe: drive.SearchProbe, *, objective: drive.SearchObjective) -> bool:
    """A probe's verdict from its own files."""
    below = directory / probe.directory
    own = drive.read(below)
    observed = latency.merged(latency.read(below).values())
    offered = own.arrivals.offered if own.arrivals else 0
    percentile_ns = observed.percentile_ns(percentiles.PERCENTILES[objective.percentile])
    said = getattr(probe.latency, f"{objective.percentile}_ns") if probe.latency else None
    if (own.window, offered, own.done) != (probe.window, probe.offered, probe.done) or (
        observed.n and percentile_ns != said
    ):
        raise RecordError(f"{below}: its files disagree with result.json about this probe", hint=HINT)
    arrived = own.arrivals
    if arrived is None or arrived.overdue is None:
        met = bool(observed.n) and percentile_ns / 1e9 <= objective.limit_s and own.done >= ACHIEVED_SHARE * offered
    else:
        unserved = own.failed + (arrived.timed_out or 0) + arrived.overdue
        within = int(observed.counts[observed.highest_ns / 1e9 <= objective.limit_s].sum())
        met = within >= _rank(observed.n + unserved, percent=percentiles.PERCENTILES[objective.percentile])
    if met != probe.met:
        raise RecordError(f"{below}: its files give another verdict than result.json", hint=HINT)
    return met


def _rank(count: int, *, percent: float) -> int:
    """Of a percentile among so many observations, from 1; as the engine has it, in whole numbers."""
    return max((count * round(10 * percent) + 500) // 1000, 1)


DEFINITIONS: Final[Mapping[str, MetricDefinition]] = {
    each.name: each
    for each in (
        drive.definition(
            "highest_rate_per_s",
            "highest rate within the objective",
            unit="transactions/s",
            better="higher",
            source="search: highest rate at which two probes met the objective",
        ),
        drive.definition(
            "lowest_rate_missed_per_s",
            "lowest rate beyond the objective",
            unit="transactions/s",
            better="higher",
            source="search: lowest rate at which two probes missed the objective",
        ),
        drive.definition("probes", "probes", unit="probes", source="search: windows measured"),
    )
}


def definitions(precision: float) -> Mapping[str, MetricDefinition]:
    """`DEFINITIONS` of a search whose bounds end so far apart, as a share of the lower one.

    The capacity may lie anywhere between them: above the one, below the other.
    """
    known = {"highest_rate_per_s": -precision, "lowest_rate_missed_per_s": precision / (1 + precision)}
    return {name: each.model_copy(update={"resolution": known.get(name, 0.0)}) for name, each in DEFINITIONS.items()}
