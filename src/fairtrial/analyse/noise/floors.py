"""The noise floor of a place beside each comparison made there, from the A/A profiles that the record holds. Pure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import ValidationError

from fairtrial.analyse.models import Comparison
from fairtrial.analyse.noise import profile as noise
from fairtrial.analyse.noise.models import WHOLE, MetricNoise, NoiseFloor, NoiseProfile
from fairtrial.analyse.selection import Selection
from fairtrial.record.models import PlaceOpened, Plan
from fairtrial.study.resolved import Section

FACT: Final = "noise"  # of a place: profiles kept there when it was opened, as JSON


def floors(
    plan: Plan, selection: Selection, comparisons: Iterable[Comparison], *, places: Sequence[PlaceOpened]
) -> tuple[NoiseFloor, ...]:
    """One floor per cell, metric and number of blocks, where its place has an A/A of that metric.

    A profile of the same study in the same size goes before one of the same workload and system, that before any other,
    and the newer before the older. In the same cell's absence the noisiest cell of the profile speaks.
    """
    # What one host of a farm keeps is no floor of the others, which have the same place in words.
    known = {opened.place: profiles(opened) for opened in places if not opened.host}
    places_of = {cell.name: _place(plan, cell.planned_cells) for cell in selection.cells}
    by_metric: dict[tuple[str, str], NoiseFloor] = {}
    for each in comparisons:
        place = places_of[each.cell]
        if (each.cell, each.metric) in by_metric or place is None:
            continue
        named = next(cell for cell in selection.cells if cell.name == each.cell)
        planned = next(iter(named.planned_cells.values()))
        for profile in _preferred(known.get(place, ()), plan, planned):
            like = [noisy for noisy in profile.metrics if noisy.metric == each.metric]
            if like:
                noisiest = max(like, key=lambda noisy: noisy.pair_sd)
                chosen = next((noisy for noisy in like if noisy.cell == planned), noisiest)
                by_metric[each.cell, each.metric] = _floor(each, chosen, profile, plan=plan, place=place)
                break
    return tuple(by_metric.values())


def _floor(
    comparison: Comparison, like: MetricNoise, profile: NoiseProfile, *, plan: Plan, place: Section
) -> NoiseFloor:
    return NoiseFloor(
        cell=comparison.cell,
        metric=comparison.metric,
        place=place.kind,
        share=noise.floor(like.pair_sd, df=like.blocks - 1, blocks=comparison.n),
        at_blocks=comparison.n,
        aa_blocks=like.blocks,
        aa_cell=like.cell,
        date=profile.date,
        study=profile.study,
        size=profile.size,
        same_study=_is_of(plan, profile),
    )


def _preferred(profiles: Iterable[NoiseProfile], plan: Plan, planned_cell: str) -> list[NoiseProfile]:
    trial = plan.resolved[planned_cell][plan.factors[plan.arm][0]]
    kinds = trial.workload.kind, trial.system.kind
    newest_first = sorted(profiles, key=lambda profile: profile.date, reverse=True)
    return sorted(
        newest_first, key=lambda profile: (not _is_of(plan, profile), (profile.workload, profile.system) != kinds)
    )


def _is_of(plan: Plan, profile: NoiseProfile) -> bool:
    """Whether a profile is of the plan's study and size; one that says no size may be of any, as it always was."""
    return profile.study == plan.study and profile.size in (None, plan.size or WHOLE)


def profiles(opened: PlaceOpened) -> tuple[NoiseProfile, ...]:
    """Those that the place kept when it was opened; one that this version cannot read was never compared with."""
    readable = []
    kept = opened.facts.get(FACT)
    for profile in kept if isinstance(kept, list) else ():
        with contextlib.suppress(ValidationError):
            readable.append(NoiseProfile.model_validate(profile))
    return tuple(readable)


def _place(plan: Plan, planned_cells: Mapping[str, str]) -> Section | None:
    """Where a cell's trials run; None if its arms run at different places, whose noise is then part of the effect."""
    places = [trial.place for name in planned_cells.values() for trial in plan.resolved[name].values()]
    return places[0] if all(place == places[0] for place in places) else None
