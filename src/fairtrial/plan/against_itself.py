"""An A/A plan: the study's baseline against itself, as two labels of one resolved trial. Pure.

The order, the seeds and the cells are made as any plan's are, so that what differs between the labels is the noise that
a real arm's effect would have to rise above.
"""

from __future__ import annotations

from typing import Final

from fairtrial.errors import InputError, Problem
from fairtrial.plan import costs, ordering
from fairtrial.record.models import Plan
from fairtrial.study.catalogue import Catalogue

AGAIN: Final = "-again"  # what the second label is called beyond the first
EVERY_BLOCK: Final = {
    "stop": "fixed",
    "stops_by": "student",
    **dict.fromkeys(("min_blocks", "spending", "futility", "equivalence", "precision", "time_budget_s")),
}  # of a design: what only an early stop needs is not set
WARNING: Final = "A/A: both arms are the baseline, so every difference is noise and every claim would be false"


def against_itself(plan: Plan, *, catalogue: Catalogue) -> Plan:
    """The same plan with its baseline in both arms, every block run, nothing else compared.

    Raises:
        InputError: the plan is a screening, whose rows are no arms.
    """
    if plan.screening is not None:
        problem = Problem("a screening has no baseline arm to run against itself", file="--aa", field="trials.design")
        raise InputError([problem], hint="replicates (`trials.blocks`) show the noise of a screening")
    baseline = plan.factors[plan.arm][0]
    arms = [baseline, baseline + AGAIN]
    resolved = {cell: dict.fromkeys(arms, trials[baseline]) for cell, trials in plan.resolved.items()}
    # An early stop would leave the noise of the cells that stopped less well known than was asked for.
    design = plan.design.model_copy(update=EVERY_BLOCK)
    slots = ordering.slots(design, cells=[cell.name for cell in plan.cells], arms=arms)
    trials = [ordering.planned(slot, seed=design.seed, position=position) for position, slot in enumerate(slots)]
    return plan.model_copy(
        update={
            "against_itself": True,
            "factors": {**plan.factors, plan.arm: arms},
            "also_compare": [],
            "resolved": resolved,
            "builds": plan.builds and plan.builds.against_itself(arms),
            "differences": [],
            "design": design,
            "trials": trials,
            "probes": [],  # what probes would explain is an effect, and there is none
            "diagnostics": [],
            "diagnostic_duration_s": 0.0,
            "duration_s": costs.duration_s(trials, resolved, catalogue),
            "disk_bytes": costs.disk_bytes(resolved, design, catalogue),
            "warnings": [*plan.warnings, WARNING],
        }
    )
