"""What the text and the page say in the same words."""

from __future__ import annotations

from fairtrial.analyse.models import Analysis
from fairtrial.record import Record
from fairtrial.report.background import Background


def counted(analysis: Analysis) -> list[tuple[str, int]]:
    """How many trials and blocks stand behind the analysis."""
    counts = analysis.counts
    return [
        ("planned", counts.planned),
        ("finished", counts.finished),
        ("valid", counts.valid),
        ("invalid", counts.invalid),
        ("used", counts.used),
        ("blocks voided", counts.blocks_voided),
        ("blocks replaced", counts.blocks_replaced),
    ]


def fates(behind: Background) -> list[str]:
    """What happened to trials and blocks that are not in the estimates, and what was checked."""
    checks = [
        f"consistency {name}: checked after {trials} trials, "
        + ("no violation" if violations == 0 else f"{violations} VIOLATIONS")
        for name, trials, violations in behind.checks
    ]
    return [
        *(f"{fact.label} is invalid: {fact.value}" for fact in behind.invalid),
        *(f"voided: {sentence}" for sentence in behind.voided),
        *behind.added,
        *checks,
        *(f"warning of the plan: {warning}" for warning in behind.warnings),
    ]


def again(record: Record) -> list[tuple[str, str]]:
    """Commands that run the study again and check this record."""
    name = record.directory.name
    size = f" --size {record.plan.size}" if record.plan.size else ""
    return [
        ("run again", f"fairtrial run {name}/study.yaml{size}"),
        ("check this record", f"fairtrial verify {name}"),
        ("recompute in R", f"Rscript {name}/report/raw_data.r"),
    ]
