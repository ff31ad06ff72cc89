"""How the blocks of a plan share hosts: side by side on a farm or on halves of this machine, or in one boot."""

from __future__ import annotations

from pathlib import Path

from fairtrial.errors import InputError, PlaceError, Problem
from fairtrial.places import place_of
from fairtrial.record.models import Plan
from fairtrial.study import Study
from fairtrial.study.duets import DUET
from fairtrial.words import counted, duration


def boots_of_hosts(plan: Plan, *, study: Study, places: Path | None, hosts: int | None) -> list[float] | None:
    """What each host that a plan is for adds to a trial, seconds; None: the plan is for this machine.

    Raises:
        InputError: the file of hosts is wrong, or they would not run the plan.
    """
    if places is not None and hosts is not None:
        problem = Problem(message="a run has one farm, found two", file="--places, --hosts")
        raise InputError([problem], hint="leave one of them out")
    if places is None and hosts is None:
        return None
    from fairtrial.cli.running.farming import Farm

    farm = Farm(cluster="") if places is None else Farm(places=places)
    farm.require_takes(plan, study=study)
    if places is None:
        return [0.0] * (hosts or 0)
    from fairtrial.farm import hosts as hosts_file

    return [place_of(place).duration_s() for place in hosts_file.read(places).values()]


def sentences(plan: Plan, *, boots_s: list[float] | None) -> list[str]:
    """What is known beforehand of blocks beside each other, a line each; `boots_s` as `boots_of_hosts` says."""
    if plan.design.order == DUET:
        return _halves()
    if any(trial.boot for trial in plan.trials):
        return [_boots(plan)]
    return [] if boots_s is None else _on_hosts(plan, boots_s)


def _on_hosts(plan: Plan, boots_s: list[float]) -> list[str]:
    """By the costs of a farm as they were measured; what a host takes for its data is not known before."""
    from fairtrial.catalogue import catalogue
    from fairtrial.plan import spreading

    hosts, trials = len(boots_s), len(plan.trials) + len(plan.diagnostics)
    alone_s = plan.duration_s + plan.diagnostic_duration_s + trials * sum(boots_s) / hosts
    took_s = spreading.duration_s(plan, catalogue(), hosts=hosts, boots_s=boots_s)
    blocks = len({(trial.cell, trial.block) for trial in plan.trials})
    at_most = "at most " if plan.design.min_blocks else ""
    idle = f"; {hosts - blocks} of them get no block" if hosts > blocks else ""
    said = (
        f"on {counted(hosts, 'host')} {at_most}{duration(took_s)}, {alone_s / took_s:.1f} times as fast, for "
        f"{counted(blocks, 'block')}{idle}; each host also prepares its data"
    )
    return [said]


def _boots(plan: Plan) -> str:
    """How often the places boot, and what that saves."""
    from fairtrial.catalogue import catalogue
    from fairtrial.plan import costs

    firsts: set[str] = set()
    saved_s = 0.0
    for trial in plan.trials:
        if trial.boot in firsts:
            saved_s += costs.places_s(plan.resolved[trial.cell][trial.arm], catalogue())
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
