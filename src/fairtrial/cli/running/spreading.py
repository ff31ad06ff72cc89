"""How the blocks of a plan share hosts: side by side on a farm or on halves of this machine, or in one boot."""

from __future__ import annotations

from pathlib import Path

from fairtrial.errors import InputError, PlaceError, Problem
from fairtrial.places import place_of
from fairtrial.record.models import Plan
from fairtrial.study.duets import DUET
from fairtrial.words import counted, duration


def number_of_hosts(plan: Plan, *, places: Path | None, hosts: int | None) -> int | None:
    """How many hosts a plan is for; None: this machine.

    Raises:
        InputError: the file of hosts is wrong, or the plan is of duets.
    """
    if places is not None and hosts is not None:
        problem = Problem(message="a run has one farm, found two", file="--places, --hosts")
        raise InputError([problem], hint="leave one of them out")
    if places is None and hosts is None:
        return None
    from fairtrial.cli.running.farming import Farm

    Farm(places=places or Path()).require_fits(plan)
    if places is None:
        return hosts
    from fairtrial.farm import hosts as hosts_file

    return len(hosts_file.read(places))


def sentences(plan: Plan, *, hosts: int | None) -> list[str]:
    """What is known beforehand of blocks beside each other, a line each."""
    if plan.design.order == DUET:
        return _halves()
    if any(trial.boot for trial in plan.trials):
        return [_boots(plan)]
    return [] if hosts is None else _on_hosts(plan, hosts)


def _on_hosts(plan: Plan, hosts: int) -> list[str]:
    """By the costs of a farm as they were measured; what a host takes for its data is not known before."""
    from fairtrial.catalogue import catalogue
    from fairtrial.plan import spreading

    alone_s = plan.duration_s + plan.diagnostic_duration_s
    took_s = spreading.duration_s(plan, catalogue(), hosts=hosts)
    blocks = len({(trial.cell, trial.block) for trial in plan.trials})
    at_most = "at most " if plan.design.min_blocks else ""
    idle = f"; {hosts - blocks} of them get no block" if hosts > blocks else ""
    said = (
        f"on {counted(hosts, 'host')} {at_most}{duration(took_s)}, {alone_s / took_s:.1f} times as fast, for "
        f"{counted(blocks, 'block')}{idle}; each host also prepares its data"
    )
    return [said]


def _boots(plan: Plan) -> str:
    """How often the place boots, and what that saves."""
    firsts: set[str] = set()
    saved_s = 0.0
    for trial in plan.trials:
        if trial.boot in firsts:
            saved_s += place_of(plan.resolved[trial.cell][trial.arm].place).duration_s()
        firsts.add(trial.boot)
    each = counted(plan.design.per_boot, "trial")
    return (
        f"boots        {len(firsts)} instead of {len(plan.trials)}, which saves about {duration(saved_s)}: each arm "
        f"once in a round, for {each} of {counted(len(plan.cells), 'cell')}"
    )


def _halves() -> list[str]:
    from fairtrial.farm import processors

    try:
        first, second = processors.halves(processors.own(), nodes=processors.own_nodes())
    except PlaceError as error:
        return [f"warning: on this machine the run would be refused: {error}"]
    said = (
        f"halves       1 has processors {processors.listed(first)} of this machine, 2 has "
        f"{processors.listed(second)}; of each two blocks, one has the arms swapped"
    )
    return [said]
