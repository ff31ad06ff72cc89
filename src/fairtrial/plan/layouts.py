"""Which block runs which order of linking: the same for all arms, all orders equally often, in random order."""

from __future__ import annotations

from typing import Final

from fairtrial.plan.shuffling import shuffled
from fairtrial.record.models import Difference, Plan, PlannedTrial
from fairtrial.study.builds import Builds

FEWEST: Final = 5  # orders of which something can be said of others like them


def order_of(plan: Plan, trial: PlannedTrial) -> int:
    """The order of a trial's block, from 1; of a plan with builds."""
    if plan.builds is None:
        raise AssertionError("asked for a layout of a plan without builds")
    orders = plan.builds.link_orders
    turn, at = divmod(trial.block - 1, orders)
    return int(shuffled(map(str, range(1, 1 + orders)), "layouts", plan.design.seed, trial.cell, turn)[at])


def warnings(builds: Builds | None, *, blocks: int) -> list[str]:
    """What so few orders, or so few blocks, cannot say."""
    if builds is None:
        return []
    orders, said = builds.link_orders, []
    if orders < FEWEST:
        said.append(f"builds.link_orders: {orders} say nothing of other orders of linking; use at least {FEWEST}")
    if blocks < 2 * orders:
        said.append(
            f"{blocks} blocks for {orders} orders of linking hardly tell noise and layouts apart; use at least "
            f"{2 * orders} blocks, a multiple of {orders}"
        )
    return said


def differences(builds: Builds | None) -> list[Difference]:
    """What builds differ in between arms: their objects."""
    return [] if builds is None else [Difference(path="builds.objects", values=dict(builds.objects))]
