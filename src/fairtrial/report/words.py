"""What the text and the page say in the same words."""

from __future__ import annotations

from fairtrial.analyse.models import Analysis
from fairtrial.record import Record
from fairtrial.record.files import MERGED
from fairtrial.record.models import Plan
from fairtrial.report.background import Background
from fairtrial.words import STOP_REASONS
from fairtrial.words import counted as blocks


def counted(analysis: Analysis) -> list[tuple[str, int]]:
    """How many trials and blocks stand behind the analysis."""
    counts = analysis.counts
    diagnostic = [("diagnostic, not included above", counts.diagnostic)] if counts.diagnostic else []
    late = [("of rounds after their cell's last, not included above", counts.late)] if counts.late else []
    rows = [("rows, averaged into trials", counts.rows)] if counts.rows else []
    return [
        ("planned", counts.planned),
        ("finished", counts.finished),
        ("valid", counts.valid),
        ("invalid", counts.invalid),
        ("used", counts.used),
        ("blocks voided", counts.blocks_voided),
        ("blocks replaced", counts.blocks_replaced),
        *diagnostic,
        *late,
        *rows,
    ]


def boots(plan: Plan) -> list[tuple[str, str]]:
    """Of a plan whose arms boot once in a round: what the unit is; else nothing."""
    if not any(trial.boot for trial in plan.trials):
        return []
    each = plan.design.per_boot
    mean = f", {each} trials of each cell averaged into one value" if each > 1 else ""
    return [("boots", f"one for an arm in a round, shared by its cells{mean}: the boot is the unit, not the trial")]


def stopping(analysis: Analysis) -> list[str]:
    """The rule of a run that could stop early, and when and why each cell stopped; nothing if all blocks were run."""
    decision = analysis.stopping
    if decision is None:
        return []
    return [
        f"Decided after every round for each cell, from {decision.first} to {decision.last} blocks: {decision.rule}.",
        f"{share_of_blocks(analysis)} were compared.",
        *(
            f"{cell.cell}: stopped after {blocks(cell.blocks, 'block')}, in round {cell.round}: "
            f"{STOP_REASONS[cell.reason]}."
            for cell in decision.cells
        ),
    ]


def share_of_blocks(analysis: Analysis) -> str:
    """`41 % of the planned blocks`; nothing if all blocks were planned to run."""
    return (
        "" if analysis.stopping is None else f"{analysis.stopping.share:.0%} of the planned blocks".replace("%", " %")
    )


def fates(behind: Background) -> list[str]:
    """What happened to trials and blocks that are not in the estimates, and what was checked."""
    checks = [
        f"consistency {name}: checked after {trials} trials, "
        + ("no violations" if violations == 0 else f"{violations} VIOLATION{'' if violations == 1 else 'S'}")
        for name, trials, violations in behind.checks
    ]
    return [
        *(f"{fact.label} is invalid: {fact.value}" for fact in behind.invalid),
        *(f"voided: {sentence}" for sentence in behind.voided),
        *behind.added,
        *checks,
        *(f"plan warning: {warning}" for warning in behind.warnings),
    ]


def again(record: Record, *, name: str, contrast: str = "") -> list[tuple[str, str]]:
    """Commands that run the study again as it ran, and check this record, by its directory's name.

    `contrast` is the factor that the report compares, if not the plan's arm.
    """
    report = "report" if contrast in ("", record.plan.arm) else f"report/by-{contrast}"
    against_itself = " --aa" if record.plan.against_itself else ""
    return [
        ("run again", f"fairtrial run {name}/{MERGED}{against_itself}"),
        ("check this record", f"fairtrial verify {name}"),
        ("recompute in R", f"Rscript {name}/{report}/raw_data.r"),
    ]
