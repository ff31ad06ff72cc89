"""What a study must be for `order: duet`: two arms that share nothing of a machine which a half of it could not have.

Owns the refusals that the study alone decides; whether a machine has two halves is seen where it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairtrial.study.catalogue import MetricDefinition
from fairtrial.study.confounding import Factors
from fairtrial.study.resolved import ResolvedTrial
from fairtrial.study.tree.nodes import Position, Scalar, Tree, plain
from fairtrial.study.tree.problems import Problems

DUET: Final = "duet"
ARMS: Final = 2
OTHERWISE: Final = "or use `order: randomised_blocks`"
_MACHINE: Final = tuple(f"telemetry-{each}.parquet" for each in ("cpu", "memory", "vmstat", "disks", "pressure"))


def check_duet(tree: Tree, factors: Factors, *, arm: str, trials: Iterable[ResolvedTrial], problems: Problems) -> None:
    """Notes, for a study of duets, everything that two halves of one machine cannot run."""
    order = _duet(tree)
    if order is None:
        return
    if arm in factors and len(factors[arm]) != ARMS:
        problems.add(
            f"`order: duet` runs two arms at a time, and `{arm}` has {len(factors[arm])} levels",
            tree.tree("factors").where(arm),
            field=("factors", arm),
            suggestion=f"leave two levels, {OTHERWISE}",
        )
    probes = tree.tree("telemetry").entries.get("probes")
    if probes is not None and plain(probes):
        problems.add(
            "probes see the whole machine, and with `order: duet` both arms run on it at a time",
            tree.tree("telemetry").where("probes"),
            field=("telemetry", "probes"),
            suggestion=f"leave them out, {OTHERWISE}",
        )
    every = list(trials)
    _check_sections(tree, factors, every, at=order.at, problems=problems)


def same_in_both_arms(tree: Tree, definition: MetricDefinition) -> bool:
    """Whether a study of duets reads a metric from counters of the whole machine, on which both arms run."""
    return _duet(tree) is not None and any(each in definition.source for each in _MACHINE)


def _duet(tree: Tree) -> Scalar | None:
    """The order where it is that of duets."""
    order = tree.tree("trials").entries.get("order")
    return order if isinstance(order, Scalar) and order.text == DUET else None


def _check_sections(
    tree: Tree, factors: Factors, trials: list[ResolvedTrial], *, at: Position, problems: Problems
) -> None:
    places = {trial.place for trial in trials}
    refusals = {
        "place": (
            any(place.kind != "local" for place in places) or len(places) > 1,
            "`order: duet` divides this machine: expected `local`, the same for every trial, found "
            + ", ".join(f"`{kind}`" for kind in sorted({place.kind for place in places})),
            "write `place: {local: {}}`",
        ),
        "settings": (
            any(trial.settings for trial in trials),
            "settings change what both arms of a duet share, or the processors that divide them",
            "leave them out",
        ),
        "workload.place": (
            any(trial.clients for trial in trials),
            "a load elsewhere would be shared by both arms of a duet",
            "leave `place` out of the workload",
        ),
    }
    for section, (wrong, message, fix) in refusals.items():
        if wrong:
            where = _where(tree, factors, section) or at
            problems.add(message, where, field=tuple(section.split(".")), suggestion=f"{fix}, {OTHERWISE}")


def _where(tree: Tree, factors: Factors, section: str) -> Position | None:
    """Where a section was written first, in the base trial or a level."""
    overlays = [tree, *(overlay for levels in factors.values() for overlay in levels.values())]
    written = (each.where(section) for each in overlays if section in each.entries and each.tree(section).entries)
    return next(written, None)
