"""Which block runs which order of linking: the same for all arms, all orders equally often, in random order."""

from __future__ import annotations

from fairtrial.plan.shuffling import shuffled
from fairtrial.record.models import Difference, Plan, PlannedTrial
from fairtrial.study.builds import Builds


def order_of(plan: Plan, trial: PlannedTrial) -> int:
    """The order of a trial's block, from 1; of a plan with builds."""
    if plan.builds is None:
        raise AssertionError("asked for a layout of a plan without builds")
    orders = plan.builds.link_orders
    turn, at = divmod(trial.block - 1, orders)
    return int(shuffled(map(str, range(1, 1 + orders)), "layouts", plan.design.seed, trial.cell, turn)[at])


def differences(builds: Builds | None) -> list[Difference]:
    """What builds differ in between arms: their objects."""
    return [] if builds is None else [Difference(path="builds.objects", values=dict(builds.objects))]
